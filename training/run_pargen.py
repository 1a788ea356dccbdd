"""Runs a production-system program, compiled into a DAT, over whole splits of hf_mech/templatic_generation.

    python -m training.run_pargen --task 1_shot_rlw                         # PARGEN, all twelve splits, every prompt
    python -m training.run_pargen --program pargen_k_shot --task all --num_train 20000
    python -m training.run_pargen --task 1_shot_eng --split test ood_lexical --jobs 1

Every part of a split leaves its outcome under --output_dir, and a part that is there is not run again; so a run that
was killed goes on, and the table can be made in several sittings. At the end --cards_dir gets results.json, a picture
and a model card of all the parts that --output_dir holds of the program.

Nothing is trained; your own prompts: `hf-mech run`.
"""

if not __package__:  # started as a file: `python training/run_pargen.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .pargen.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
