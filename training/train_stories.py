"""Trains the Belief State Transformer and a fill-in-the-middle baseline on stories (Section 5 of its paper).

    python -m training.train_stories                             # preset cpu: stories of our grammar
    python -m training.train_stories --model fim --seeds 0..2   # the baseline alone
    python -m training.train_stories --preset gpu-10min --jobs 1
    python -m training.train_stories --preset paper --jobs 1     # TinyStories, from the Hub
    python -m training.train_stories --train_file mine.jsonl     # your texts, in a column `text`

A run is one model from one seed. Each leaves its model and outcome, with its completions, in a folder of its own under
--output_dir; a run that is there is not trained again, and one that was killed goes on from its last checkpoint, bit
for bit. At the end all runs of the preset that lie under --output_dir are written to --cards_dir: results.json, figures
and a model card.
"""

if not __package__:  # started as a file: `python training/train_stories.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .stories.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
