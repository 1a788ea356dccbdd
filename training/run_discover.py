"""Tests hidden states for PARGEN's registers, Sec. 9.2.1 of *Mechanisms of Symbol Processing ...*.

    python -m training.train_templatic --task 1_shot_small --model nano_gpt --steps 40000 --layers 4 --heads 4 \\
        --filter 256 --num_train 100000                              # a small GPT-2 that learns the task
    python -m training.run_discover --checkpoint runs/templatic/1_shot_small-nano_gpt-.../model
    python -m training.run_discover --subject pargen                 # the program's own states

A run fits tensor product representations to the hidden states of every layer, and measures them on other prompts, for
the parse and for a shuffled one. Each leaves its outcome under --output_dir. At the end --cards_dir gets results.json
and a card of all of them.

Nothing is trained, and it takes no data of yours.
"""

if not __package__:  # started as a file: `python training/run_discover.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .discover.experiment import EXPERIMENT
from .engine import main

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
