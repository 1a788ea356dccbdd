"""Trains the Semi-formal Transformer, Sec. 9.4 of *Mechanisms of Symbol Processing ...*, and an ordinary transformer.

    python -m training.train_semi_formal                               # both models, three seeds
    python -m training.train_semi_formal --model semi_formal --entropy_weight 0
    python -m training.train_semi_formal --model transformer --steps 20000
    python -m training.train_semi_formal --train_file mine.jsonl       # your texts, rules and labels

A run is one model from one seed, trained on the labels of `hf_mech/rules`. Each leaves its model and outcome in a
folder of its own under --output_dir; a run that is there is not trained again, and one that was killed goes on from its
last checkpoint, bit for bit. At the end --cards_dir gets results.json and a model card of all of them. Your own
texts have any words; their rules are those of `hf_mech/rules`: `any words : ( not A and ( B or C ) )`.
"""

if not __package__:  # started as a file: `python training/train_semi_formal.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .semi_formal.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
