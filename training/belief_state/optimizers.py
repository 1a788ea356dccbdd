"""Muon for the matrices of the blocks and AdamW for the rest, as one optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Muon, Optimizer

from .settings import Run


class Together(Optimizer):
    """Several optimizers, each with parameters of its own, that a scheduler and a checkpoint see as one.

    Args:
        optimizers: at least one.
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        self.optimizers = optimizers
        super().__init__([{"params": group["params"]} for part in optimizers for group in part.param_groups], {})
        self._join()

    def _join(self) -> None:
        """A scheduler changes the learning rates in the parts' own groups."""
        self.param_groups = [group for part in self.optimizers for group in part.param_groups]

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step of each; a closure is refused."""
        if closure is not None:
            raise ValueError("Several optimizers take no closure together; call step() without one.")
        for part in self.optimizers:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """The states of the parts, in their order."""
        return {"parts": [part.state_dict() for part in self.optimizers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the states of [`state_dict`]."""
        for part, state in zip(self.optimizers, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self._join()


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
    matrices = {name for name, parameter in named.items() if parameter.dim() == 2 and of_muon(name)}
    muon = Muon(
        [named[name] for name in named if name in matrices],
        lr=run.muon_learning_rate,
        weight_decay=run.weight_decay,
        adjust_lr_fn="match_rms_adamw",
    )
    return Together(muon, AdamW([named[name] for name in named if name not in matrices], **adamw))


def of_muon(name: str) -> bool:
    """Whether a matrix of this name belongs to a block, or to the first layer of the text head."""
    return ".h." in name or "text_head.prefix." in name or "text_head.suffix." in name
