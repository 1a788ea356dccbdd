"""Trains the learned baselines of templatic generation, Table 3 of *Mechanisms of Symbol Processing ...*.

    python -m training.train_templatic --model all                      # preset cpu: reduced
    python -m training.train_templatic --model nano_gpt --seeds 0..2
    python -m training.train_templatic --model nano_gpt,nano_gpt_attn_only --preset paper --mixed_precision bf16 \\
        --max_minutes 240 --data_workers 8 --jobs 1 --eval_prompts 2000 --eval_batch 500           # for a GPU
    python -m training.train_templatic --model nano_gpt --train_file mine.jsonl   # your prompts and completions

A run is one model on one task from one seed. Each leaves its model and outcome in a folder of its own under
--output_dir; a run that is there is not trained again, and one that was killed goes on from its last checkpoint, bit
for bit. At the end all runs of the task and preset that lie under --output_dir are written to --cards_dir:
results.json, figures and a model card.
"""

if not __package__:  # started as a file: `python training/train_templatic.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .templatic.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
