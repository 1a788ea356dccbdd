"""The time of `import hf_mech` after torch and transformers' AutoModel, which its users import anyway.

    python benchmarks/import_time.py

New interpreters run alternately with and without `import hf_mech`, after one of each to warm up the disk cache.
"""

from __future__ import annotations

import subprocess
import sys
import time

from harness import arguments, ratios, report, take_turns

from hf_mech.hub import measurement

BASELINE = "import torch; from transformers import AutoModel"
WITH_US = f"{BASELINE}; import hf_mech"


def main() -> None:
    args = arguments(__doc__, __file__, runs=9)
    began = time.perf_counter()
    codes = {"baseline": BASELINE, "with hf_mech": WITH_US}
    sides = {
        name: lambda code=code: subprocess.run([sys.executable, "-c", code], check=True) for name, code in codes.items()
    }
    seconds = take_turns(sides, args.runs)
    measured = [
        measurement("import_time", "fresh interpreter", {"code": codes[name]}, "seconds", times)
        for name, times in seconds.items()
    ]
    cost = ratios(seconds, "with hf_mech", "baseline")
    measured.append(measurement("import_time", "fresh interpreter", {"code": WITH_US}, "times_the_baseline", cost))
    report(args.output, measured, began)


if __name__ == "__main__":
    main()
