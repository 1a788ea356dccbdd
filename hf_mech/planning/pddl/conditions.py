"""Ground conditions as alternatives: disjunctions of conjunctions of positive and negative atoms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, NamedTuple

from hf_mech.planning.pddl.errors import UnsupportedPddlError

_MOST_COMPARED = 500


class Alternative(NamedTuple):
    """A conjunction: every atom of `true` is true and every atom of `false` is false."""

    true: frozenset[str] = frozenset()
    false: frozenset[str] = frozenset()


class TooManyAlternativesError(Exception):
    """The condition has more than the allowed number of alternatives; the first argument is a lower bound."""


def alternatives(
    condition: Any, atom: Callable[[Any], str], where: str, most: int, wanted: bool = True
) -> list[Alternative]:
    """The disjunctive normal form of a ground condition without quantifiers.

    Contradictory alternatives and those that another one covers are left out: an empty list is "false", a list of one
    empty alternative is "true".

    Args:
        condition: an expression of unified-planning.
        atom: the name of a ground atom.
        where: the action or goal, for errors.
        most: the maximum number of alternatives in any part of the condition.
        wanted: False for the alternatives in which the condition does not hold.

    Raises:
        TooManyAlternativesError: there are more.
        UnsupportedPddlError: the condition has a part that is no proposition.
    """

    def expand(part: Any, wanted: bool) -> list[Alternative]:
        if part.is_bool_constant():
            return [Alternative()] if part.bool_constant_value() is wanted else []
        if part.is_not():
            return expand(part.arg(0), not wanted)
        if part.is_implies():
            left, right = part.args
            if wanted:
                return _shortest([*expand(left, False), *expand(right, True)])
            return conjunction([expand(left, True), expand(right, False)], most)
        if part.is_iff():
            left, right = part.args
            same = [conjunction([expand(left, value), expand(right, value is wanted)], most) for value in (True, False)]
            return _shortest(same[0] + same[1])
        if part.is_and() or part.is_or():
            parts = [expand(arg, wanted) for arg in part.args]
            if part.is_and() is wanted:
                return conjunction(parts, most)
            return _shortest(option for options in parts for option in options)
        if part.is_fluent_exp() and part.type.is_bool_type():
            name = frozenset({atom(part)})
            return [Alternative(true=name) if wanted else Alternative(false=name)]
        raise UnsupportedPddlError(where, f"{_feature(part)}: {part}", "Keep to conditions on propositions.")

    return expand(condition, wanted)


def conjunction(parts: Iterable[list[Alternative]], most: int) -> list[Alternative]:
    """The alternatives in which all parts hold. Raises TooManyAlternativesError for more than `most` combinations."""
    made = [Alternative()]
    for part in parts:
        if len(made) * len(part) > most:
            raise TooManyAlternativesError(len(made) * len(part))
        made = _shortest(
            Alternative(left.true | right.true, left.false | right.false) for left, right in product(made, part)
        )
    return made


def _shortest(options: Iterable[Alternative]) -> list[Alternative]:
    """The options that are consistent and (unless there are too many to compare) not covered by another one."""
    consistent = [option for option in dict.fromkeys(options) if not option.true & option.false]
    if not 2 <= len(consistent) <= _MOST_COMPARED:
        return consistent
    return [
        option
        for option in consistent
        if not any(
            other != option and other.true <= option.true and other.false <= option.false for other in consistent
        )
    ]


def _feature(condition: Any) -> str:
    if condition.is_equals() or condition.is_le() or condition.is_lt():
        return "a numeric condition or an equality of non-objects"
    return "a non-propositional condition"
