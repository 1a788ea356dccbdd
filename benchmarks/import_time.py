"""What `import hf_mech` costs beside torch and transformers' AutoModel, which its users have imported anyway.

    python benchmarks/import_time.py --runs 9

Fresh interpreters take turns with and without `import hf_mech`, after one of each to warm the disk's cache. Writes
benchmarks/import_time.json and exits with 1 if the ratio is above the bound.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

BOUND = 1.2
BASELINE = "import torch; from transformers import AutoModel"
WITH_US = f"{BASELINE}; import hf_mech"


def seconds(code: str) -> float:
    """Wall-clock seconds of a new interpreter that runs the code."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def measure(runs: int) -> dict[str, list[float]]:
    """Seconds of `runs` interpreters each, taking turns so that a busy machine slows both alike."""
    times: dict[str, list[float]] = {"baseline": [], "with_hf_mech": []}
    for code in (BASELINE, WITH_US):
        seconds(code)
    for _ in range(runs):
        times["baseline"].append(seconds(BASELINE))
        times["with_hf_mech"].append(seconds(WITH_US))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="interpreters of each kind (default: 9)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()

    times = measure(arguments.runs)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratio = medians["with_hf_mech"] / medians["baseline"]
    report = {
        "name": "import_time",
        "command": f"python benchmarks/import_time.py --runs {arguments.runs}",
        "machine": {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "transformers", "hf-mech")},
        },
        "seconds": {name: [round(value, 4) for value in values] for name, values in times.items()},
        "median_seconds": {name: round(value, 4) for name, value in medians.items()},
        "ratio": round(ratio, 4),
        "bound": BOUND,
    }
    text = json.dumps(report, indent=2) + "\n"
    arguments.output.write_text(text)
    print(f"import hf_mech: {ratio:.3f} times the baseline (bound {BOUND}); written to {arguments.output}")
    return int(ratio > BOUND)


if __name__ == "__main__":
    sys.exit(main())
