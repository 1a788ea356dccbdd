"""Learns the hidden domain of action traces with the STRIPS Transformer, ten seeds at once.

    python -m training.train_strips --domain simple --sizes 200
    python -m training.train_strips --domain all --sizes all                 # Table 1 of the paper, 28 cells
    python -m training.train_strips --domain all --head_factor_at_largest 2  # and with twice the heads needed
    python -m training.train_strips --domain blocksworld-2b --sizes 2000 --head_factor 2
    python -m training.train_strips --domain ferry-2c --sizes 100 --preset two_part_code --data_seed 7 --num_seeds 5
    python -m training.train_strips --domain miconic-2p --preset lifted --policy expert --num_seeds 1
    python -m training.train_strips --domain own --num_propositions 6 --train_file mine.jsonl   # your traces
    accelerate launch -m training.train_strips --domain ferry-1c --sizes 500 --push_to_hub --hub_user me

The presets `paper`, `redraw` and `by_size` train by gradient descent, the last of them told that few traces are uniform
walks, and with more heads for many; `two_part_code` searches without gradients for the domain that describes itself and
the traces in the fewest bits; `locm` is a peer, and `lifted` learns lifted actions: both see
the names of the objects in the actions, more than the paper's learners see. Every cell (a domain and a size) leaves its
model and outcome under --output_dir; a cell that is there is not trained again, and one that was killed goes on from
its last checkpoint, bit for bit. At the end the outcomes are written to --cards_dir as results.json, figures and a
model card for each domain.
"""

if not __package__:  # started as a file: `python training/train_strips.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .strips.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
