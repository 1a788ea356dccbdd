"""The cells of a lifted theta, patterns of actions that a predicate may have, and theta as a lifted domain."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .strips_domain import StripsError
from .strips_lifted import LiftedAction, LiftedAtom, LiftedDomain


class Cell(NamedTuple):
    """A pattern: `Cell("on", "stack", (0, 1))` is the atom on(first, second) of every action stack(first, second)."""

    predicate: str
    action: str
    places: tuple[int, ...]


class Cells:
    """Every pattern whose types fit its predicate's, in the order of theta: by predicate, action, places.

    A parameter fits an argument if one's type is the other's or stands above it, as `object` does above all.

    Args:
        parameters: the types of each action's parameters, in the order of the actions' ids.
        predicates: the types of each predicate's arguments, in the order of the predicates.
        supertypes: the parent of each type that has one.
    """

    def __init__(
        self,
        parameters: Mapping[str, Sequence[str]],
        predicates: Mapping[str, Sequence[str]],
        supertypes: Mapping[str, str],
    ):
        self.parameters = {name: tuple(types) for name, types in parameters.items()}
        self.predicates = {name: tuple(types) for name, types in predicates.items()}
        self.supertypes = dict(supertypes)
        self.arity = max(map(len, self.parameters.values()), default=0)
        self._above = {type_: _above(type_, self.supertypes) for type_ in self._types()}

    @classmethod
    def of(cls, config: Any) -> Cells:
        """Those of a lifted [`StripsTransformerConfig`]."""
        return cls(
            {name: config.parameters[name] for name in config.actions},
            {name: config.predicates[name] for name in config.propositions},
            config.supertypes or {},
        )

    def _types(self) -> set[str]:
        return {type_ for types in (*self.parameters.values(), *self.predicates.values()) for type_ in types}

    def _fitting(self, action: str, predicate: str) -> list[list[int]]:
        """The places of an action that fit each argument of a predicate."""
        return [
            [
                place
                for place, type_ in enumerate(self.parameters[action])
                if argument in self._above[type_] or type_ in self._above[argument] or "object" in (argument, type_)
            ]
            for argument in self.predicates[predicate]
        ]

    @property
    def count(self) -> int:
        """How many there are, without making them."""
        pairs = itertools.product(self.predicates, self.parameters)
        return sum(int(np.prod([len(fit) for fit in self._fitting(a, p)], dtype=object)) for p, a in pairs)

    @cached_property
    def all(self) -> list[Cell]:
        """The cells in the order of theta."""
        return [
            Cell(predicate, action, places)
            for predicate, action in itertools.product(self.predicates, self.parameters)
            for places in itertools.product(*self._fitting(action, predicate))
        ]

    @cached_property
    def index(self) -> dict[Cell, int]:
        """The place of each cell in theta."""
        return {cell: number for number, cell in enumerate(self.all)}

    @cached_property
    def predicate(self) -> np.ndarray:
        """The predicate of each cell, [cells]."""
        number = {name: i for i, name in enumerate(self.predicates)}
        return np.array([number[cell.predicate] for cell in self.all], np.int64)

    @cached_property
    def places(self) -> np.ndarray:
        """The places of each cell, [cells, most arguments], -1 beyond the predicate's."""
        return _padded([cell.places for cell in self.all])

    @cached_property
    def _own_cells(self) -> list[list[int]]:
        own: dict[str, list[int]] = {name: [] for name in self.parameters}
        for number, cell in enumerate(self.all):
            own[cell.action].append(number)
        return list(own.values())

    @cached_property
    def of_action(self) -> np.ndarray:
        """The cells of each action, [actions, most cells of one], -1 beyond them."""
        return _padded(self._own_cells)

    @cached_property
    def rank(self) -> np.ndarray:
        """The number of each cell among those of its action and predicate, [cells]."""
        seen: dict[tuple[str, str], int] = {}
        ranks = []
        for cell in self.all:
            ranks.append(seen.get(cell[:2], 0))
            seen[cell[:2]] = ranks[-1] + 1
        return np.array(ranks, np.int64)

    def atoms(
        self, ids: Sequence[int], objects: Sequence[Sequence[int]]
    ) -> dict[tuple[int, ...], dict[int, list[int]]]:
        """The ground atoms of some ground actions: for each, the actions that match it, and the cells that do.

        Args:
            ids: of the actions; negative ones have no atom.
            objects: of each action.

        Returns:
            For each atom (its predicate's number and its objects), for each action's place in `ids` the cells.
        """
        found: dict[tuple[int, ...], dict[int, list[int]]] = {}
        for position, (action, own) in enumerate(zip(ids, objects, strict=True)):
            for cell in self._own_cells[action] if action >= 0 else ():
                atom = (int(self.predicate[cell]), *(int(own[place]) for place in self.all[cell].places))
                found.setdefault(atom, {}).setdefault(position, []).append(cell)
        return found

    # ------------------------------------------------------------------------------------------- symbols and weights

    def theta_of(self, domain: LiftedDomain) -> Tensor:
        """Eq. 8-10 for each cell, [cells, 3]: query, key and value of a domain.

        Raises:
            StripsError: an atom whose types do not fit.
        """
        theta = torch.zeros(len(self.all), 3)
        for action in domain.actions:
            for column, atoms in ((0, action.pre), (1, action.add | action.delete), (2, action.delete - action.add)):
                for atom in atoms:
                    cell = Cell(atom.predicate, action.name, atom.places)
                    if cell not in self.index:
                        raise StripsError(
                            f"Action {action.name!r} of domain {domain.name!r}: its parameters {action.parameters} at "
                            f"the places {atom.places} do not fit {atom.predicate!r}, which takes "
                            f"{self.predicates[atom.predicate]}; mend the types."
                        )
                    theta[self.index[cell], column] = 1
        return theta

    def domain_of(self, bits: Tensor, name: str) -> LiftedDomain:
        """Definition 5: the domain of a binarized theta, bits [cells, 3]."""
        chosen: dict[str, tuple[set[LiftedAtom], ...]] = {name: (set(), set(), set()) for name in self.parameters}
        for cell, (query, key, value) in zip(self.all, bits.bool().tolist(), strict=True):
            pre, add, delete = chosen[cell.action]
            atom = LiftedAtom(cell.predicate, cell.places)
            if query:
                pre.add(atom)
            if key:
                (delete if value else add).add(atom)
        actions = tuple(
            LiftedAction(action, self.parameters[action], *map(frozenset, sets)) for action, sets in chosen.items()
        )
        return LiftedDomain(self.predicates, actions, name, self.supertypes)


def _above(type_: str, supertypes: Mapping[str, str]) -> list[str]:
    """The type and its ancestors. Raises StripsError for a type that is its own ancestor."""
    found = [type_]
    while (parent := supertypes.get(found[-1])) is not None:
        if parent in found:
            raise StripsError(f"supertypes: {parent!r} stands above itself, {' < '.join([*found, parent])}.")
        found.append(parent)
    return found


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """The rows as one array [rows, longest], -1 beyond a row's end."""
    out = np.full((len(rows), max(map(len, rows), default=0)), -1, np.int64)
    for number, row in enumerate(rows):
        out[number, : len(row)] = row
    return out
