"""Trains causal and masked language models, vanilla and with a stack, and compares their perplexities.

    python -m training.train_lm --corpus stdlib --num_seeds 5               # new models, Table 3's upper half
    python -m training.train_lm --corpus stdlib --num_seeds 5 --pretrain    # and its lower half: pretrained here first
    python -m training.train_lm --dataset_name Salesforce/wikitext --dataset_config_name wikitext-2-raw-v1 \\
        --preset paper --objective clm --use_stack true
    python -m training.train_lm --model_name_or_path gpt2 --objective clm --use_stack true --stack_gate false true \\
        --train_file a.txt --validation_file b.txt --test_file c.txt --preset paper  # or .jsonl
    python -m training.train_lm --dataset_name hf_mech/nested_text --dataset_config_name json --preset nested \\
        --objective clm --use_stack false true between                      # a Llama on JSON, deeper than trained

Every run leaves its model and outcome under --output_dir; a run that is there is not done again, and one that was
killed goes on from its last epoch, bit for bit. At the end --cards_dir gets results.json, a figure and a model card of
all the runs of the preset on this data that --output_dir holds, so that the table can be made in several sittings.
"""

if not __package__:  # started as a file: `python training/train_lm.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .language_models.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
