"""The plan for testing a production in the backend `gather`: its matches, sorted by the cells that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .dat_program import Match, Operand


@dataclass(frozen=True)
class Source:
    """A side of a match that reads a register, perhaps through a function, perhaps negated."""

    register: int
    function: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class Pair:
    """A register of the cell that is updated against one of the cell that is read."""

    query: Source
    key: Source


class MatchPlan:
    """The matches of a production, or of the condition that ends a repeat block, sorted by the cells they read.

    Args:
        matches: all of them.
        position: the index of the position register, whose value identifies the cell.

    Attributes:
        updated: tests of only the cell that is updated, a register against constants.
        read: tests of only the cell that is read.
        pairs: tests of both cells.
        possible: False if a test of two constants fails, so that no cell ever fires.
        located: the side that gives the position of the cell to be read; its match is not in the other attributes.
        itself: the cell reads itself.
    """

    def __init__(self, matches: Sequence[Match], position: int):
        self.updated: list[tuple[Source, Operand]] = []
        self.read: list[tuple[Source, Operand]] = []
        self.pairs: list[Pair] = []
        self.located: Source | None = None
        self.possible = True
        at_position = Source(position)
        for match in matches:
            query, key = _source(match.query), _source(match.key)
            if query is None:
                if key is None:
                    self.possible = self.possible and _constants_match(match)
                else:
                    self.read.append((key, match.query))
            elif key is None:
                self.updated.append((query, match.key))
            elif key == at_position and not query.negated and self.located is None:
                self.located = query
            else:
                self.pairs.append(Pair(query, key))
        self.itself = self.located == at_position


def _source(operand: Operand) -> Source | None:
    """The side as a register; None for constants."""
    return None if operand.register is None else Source(operand.register, operand.function, operand.negated)


def _constants_match(match: Match) -> bool:
    """Whether two sides that are constants match."""
    among = bool(set(match.query.values) & set(match.key.values))
    return among != (match.query.negated or match.key.negated)
