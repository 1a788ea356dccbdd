"""A hypothesis about hidden states: for every cell, which filler each role is bound to (App. L)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hf_mech.programs.tensor_products.errors import HypothesisError

Filler = str | None


@dataclass(frozen=True)
class Hypothesis:
    """The bindings r:f of every cell. Make it with [`Hypothesis.of`].

    Roles whose fillers come from one set are a group gamma of App. L; a filler has one embedding in all roles of its
    group.

    Args:
        roles: the names of the roles.
        groups: the group of each role.
        fillers: for every group its fillers; None, nil, is a filler like any other.
        bindings: for every cell and role the index of the filler within the role's group, [cells, roles].
    """

    roles: tuple[str, ...]
    groups: tuple[int, ...]
    fillers: tuple[tuple[Filler, ...], ...]
    bindings: Tensor

    @classmethod
    def of(
        cls,
        cells: Sequence[Mapping[str, Filler]],
        roles: Iterable[str] | None = None,
        share: Iterable[Iterable[str]] = (),
    ) -> Hypothesis:
        """The hypothesis that cells have these states.

        Args:
            cells: each cell's state, role -> filler, such as a machine of `hf_mech.programs.psl` traces them.
            roles: those that are looked at, by default all of the first cell.
            share: sets of roles that have their fillers in common; any other role is a group by itself.

        Raises:
            HypothesisError: no cells, a role that a cell lacks, or a role in two groups.

        Example:

        ```python
        >>> cells = [{"region": "XQ", "before": None}, {"region": "CQ", "before": "XQ"}]
        >>> hypothesis = Hypothesis.of(cells, share=[("region", "before")])
        >>> hypothesis.fillers, hypothesis.bindings.tolist()
        (((None, 'CQ', 'XQ'),), [[2, 0], [1, 2]])

        ```
        """
        if not cells:
            raise HypothesisError("A hypothesis needs the states of some cells, got none.")
        names = tuple(cells[0] if roles is None else roles)
        if lacking := [name for name in names if any(name not in cell for cell in cells)]:
            raise HypothesisError(f"Every cell must bind every role; some bind no {', '.join(lacking)}.")
        sets = [tuple(name for name in names if name in set(group)) for group in share]
        together = [name for group in sets for name in group]
        if len(set(together)) < len(together):
            raise HypothesisError(f"A role has its fillers in one group, got {sorted(together)} in all.")
        sets = [group for group in sets if group] + [(name,) for name in names if name not in together]
        group_of = {name: index for index, group in enumerate(sets) for name in group}
        fillers = tuple(
            tuple(sorted({cell[name] for cell in cells for name in group}, key=lambda value: (value or "", value)))
            for group in sets
        )
        indices = [{filler: index for index, filler in enumerate(own)} for own in fillers]
        bindings = [[indices[group_of[name]][cell[name]] for name in names] for cell in cells]
        return cls(names, tuple(group_of[name] for name in names), fillers, torch.tensor(bindings))

    def __len__(self) -> int:
        return len(self.bindings)

    def take(self, cells: Tensor) -> Hypothesis:
        """The hypothesis about some cells: indices, or a boolean [cells]."""
        return replace(self, bindings=self.bindings[cells])

    def shuffled(self, generator: torch.Generator) -> Hypothesis:
        """The control: every cell gets the whole state of another one, so each role keeps its counts of fillers."""
        return self.take(torch.randperm(len(self), generator=generator))

    def number(self, role: int) -> int:
        """The number of fillers that a role may have."""
        return len(self.fillers[self.groups[role]])

    @property
    def offsets(self) -> list[int]:
        """For every role the first of its columns in `one_hot`, and at the end their number."""
        offsets = [0]
        for role in range(len(self.roles)):
            offsets.append(offsets[-1] + self.number(role))
        return offsets

    def one_hot(self) -> Tensor:
        """Each cell's TPR in the fully local embedding (68): a one at every binding, [cells, bindings], float64."""
        columns = self.bindings + torch.tensor(self.offsets[:-1])
        return torch.zeros(len(self), self.offsets[-1], dtype=torch.float64).scatter_(1, columns, 1.0)
