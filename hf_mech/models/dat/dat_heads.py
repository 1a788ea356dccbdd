"""Productions as heads of one layer, (90a): which do not conflict, so that running them at once has one meaning."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from .dat_errors import DATConfigError
from .dat_program import DATProgram, Layer

Test = tuple[int, frozenset[int], bool]
"""A register of N, the constants it is compared with, and whether they are excluded."""


def reads(production: Layer) -> set[int]:
    """The registers that its query, key and values read, in any cell."""
    operands = [side for match in production.matches for side in (match.query, match.key)]
    operands += [source for _, source in production.writes]
    return {operand.register for operand in operands if operand.register is not None}


def writes(production: Layer) -> set[int]:
    """The registers that it assigns."""
    return {target for target, _ in production.writes}


def conflicting(one: Layer, other: Layer) -> set[int]:
    """The registers that two productions both write; none if they never update the same cell of the same input.

    They do not if both compare a register of N with constants, and no value passes the tests of both.
    """
    shared = writes(one) & writes(other)
    return set() if shared and _apart([*_tests_of_N(one), *_tests_of_N(other)]) else shared


def _tests_of_N(production: Layer) -> list[Test]:
    return [
        (match.query.register, frozenset(match.key.values), match.query.negated or match.key.negated)
        for match in production.matches
        if match.query.register is not None and match.query.function is None and match.key.register is None
    ]


def _apart(tests: Iterable[Test]) -> bool:
    """Whether no cell passes all of them."""
    allowed: dict[int, list[frozenset[int]]] = {}
    excluded: dict[int, frozenset[int]] = {}
    for register, values, negated in tests:
        if negated:
            excluded[register] = excluded.get(register, frozenset()) | values
        else:
            allowed.setdefault(register, []).append(values)
    return any(
        not frozenset.intersection(*sets) - excluded.get(register, frozenset()) for register, sets in allowed.items()
    )


def check_heads(program: DATProgram) -> None:
    """Refuses a layer whose heads conflict.

    Raises:
        DATConfigError: two heads of a layer write the same register, and may do so in the same cell.
    """
    for layer in program.layers:
        for one, other in combinations(layer.heads, 2):
            if shared := conflicting(one, other):
                names = ", ".join(program.registers[register] for register in sorted(shared))
                raise DATConfigError(
                    f"Layer {layer.index} ({layer.comment!r}): the heads {one.comment!r} and {other.comment!r} both "
                    f"write {names}, and no test of constants keeps them apart; put them into different layers."
                )
