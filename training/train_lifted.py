"""Learns lifted domains from logs of small instances, and judges them in bigger ones.

    python -m training.train_lifted --domain ferry hanoi
    python -m training.train_lifted --domain all --condition clean habits --learner code alternation locm --seeds 101
    python -m training.train_lifted --domain ferry --condition wrong_action_5 --actions 4000 --seeds 1..3
    python -m training.train_lifted --domain all --condition goals --models true --cards_dir docs/results

A cell is a domain, the kind of its log, a learner and a seed; the seed draws the instances, the log and the test. Every
cell leaves its outcome under --output_dir, and one that is there is not run again. At the end --cards_dir gets
results.json, pictures and a card of all outcomes that --output_dir holds. A log of your own: `hf-mech learn`.
"""

if not __package__:  # started as a file: `python training/train_lifted.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .lifted.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
