"""Optimizers that torch lacks: several as one, and Muon for the matrices of the blocks beside AdamW for the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer


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
        options: of `torch.optim.Muon`; the learning rates are adjusted as by its `match_rms_adamw`.
    """

    def __init__(self, matrices: Iterable[tuple[nn.Parameter, int, float]], **options: Any) -> None:
        self.views, groups = [], defaultdict[float, list[nn.Parameter]](list)
        for parameter, count, rate in matrices:
            # The views share the parameters' memory, so a step of theirs changes the parameters.
            parts = [nn.Parameter(part) for part in parameter.data.chunk(count, 1)]
            self.views.append((parameter, parts))
            groups[rate] += parts
        groups_of_rates = [{"params": parts, "lr": rate} for rate, parts in groups.items()]
        super().__init__(groups_of_rates, adjust_lr_fn="match_rms_adamw", **options)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step, from the gradients of the whole parameters."""
        for parameter, parts in self.views:
            if parameter.grad is not None:
                for part, grad in zip(parts, parameter.grad.chunk(len(parts), 1), strict=True):
                    part.grad = grad
        if self.views and self.views[0][0].is_cuda:
            super().step(closure)
        else:
            self._step_on_cpu()

    def _step_on_cpu(self) -> None:
        """torch's step, but in float32 and for all matrices of a shape at once.

        torch orthogonalises in bfloat16, one matrix after another. A processor without instructions for that type needs
        three times as long for it as for the rest of a training step.
        """
        for group in self.param_groups:
            shapes = defaultdict[torch.Size, list[nn.Parameter]](list)
            for part in group["params"]:
                if part.grad is not None:
                    shapes[part.shape].append(part)
            for shape, parts in shapes.items():
                grads = torch.stack([part.grad for part in parts])  # type: ignore[misc]
                buffers = [self.state[part].setdefault("momentum_buffer", torch.zeros_like(part)) for part in parts]
                momenta = torch.stack(buffers).lerp_(grads, 1 - group["momentum"])
                updates = orthogonalized(grads.lerp(momenta, group["momentum"]), group)
                rate = 0.2 * max(shape) ** 0.5 * group["lr"]  # `match_rms_adamw`
                for part, buffer, momentum, update in zip(parts, buffers, momenta, updates, strict=True):
                    buffer.copy_(momentum)
                    part.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=rate)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Also of the whole parameters."""
        super().zero_grad(set_to_none)
        for parameter, _ in self.views:
            parameter.grad = None


def orthogonalized(matrices: Tensor, group: Mapping[str, Any]) -> Tensor:
    """Each matrix with all singular values near 1, by Newton and Schulz's iteration as `torch.optim.Muon` has it.

    Args:
        matrices: [count, rows, columns].
        group: Muon's `ns_coefficients`, `ns_steps` and `eps`.
    """
    a, b, c = group["ns_coefficients"]
    tall = matrices.shape[1] > matrices.shape[2]
    found = matrices.mT if tall else matrices
    found = found / found.norm(dim=(1, 2), keepdim=True).clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.mT if tall else found


def muon_and_adamw(
    named: Mapping[str, nn.Parameter], rates: Mapping[str, float], *, weight_decay: float, **adamw: Any
) -> Together:
    """Muon for some matrices, and AdamW for the rest.

    Args:
        named: all parameters by name, already on their device.
        rates: Muon's learning rate by name, of the matrices that it trains. Its steps are as large as AdamW's.
        weight_decay: of both.
        adamw: other options of AdamW, with its learning rate `lr`.
    """
    muon = MuonOfParts(
        ((named[name], 3 if name.endswith("attn.c_attn.weight") else 1, rate) for name, rate in rates.items()),
        weight_decay=weight_decay,
    )
    rest = [parameter for name, parameter in named.items() if name not in rates]
    return Together(muon, AdamW(rest, weight_decay=weight_decay, **adamw))


class Chosen(Protocol):
    """The settings of a run that choose its optimizer."""

    @property
    def optimizer(self) -> str: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def muon_learning_rate(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...


def chosen_optimizer(
    run: Chosen, model: nn.Module, share: Callable[[str], float] = lambda name: 1.0, **adamw: Any
) -> Optimizer:
    """The run's optimizer for a model's parameters: AdamW, or Muon for the matrices of the blocks beside it.

    Args:
        run: its settings.
        model: already on its device.
        share: the share of Muon's learning rate that a matrix of this name has.
        adamw: other options of AdamW.
    """
    named = dict(model.named_parameters())
    if run.optimizer == "adamw":
        return AdamW(named.values(), lr=run.learning_rate, weight_decay=run.weight_decay, **adamw)
    matrices = (name for name, parameter in named.items() if in_a_block(name, parameter))
    rates = {name: run.muon_learning_rate * share(name) for name in matrices}
    return muon_and_adamw(named, rates, lr=run.learning_rate, weight_decay=run.weight_decay, **adamw)


def in_a_block(name: str, parameter: nn.Parameter) -> bool:
    """Whether it is a matrix of a block, of the first layer of the Belief State Transformer's text head, or of what an
    objective of `hf_mech.lookahead` adds."""
    known = (".h.", "text_head.prefix.", "text_head.suffix.", "dynamics.", "heads.", "fetch.")
    return parameter.dim() == 2 and any(part in name for part in known)
