"""Muon for the matrices of the blocks and AdamW for the rest, as one optimizer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Muon, Optimizer

from .settings import BELIEF_STATES, Run


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


class MuonOfParts(Muon):
    """Muon that orthogonalises the parts of a fused projection one by one, as if they were matrices of their own.

    GPT-2 keeps queries, keys and values in one matrix; together they would share the directions of one step.

    Args:
        matrices: parameters, already on their device, into how many equal parts of columns each is cut, and the
            learning rate of its parts.
        options: of `torch.optim.Muon`.
    """

    def __init__(self, matrices: Iterable[tuple[nn.Parameter, int, float]], **options: Any) -> None:
        self.views, groups = [], defaultdict[float, list[nn.Parameter]](list)
        for parameter, count, rate in matrices:
            # The views share the parameters' memory, so a step of theirs changes the parameters.
            parts = [nn.Parameter(part) for part in parameter.data.chunk(count, 1)]
            self.views.append((parameter, parts))
            groups[rate] += parts
        super().__init__([{"params": parts, "lr": rate} for rate, parts in groups.items()], **options)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step, from the gradients of the whole parameters."""
        for parameter, parts in self.views:
            if parameter.grad is not None:
                for part, grad in zip(parts, parameter.grad.chunk(len(parts), 1), strict=True):
                    part.grad = grad
        super().step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Also of the whole parameters."""
        super().zero_grad(set_to_none)
        for parameter, _ in self.views:
            parameter.grad = None


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
    muon = MuonOfParts(
        (
            (named[name], 3 if name.endswith("attn.c_attn.weight") else 1, run.muon_learning_rate * share(run, name))
            for name in named
            if name in matrices
        ),
        weight_decay=run.weight_decay,
        adjust_lr_fn="match_rms_adamw",
    )
    return Together(muon, AdamW([named[name] for name in named if name not in matrices], **adamw))


def share(run: Run, name: str) -> float:
    """The share of Muon's learning rate that a matrix of this name has: less in later blocks of what reads the prompt.

    Each block can find one more node of a path. If an early node is found in a late block, none is left for the next.
    """
    block = re.search(r"(?:forward_encoder|transformer)\.h\.(\d+)\.", name)
    last = (run.layers if run.model in BELIEF_STATES else run.baseline_layers) - 1
    return 1 - run.depth_decay * int(block[1]) / last if block and last else 1.0


def of_muon(name: str) -> bool:
    """Whether a matrix of this name belongs to a block, or to the first layer of the text head."""
    return ".h." in name or "text_head.prefix." in name or "text_head.suffix." in name
