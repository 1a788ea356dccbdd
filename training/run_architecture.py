"""Compares the embeddings and the heads of the DAT with the symbolic machine, and writes the figures.

python -m training.run_architecture                        # all programs of the package: minutes on one core
python -m training.run_architecture --prompts 2 --cards_dir out

Nothing is trained, and it takes no data of yours.
"""

if not __package__:  # started as a file: `python training/run_architecture.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

import argparse
import time
from pathlib import Path

from hf_mech.hub import Results

from .pargen.architecture import FILE, measure


def main() -> None:
    """Measures and saves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=10, help="of each program (default: 10)")
    parser.add_argument("--cards_dir", type=Path, default=Path("docs/results"), help="the file goes below it")
    options = parser.parse_args()
    if options.prompts < 1:
        parser.error(f"--prompts must be 1 or more, got {options.prompts}")
    began = time.perf_counter()
    found = measure(options.prompts, print)
    file = options.cards_dir / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    Results.collect("dat-pargen", seconds=time.perf_counter() - began, results=found).save(file)
    print(f"Wrote {file}")


if __name__ == "__main__":
    main()
