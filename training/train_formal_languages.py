"""Trains transformers with and without a stack on context-free tasks, as in *A Transformer with Stack Attention*.

    python -m training.train_formal_languages --task reverse_string                        # stack, MLM, one seed
    python -m training.train_formal_languages --task all --layout all --model stack,vanilla --seeds 0..4 --jobs 2
    python -m training.train_formal_languages --task reverse_string --model rnn,stack_rnn  # Table 1's baselines
    python -m training.train_formal_languages --task reverse_string --encoding all         # a row of Table 2
    python -m training.train_formal_languages --task modular_arithmetic --multi_pop 2 --steps 20000
    python -m training.train_formal_languages --task all --preset paper --jobs 5           # for a GPU
    python -m training.train_formal_languages --task own --train_file mine.jsonl           # your inputs and outputs

A run is one task, layout, model, encoding and seed. Each leaves its model and outcome in a folder of its own under
--output_dir; a run that is there is not trained again, and one that was killed goes on from its last checkpoint, bit
for bit. At the end all runs of the tasks and the preset that lie under --output_dir are written to --cards_dir:
results.json, figures and a model card for each task. The texts are drawn anew in every step. Your own are
strings of words or, without white space, of characters; lists of symbols do, too. Corpora: train_lm.
"""

if not __package__:  # started as a file: `python training/train_formal_languages.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .formal_languages.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
