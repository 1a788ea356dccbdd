"""Evaluates nested functions, (89): by a compiled program, and by GPT-2 trained from nothing on the same prompts.

    python -m training.train_nested_functions --model dat --config all      # no training: all splits
    python -m training.train_nested_functions --model gpt2 --config single  # preset cpu: reduced
    python -m training.train_nested_functions --model gpt2 --preset full --mixed_precision bf16 --jobs 1
    python -m training.train_nested_functions --model gpt2 --train_file mine.jsonl   # your prompts and completions

A run is one model on one configuration of hf_mech/nested_functions from one seed. Each leaves its model and outcome in
a folder of its own under --output_dir; a run that is there is not trained again, and one that was killed goes on from
its last checkpoint, bit for bit. At the end all runs that lie under --output_dir are written to --cards_dir:
results.json, figures and a model card.
"""

if not __package__:  # started as a file: `python training/train_nested_functions.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .nested_functions.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
