"""Several optimizers as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer


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

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Of each."""
        for part in self.optimizers:
            part.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The states of the parts, in their order."""
        return {"parts": [part.state_dict() for part in self.optimizers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the states of [`state_dict`]."""
        for part, state in zip(self.optimizers, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self._join()
