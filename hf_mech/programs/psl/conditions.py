"""Conditions that are more than a conjunction of tests: `<`, `>`, `<=`, `>=` and `or`, as tests with the same meaning.

| written | means |
|---|---|
| `position[n] < position[N]`, `<=` | causal attention (61d), for `<` with `position[n] != position[N]` |
| `x[n] < 3` | `x[n] in [0, 1, 2]` |
| `position[n] > 3` | `position[n] not in [0, 1, 2, 3]`, for a position is a number |
| `x[n] > 3`, the values of x declared | `x[n] in [...]`, those of them that are greater |
| `x[n] == A or x[n] in [B, C]` | `x[n] in [A, B, C]` |
| other alternatives | a production for each, where that is the same (`in_sequence`) |

Nothing else is expressed by queries and keys: they match by equality.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from hf_mech.programs.psl.syntax import Assignment, Constants, Reference, Test
from hf_mech.programs.psl.values import is_number

ORDERS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

GREATEST = 10_000
"""The greatest number of a comparison, which becomes a list of all smaller ones."""

MOST_ALTERNATIVES = 64
"""The greatest number of alternatives of one condition."""


class InexpressibleError(Exception):
    """A condition without an exact form: the reason, and what to write instead."""

    def __init__(self, reason: str, mend: str) -> None:
        super().__init__(reason)
        self.reason, self.mend = reason, mend


@dataclass(frozen=True)
class Conjunction:
    """Tests that must all hold; `causal` if n must not lie to the right of N, too."""

    tests: tuple[Test, ...]
    causal: bool = False

    def __str__(self) -> str:
        return " and ".join([*map(str, self.tests), *["n <= N"] * self.causal])


Alternatives = tuple[Conjunction, ...]


def all_of(parts: Iterable[Alternatives]) -> Alternatives:
    """The alternatives of `a and b ...`.

    Raises:
        InexpressibleError: they are too many.
    """
    made: Alternatives = (Conjunction(()),)
    for part in parts:
        if len(made) * len(part) > MOST_ALTERNATIVES:
            raise InexpressibleError(
                f"the condition has more than {MOST_ALTERNATIVES} alternatives",
                "Set a register by some of them in earlier productions, and test that.",
            )
        made = _merged([Conjunction(a.tests + b.tests, a.causal or b.causal) for a, b in product(made, part)])
    return made


def any_of(parts: Iterable[Alternatives]) -> Alternatives:
    """The alternatives of `a or b ...`; those that differ in the constants of one register are one."""
    return _merged([alternative for part in parts for alternative in part])


def compared(
    left: Reference, order: str, right: Reference | Constants, position: str, values: Sequence[str] | None
) -> Conjunction:
    """The tests that are `left order right`.

    Args:
        left, right: the sides; constants are one.
        order: a key of `ORDERS`.
        position: the name of the position register.
        values: the declared values of the left register, if any.

    Raises:
        InexpressibleError: no test says that.
    """
    if isinstance(right, Constants):
        return Conjunction((_with_number(left, order, right, position, values),))
    if left.cell == "N":
        left, order, right = right, _MIRRORED[order], left
    if (left.register, right.register) != (position, position) or left.function or right.function:
        raise InexpressibleError(
            "queries and keys match by equality, so the only order of two registers is that of the cells",
            f"Write `{position}[n] < {position}[N]` for the cells to the left of N, or test for numbers, a production "
            f"for each: `{left.register}[{left.cell}] in [0, 1] and {right.register}[{right.cell}] == 2`.",
        )
    if (left.cell, right.cell) != ("n", "N"):
        raise InexpressibleError("both sides are the same cell's", f"Compare `{position}[n]` with `{position}[N]`.")
    if order in (">", ">="):
        raise InexpressibleError(
            "a production reads all cells, or by causal attention those up to N, but never only those after N",
            f"Let the values come from the right neighbour, a cell a repetition: "
            f"`{position}[n] == {position}[N]@pos_increment` in a repeat block; or let N take what a cell to the right "
            f"has noted of N: `noted[n] == {position}[N]`.",
        )
    if order == "<":
        return Conjunction((Test(left, "!=", right),), causal=True)
    return Conjunction((Test(left, "!=", Constants(("0",), left.place)),), causal=True)  # names n, and always holds


def in_sequence(alternatives: Alternatives, assignments: Sequence[Assignment]) -> None:
    """Checks that one production after another, an alternative each, is the production with all of them.

    It is where no register is both read and assigned, so that each finds what the first one found, and it makes no
    difference which alternative finds n: it differs for tests of N alone, or all that is assigned is constant.

    Raises:
        InexpressibleError: it is not.
    """
    mend = (
        "Mark the cells first: an earlier production for each alternative sets a register of N, such as "
        "`mark[N] = 1`, and this one tests `mark[n] == 1` or `mark[N] == 1`. Constants of one register are `in [...]`."
    )
    read = {reference.register for one in alternatives for test in one.tests for reference in test.references}
    values = [item.value for item in assignments if isinstance(item.value, Reference)]
    read |= {value.register for value in values}
    changed = next((item.register for item in assignments if item.register in read), None)
    if changed is not None:
        raise InexpressibleError(
            f"the alternatives would be productions one after another, and the first changes `{changed}`, which the "
            f"next one reads",
            mend,
        )
    common = set.intersection(*(set(one.tests) for one in alternatives))
    own = [test for one in alternatives for test in one.tests if test not in common]
    of_n = any(reference.cell == "n" for test in own for reference in test.references)
    if values and (of_n or len({one.causal for one in alternatives}) > 1):
        raise InexpressibleError(
            "the first cell n that passes one alternative or another is found by no query and key, and by no "
            "productions one after another",
            mend,
        )


def _with_number(left: Reference, order: str, right: Constants, position: str, values: Sequence[str] | None) -> Test:
    (text,) = right.values
    if not is_number(text) or int(text) > GREATEST:
        raise InexpressibleError(
            f"`{text}` is no number from 0 to {GREATEST}, and other values have no order",
            "Name the values: `in [...]`.",
        )
    number, holds = int(text), ORDERS[order]
    if values is not None:
        found = [value for value in values if is_number(value) and holds(int(value), number)]
    elif order in ("<", "<="):
        found = [str(k) for k in range(number + 1) if holds(k, number)]
    elif left.register == position:
        smaller = tuple(str(k) for k in range(number + 1) if not holds(k, number))
        return Test(left, "not in", Constants(smaller, right.place))
    else:
        raise InexpressibleError(
            f"the numbers from {text} on have no end, and `{left.register}` may hold other values",
            f"Declare its values (`values: {{{left.register}: [...]}}`), name the values (`in [...]`), or the others "
            f"(`not in [...]`, which holds for nil, too).",
        )
    return Test(left, "in", Constants(tuple(found), right.place))


def _merged(alternatives: list[Conjunction]) -> Alternatives:
    """Alternatives of which no two can be one."""
    made: list[Conjunction] = []
    for alternative in alternatives:
        one: Conjunction | None = alternative
        while one is not None:
            alternative = one
            one = None
            for index, other in enumerate(made):
                one = _as_one(other, alternative)
                if one is not None:
                    del made[index]
                    break
        made.append(alternative)
    return tuple(made)


def _as_one(a: Conjunction, b: Conjunction) -> Conjunction | None:
    """`a or b` as one conjunction: one implies the other, or they differ in the constants of one register."""
    if a.causal != b.causal:
        return None
    of_a = [test for test in a.tests if test not in b.tests]
    of_b = [test for test in b.tests if test not in a.tests]
    if not of_a or not of_b:
        return a if not of_a else b
    if len(of_a) > 1 or len(of_b) > 1 or of_a[0].left != of_b[0].left:
        return None
    united = _united(of_a[0], of_b[0])
    return (
        None
        if united is None
        else Conjunction(tuple(united if test is of_a[0] else test for test in a.tests), a.causal)
    )


def _united(a: Test, b: Test) -> Test | None:
    """`a or b` of two tests of one register with constants; sets of values, or what is left out."""
    if not isinstance(a.right, Constants) or not isinstance(b.right, Constants):
        return None
    if a.negated and b.negated:
        values = [value for value in a.right.values if value in b.right.values]
    elif a.negated:
        values = [value for value in a.right.values if value not in b.right.values]
    elif b.negated:
        values = [value for value in b.right.values if value not in a.right.values]
    else:
        values = list(dict.fromkeys(a.right.values + b.right.values))
    kind = "not in" if a.negated or b.negated else "in"
    return Test(a.left, kind, Constants(tuple(values), a.right.place))
