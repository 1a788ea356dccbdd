"""How far the training of an ensemble has come, seed by seed; saved and restored with every checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Progress:
    """The state of a run besides its weights and its optimizer; every list holds one entry a seed.

    Attributes:
        seeds: of the members.
        step, epoch, seconds: how far, and for how long.
        settled_at: the step at which the seed settled, None while it has not.
        changed_at: the step at which its symbols last changed.
        symbols: the binarized theta of the last measurement, [members, heads, actions, 3].
        best_accuracy, best_theta, best_at: the best training accuracy, the theta that had it, and when that was or when
            a head was last drawn anew.
        redraws: how often that was.
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
    def of(cls, seeds: Sequence[int]) -> Progress:
        """The beginning."""
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

    def update(self, theta: Tensor, accuracy: Tensor, patience: int | None) -> bool:
        """Takes note of a measurement.

        Args:
            theta: [members, heads, actions, 3].
            accuracy: of the binarized theta on the training traces, [members].
            patience: imperfect seeds settle after this many steps without a change; None: never.

        Returns:
            Whether every seed has settled.
        """
        theta = theta.detach().cpu().clamp(0, 1)
        symbols = theta >= 0.5
        if self.symbols is None or self.best_theta is None:
            self.symbols, self.best_theta = ~symbols, theta.clone()
        for seed, reached in enumerate(accuracy.tolist()):
            if reached > self.best_accuracy[seed]:
                self.best_at[seed] = self.step
            if reached >= self.best_accuracy[seed]:
                self.best_accuracy[seed] = reached
                self.best_theta[seed] = theta[seed]
            if not torch.equal(symbols[seed], self.symbols[seed]):
                self.changed_at[seed], self.settled_at[seed] = self.step, None
            elif self.settled_at[seed] is None and (
                reached == 1 or (patience is not None and self.step - self.changed_at[seed] >= patience)
            ):
                self.settled_at[seed] = self.step
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
