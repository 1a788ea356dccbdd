"""The settings of a test: whose hidden states, and on which prompts."""

from __future__ import annotations

from dataclasses import dataclass

from hf_mech.programs.templatic.tasks import TASKS

from ..engine import Settings, axis, fixed, option

SUBJECTS = ("pargen", "trained", "untrained")
"""The compiled program itself; a checkpoint; a model of the same configuration with new weights."""
ROLES = ("region", "field", "type", "index")
"""PARGEN's registers that hold the parse (36)."""


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """A run: one model's hidden states of some prompts, against the parse of the same prompts."""

    PRESETS = {"cpu": {}}

    subject: str = axis("whose hidden states", SUBJECTS, default=["all"])
    seed: int = fixed("of the held-out prompts, of the shuffled control, and of the untrained weights")
    checkpoint: str | None = option("a run's model folder of train_templatic, for both learned subjects", default=None)
    task: str = option("configuration of hf_mech/templatic_generation", default="1_shot_small", known=TASKS)
    split: str = option("whose prompts", default="test")
    prompts: int = option("prompts, from the first on", default=300, least=2)
    held_out: float = option("the share of prompts that a fit does not see", default=0.25, least=0, most=1)
    filler_width: int = option("width of the learned embeddings of fillers", default=16, least=1)
