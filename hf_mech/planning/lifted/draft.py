"""An instance in the making: objects and true atoms, and the shapes that many instances share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hf_mech.data.random_numbers import Die
from hf_mech.planning.lifted.pddl import GroundAtom


class Draft:
    """Objects and true atoms of an instance in the making.

    Args:
        big: whether it is the big instance.
        die: the random numbers.
    """

    def __init__(self, big: bool, die: Die) -> None:
        self.big, self.die = big, die
        self.objects: dict[str, list[str]] = {}
        self.initial: set[GroundAtom] = set()

    def add(self, type_: str, small: int, big: int, prefix: str = "", first: int = 1) -> list[str]:
        """New objects of a type, so many in the small and in the big instance: `c1`, `c2`, ..."""
        own = self.objects.setdefault(type_, [])
        names = [f"{prefix or type_}{first + len(own) + i}" for i in range(big if self.big else small)]
        own += names
        return names

    def true(self, *atoms: str) -> None:
        """True atoms, as `on b1 b2`."""
        for atom in atoms:
            predicate, *objects = atom.split()
            self.initial.add((predicate, tuple(objects)))

    def one(self, items: Sequence[str]) -> str:
        """One of the items, each as likely."""
        return items[self.die.below(len(items))]

    def some(self, items: Sequence[str], count: int) -> list[str]:
        """So many of the items, in a random order."""
        order = list(items)
        self.die.shuffle(order)
        return order[:count]

    def each(self, items: Sequence[str], atom: str, places: Sequence[str]) -> None:
        """Every item at a random place: `at {} {}`."""
        for item in items:
            self.true(atom.format(item, self.one(places)))

    def roads(self, predicate: str, places: Sequence[str], more: int = 1) -> None:
        """A random tree and `more` other roads, all both ways."""
        order = self.some(places, len(places))
        pairs = [(order[i], order[self.die.below(i)]) for i in range(1, len(order))]
        pairs += [(a, b) for a, b in (self.some(places, 2) for _ in range(more))]
        for a, b in pairs:
            self.true(f"{predicate} {a} {b}", f"{predicate} {b} {a}")

    def order(self, predicate: str, items: Sequence[str], every: bool = False) -> None:
        """Each item and its successor; with `every`, each item and all after it."""
        for i, item in enumerate(items):
            self.true(*(f"{predicate} {item} {other}" for other in (items[i + 1 :] if every else items[i + 1 : i + 2])))

    def grid(self, type_: str, small: tuple[int, int], big: tuple[int, int]) -> list[list[str]]:
        """Objects in rows: `x1-1`, `x2-1`, ..."""
        columns, rows = big if self.big else small
        cells = [[f"x{x}-{y}" for x in range(1, columns + 1)] for y in range(1, rows + 1)]
        self.objects[type_] = [cell for row in cells for cell in row]
        return cells


def lines(cells: list[list[str]]) -> list[list[str]]:
    """The rows and columns of a grid."""
    return [*cells, *(list(column) for column in zip(*cells, strict=True))]


def neighbours(draft: Draft, predicate: str, cells: list[list[str]]) -> None:
    """Cells side by side, both ways."""
    for line in lines(cells):
        for a, b in pairwise(line):
            draft.true(f"{predicate} {a} {b}", f"{predicate} {b} {a}")
