"""The optimizer of a run: AdamW, or Muon for the matrices of the blocks and AdamW for the rest."""

from __future__ import annotations

import re
from typing import Any

from torch import nn
from torch.optim import AdamW, Optimizer

from ..engine.optimizers import in_a_block, muon_and_adamw
from .settings import BELIEF_STATES, Run


def make_optimizer(run: Run, model: nn.Module) -> Optimizer:
    """The run's optimizer for a model's parameters."""
    named = dict(model.named_parameters())
    adamw: dict[str, Any] = {
        "lr": run.learning_rate,
        "betas": (0.9, run.beta2),
        "weight_decay": run.weight_decay,
        "fused": True,
    }
    if run.optimizer == "adamw":
        return AdamW(named.values(), **adamw)
    rates = {
        name: run.muon_learning_rate * share(run, name)
        for name, parameter in named.items()
        if in_a_block(name, parameter)
    }
    return muon_and_adamw(named, rates, **adamw)


def share(run: Run, name: str) -> float:
    """The share of Muon's learning rate that a matrix of this name has: less in later blocks of what reads the prompt.

    The nodes of a path are found one after another, from the goal, each in a block behind that of the last one. The
    rates are to let early blocks find the first ones; in trials, it took seeds that had stood still further.
    """
    block = re.search(r"(?:forward_encoder|transformer)\.h\.(\d+)\.", name)
    last = (run.layers if run.model in BELIEF_STATES else run.baseline_layers) - 1
    return 1 - run.depth_decay * int(block[1]) / last if block and last else 1.0
