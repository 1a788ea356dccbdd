"""Runs every program of the package, and Turing machines, on random prompts through PSM, QKVM and DAT.

    python -m training.run_machines                                          # all of them, 20 prompts each
    python -m training.run_machines --task reverse sort turing/increment --num_prompts 500
    python -m training.run_machines --jobs 1 --cards_dir docs/results

Every program leaves its outcome under --output_dir, and one that is there is not run again. At the end --cards_dir gets
results.json and a card of all outcomes that --output_dir holds.

Nothing is trained, and it takes no data of yours.
"""

if not __package__:  # started as a file: `python training/run_machines.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .machines.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
