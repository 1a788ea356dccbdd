"""Trains the Belief State Transformer and its baselines on star graphs: Figures 2, 4 and 8 of its paper.

    python -m training.train_belief_state                               # preset cpu: G(2,5), BST and forward-only
    python -m training.train_belief_state --model all --seeds 0
    python -m training.train_belief_state --model next_latent,multi_token,joint_multi_token  # what came after
    python -m training.train_belief_state --preset cpu-long --graph g-5-5,g-2-20 --model bst --seeds 0 --jobs 1
    python -m training.train_belief_state --preset probes --seeds 0     # what the states know of path and graph
    python -m training.train_belief_state --graph g-3-4 --num_nodes 30  # any graphs g-D-L: D arms, paths of L nodes
    python -m training.train_belief_state --preset gpu-10min --graph all --seeds 0 --jobs 1 --data_workers 8
    python -m training.train_belief_state --train_file mine.jsonl       # your prompts and completions, of any words

A run is one model on one kind of graph from one seed. Each leaves its model and outcome in a folder of its own under
--output_dir; a run that is there is not trained again, and one that was killed goes on from its last checkpoint, bit
for bit. At the end all runs of the preset that lie under --output_dir are written to --cards_dir: results.json, figures
and a model card. The graphs are drawn anew in every step. Texts of your own that reach a given end: train_stories.
"""

if not __package__:  # started as a file: `python training/train_belief_state.py`
    import sys
    from pathlib import Path

    sys.path[0], __package__ = str(Path(__file__).resolve().parents[1]), "training"

from .belief_state.experiment import EXPERIMENT
from .engine import main

if __name__ == "__main__":
    main(EXPERIMENT, about=__doc__)
