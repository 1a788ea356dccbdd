"""Trains M-SAT and its baselines on episodes of ViZDoom, and has them play held-out ones: Section 5 of its paper.

    python -m training.train_msat                                       # preset cpu: My Way Home
    python -m training.train_msat --scenario deadly_corridor
    python -m training.train_msat --preset compare --scenario my_way_home,deadly_corridor --model all --positions all \\
        --seeds 0..2 --jobs 2                                           # Tables 2 and 3, reduced
    python -m training.train_msat --scenario rooms --jobs 1             # needs no game engine
    python -m training.train_msat --preset paper --jobs 1 --data_workers 8
    python -m training.train_msat --train_file mine.parquet --environment my_module:Mine-v0   # play that you recorded

A run is one model in one scenario from one seed: it makes the training episodes, trains, and plays. Each leaves its
model and outcome in a folder of its own under --output_dir; a run that is there is not trained again, and one that was
killed goes on from its last checkpoint, bit for bit. At the end all runs of the preset and scenario that lie under
--output_dir are written to --cards_dir: results.json, a film of an episode, figures and a model card. Your own play is
described in docs/offline_data.md.
"""

if not __package__:  # started as a file: `python training/train_msat.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .engine import main
from .msat.experiment import EXPERIMENT

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
