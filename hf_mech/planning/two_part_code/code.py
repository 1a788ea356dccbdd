"""The two-part code: how many bits a domain and the traces, told with its help, take.

    E = W w + sum over positions t of log2 |S(t)| + sum over cells of price(pre, effect)

S(t) is the set of actions that the choice of a_t is made among: those that the domain calls inapplicable after the
actions before t (Eq. 6) if a_t is one of them, else those that it calls applicable. w is the number of positions whose
label is not what the domain says. Cells that no trace determines cost bits, so the shortest code leaves them empty.

The second term is an **assumption** about the traces: each action of a walk is uniform among the applicable ones, and
the last action of a negative trace is uniform among the inapplicable ones. `hf_mech/strips_traces` draws them so, but
applicable in the hidden state is narrower than applicable as far as the trace tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...models.strips.strips_domain import StripsDomain
from ...models.strips.strips_errors import StripsError


class TwoPartCodeError(StripsError):
    """Traces or settings from which no domain can be learned."""


@dataclass(frozen=True)
class TwoPartCode:
    """The prices of the code, and the annealing that looks for the shortest one.

    Args:
        precondition, add, delete: bits of a cell with only this.
        add_precondition, delete_precondition: bits of a cell that is a precondition, too. A deleted precondition is the
            common case of planning, and the cheapest of the two.
        label_noise: the share of labels to expect wrong; 0: a wrong label is never worth its price. A wrong label costs
            log2((1 - noise) / noise) bits.
        sweeps: for how long to anneal.
        temperature: the first and the last one, in bits.
        first_wrong_label: the price of a wrong label at the beginning, in bits.

    Raises:
        TwoPartCodeError: a number out of its range.
    """

    precondition: float = 10.0
    add: float = 10.0
    delete: float = 12.0
    add_precondition: float = 17.0
    delete_precondition: float = 11.0
    label_noise: float = 0.0
    sweeps: int = 400
    temperature: tuple[float, float] = (8.0, 0.8)
    first_wrong_label: float = 20.0

    def __post_init__(self) -> None:
        if not 0 <= self.label_noise < 0.5:
            raise TwoPartCodeError(
                f"label_noise must be 0 or more and less than 0.5, got {self.label_noise}; with half of the labels "
                "wrong they say nothing."
            )
        if self.sweeps < 1:
            raise TwoPartCodeError(f"sweeps must be 1 or more, got {self.sweeps}.")
        first, last = self.temperature
        if not 0 < last <= first:
            raise TwoPartCodeError(f"temperature must fall, and stay above 0; got {first} to {last}.")
        for name in ("precondition", "add", "delete", "add_precondition", "delete_precondition", "first_wrong_label"):
            if not 0 <= getattr(self, name) < math.inf:
                raise TwoPartCodeError(f"{name} is a number of bits, 0 or more, got {getattr(self, name)}.")

    @property
    def prices(self) -> list[list[float]]:
        """The bits of a cell, [not a precondition / a precondition][no effect / add / delete]."""
        return [[0.0, self.add, self.delete], [self.precondition, self.add_precondition, self.delete_precondition]]

    @property
    def wrong_label(self) -> float:
        """The bits of a wrong label at the end."""
        return 1000.0 if self.label_noise == 0 else math.log2((1 - self.label_noise) / self.label_noise)


def code_length_reference(
    domain: StripsDomain, traces: Sequence[Sequence[int]], labels: Sequence[Sequence[int]], code: TwoPartCode
) -> float:
    """E, position by position as the formula has it.

    Args:
        domain: any domain.
        traces: actions by index.
        labels: 1 where the action is inapplicable.
        code: the prices.
    """
    bits = 0.0
    for trace, told in zip(traces, labels, strict=True):
        falsified = 0
        for action, label in zip(trace, told, strict=True):
            inapplicable = [bool(pre & falsified) for pre in domain.pre_masks]
            bits += math.log2(inapplicable.count(inapplicable[action]))
            bits += code.wrong_label * (inapplicable[action] != bool(label))
            falsified = domain.advance(falsified, action)
    for known in domain.actions:
        for atom in domain.propositions:
            effect = 1 if atom in known.add else 2 if atom in known.delete else 0
            bits += code.prices[atom in known.pre][effect]
    return bits
