"""The settings of a run: the Semi-formal Transformer, or an ordinary transformer of its size."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine import axis, fixed, option
from ..engine.own_data import OwnData
from ..engine.settings import SCHEDULERS, By

MODELS = ("semi_formal", "transformer")
"""Ours; and RoFormer, whose rotary positions know distances alone, so that longer rules have no untrained position."""


@dataclass(frozen=True, kw_only=True)
class Run(OwnData):
    """A run: a model, a seed, and how the model is built and trained."""

    PRESETS = {
        "cpu": {  # some minutes of one core a run
            "steps": 300,
            "batch_size": 16,
            "layers": By("model", {"semi_formal": 1}, other=3),
            "hidden": By("model", {"semi_formal": 32}, other=48),
            "filter": By("model", {"semi_formal": 64}, other=192),
            "num_eval": 200,
            # At 3e-3 the transformer answers every text alike.
            "learning_rate": By("model", {"semi_formal": 3e-3}, other=5e-4),
        },
    }

    # More steps, as what a word does depends on others; ours has learned it after some 200.
    PRESETS["exceptions"] = {
        **PRESETS["cpu"],
        "exceptions": True,
        "steps": By("model", {"semi_formal": 500}, other=2_000),
    }

    COLUMNS = {"prompt": str, "label": int}
    GENERATED = ("data_seed", "num_train", "num_eval", "exceptions")

    model: str = axis("models", MODELS, default=["all"])
    seed: int = fixed("of the weights")
    steps: int = option("training steps", least=1)
    batch_size: int = option("texts a step", least=1)
    layers: int = option("layers of the transformer, or of the unbiased part", least=1)
    hidden: int = option("width of the residual stream, or of V_u", least=1)
    filter: int = option("width of the MLPs", least=1)
    heads: int = option("heads of the transformer, or unbiased heads", default=4, least=1)
    entropy_weight: float = option("weight of (92e), of the Semi-formal Transformer", default=0.01, least=0)
    learning_rate: float = option("AdamW's learning rate", least=0)
    weight_decay: float = option("AdamW's weight decay", default=0.01, least=0)
    scheduler: str = option("the schedule of the learning rate", default="constant_with_warmup", known=SCHEDULERS)
    warmup_steps: int = option("steps over which the schedule warms up", default=20, least=0)
    max_grad_norm: float = option("gradients are clipped to this norm", default=1.0, least=0)
    data_seed: int = option("seed of the data set", default=0, least=0)
    num_train: int = option("training texts", default=20_000, least=1)
    num_eval: int = option("texts of every other split", least=1)
    exceptions: bool = option("words that take a property away from the whole text", default=False)
    max_minutes: float = option("end the training after this time; 0: after --steps", default=0.0, least=0)
