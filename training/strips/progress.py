"""How far the training of an ensemble has come, seed by seed; saved and restored with every checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class EnsembleProgress:
    """The state of a run besides its weights and its optimizer; every list holds one entry a seed.

    Attributes:
        seeds: of the members.
        step, epoch, seconds: how far, and for how long.
        settled_at: the step at which the seed settled; None while it has not, and again when its symbols change.
        changed_at: the step at which its symbols last changed.
        symbols: the binarized theta of the last measurement, [members, heads, actions, 3]; None before the first.
        best_accuracy: the best training accuracy.
        best_theta: the latest theta that had it.
        best_at: the step at which it was reached, or, if later, that of the last redraw.
        redraws: how often a head was drawn anew.
    """

    seeds: list[int]
    step: int
    epoch: int
    seconds: float
    settled_at: list[int | None]
    changed_at: list[int]
    symbols: Tensor | None
    best_accuracy: list[float]
    best_theta: Tensor | None
    best_at: list[int]
    redraws: list[int]

    @classmethod
    def of(cls, seeds: Sequence[int]) -> EnsembleProgress:
        """The progress before the first step."""
        count = len(seeds)
        return cls(
            seeds=list(seeds),
            step=0,
            epoch=0,
            seconds=0.0,
            settled_at=[None] * count,
            changed_at=[0] * count,
            symbols=None,
            best_accuracy=[-1.0] * count,
            best_theta=None,
            best_at=[0] * count,
            redraws=[0] * count,
        )

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def update(self, theta: Tensor, accuracy: Tensor, patience: int | None, extra_steps: int = 0) -> bool:
        """Takes note of a measurement. A seed settles once it is perfect and its symbols are those of the last one.

        Args:
            theta: [members, heads, actions, 3].
            accuracy: of the binarized theta on the training traces, [members].
            patience: imperfect seeds settle, too, after this many steps without a change; None: never.
            extra_steps: if not 0, a seed settles so many steps after it was perfect for the first time instead.

        Returns:
            Whether every seed has settled.
        """
        theta = theta.detach().cpu().clamp(0, 1)
        symbols = theta >= 0.5
        if self.symbols is None or self.best_theta is None:
            self.symbols, self.best_theta = ~symbols, theta.clone()  # all symbols count as changed
        for place, reached in enumerate(accuracy.tolist()):
            if reached > self.best_accuracy[place]:
                self.best_at[place] = self.step
            if reached >= self.best_accuracy[place]:
                self.best_accuracy[place] = reached
                self.best_theta[place] = theta[place]
            unchanged = torch.equal(symbols[place], self.symbols[place])
            if not unchanged:
                self.changed_at[place] = self.step
            if extra_steps:
                done = self.best_accuracy[place] == 1 and self.step - self.best_at[place] >= extra_steps
            else:
                still = self.step - self.changed_at[place]
                done = unchanged and (reached == 1 or (patience is not None and still >= patience))
            if not done:
                self.settled_at[place] = None
            elif self.settled_at[place] is None:
                self.settled_at[place] = self.step
        self.symbols = symbols
        return None not in self.settled_at

    @torch.no_grad()
    def redraw(self, theta: Tensor, optimizer: torch.optim.Optimizer, after: int) -> None:
        """Draws a head anew in every seed whose best accuracy, short of 1, is `after` steps old.

        The seed goes back to its best theta first. Which head, and what it becomes, is drawn from the seed's own
        numbers, so a seed does not depend on the others.
        """
        assert self.best_theta is not None  # there was a measurement
        moments = optimizer.state[theta]
        for place, (seed, best) in enumerate(zip(self.seeds, self.best_accuracy, strict=True)):
            if best == 1 or self.step - self.best_at[place] < after:
                continue
            dice = torch.Generator().manual_seed(1_000_003 * (seed + 1) + self.redraws[place])
            head = int(torch.randint(theta.shape[1], (1,), generator=dice))
            theta[place] = self.best_theta[place].to(theta.device)
            theta[place, head] = torch.rand(theta.shape[2:], generator=dice).to(theta.device)
            moments["exp_avg"][place] = 0
            moments["exp_avg_sq"][place, head] = 0
            self.best_at[place] = self.step
            self.redraws[place] += 1
