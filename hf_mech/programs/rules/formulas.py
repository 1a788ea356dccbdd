"""Formulas over the properties of a text, and texts that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hf_mech.data.random_numbers import Draws
from hf_mech.programs.errors import ProgramsError

# ----------------------------------------------------------------------------------------------------------------------
# Errors of texts and rules.


# ----------------------------------------------------------------------------------------------------------------------
# Rules as formulas over four properties: written with brackets, evaluated, and drawn at random.


PROPERTIES = ("A", "B", "C", "D")
AND, OR, NOT, OPEN, CLOSE = "and", "or", "not", "(", ")"
DEEPEST = 4
HELD_OUT = frozenset({"A", "D"})
"""The properties that no training rule joins directly."""


@dataclass(frozen=True)
class Formula:
    """A property, or two formulas that are joined; perhaps denied.

    Args:
        name: of a property alone.
        joint: of two formulas.
        parts: none or two.
        denied: whether `not` stands before it.
    """

    name: str = ""
    joint: Literal["and", "or", ""] = ""
    parts: tuple[Formula, ...] = ()
    denied: bool = False

    @property
    def words(self) -> list[str]:
        """As it is written: `( not A and B )`."""
        own = [self.name]
        if self.parts:
            own = [OPEN, *self.parts[0].words, self.joint, *self.parts[1].words, CLOSE]
        return [NOT, *own] if self.denied else own

    @property
    def depth(self) -> int:
        """How deep its brackets are nested; 0 for a property alone."""
        return 1 + max(part.depth for part in self.parts) if self.parts else 0

    def holds(self, truths: Mapping[str, bool]) -> bool:
        """Whether it is true of a text with these properties."""
        if not self.parts:
            return truths[self.name] != self.denied
        values = [part.holds(truths) for part in self.parts]
        return (all(values) if self.joint == AND else any(values)) != self.denied

    @property
    def joins_held_out(self) -> bool:
        """Whether somewhere in it the properties `HELD_OUT` are joined directly."""
        leaves = {part.name for part in self.parts if not part.parts}
        return leaves == HELD_OUT or any(part.joins_held_out for part in self.parts)


def read_formula(words: Sequence[str]) -> Formula:
    """The formula that is written so.

    Raises:
        ProgramsError: the words are no formula.

    Example:

    ```python
    >>> read_formula("( not A and ( B or C ) )".split()).depth
    2

    ```
    """
    formula, rest = _read(list(words))
    if rest:
        raise ProgramsError(f"The rule {' '.join(words)!r} ends before {' '.join(rest)!r}.")
    return formula


def _read(words: list[str]) -> tuple[Formula, list[str]]:
    first, rest = words[0] if words else "", words[1:]
    if first == NOT:
        inner, rest = _read(rest)
        if inner.denied:
            raise ProgramsError("A rule denies a part once: write 'A' for 'not not A'.")
        return Formula(inner.name, inner.joint, inner.parts, True), rest
    if first in PROPERTIES:
        return Formula(first), rest
    if first == OPEN:
        left, rest = _read(rest)
        joint, rest = rest[0] if rest else "", rest[1:]
        right, rest = _read(rest)
        if joint == AND and rest[:1] == [CLOSE]:
            return Formula(joint="and", parts=(left, right)), rest[1:]
        if joint == OR and rest[:1] == [CLOSE]:
            return Formula(joint="or", parts=(left, right)), rest[1:]
    raise ProgramsError(
        f"Expected a property of {', '.join(PROPERTIES)}, 'not', or '( ... and|or ... )' at {words[:8]}."
    )


def draw_formula(draws: Draws, depth: int) -> Formula:
    """A random formula of this depth, 0 to `DEEPEST`.

    One part of a joint has the depth that is asked for; the other is at most 1 deep, or rules would grow too long.
    """
    denied = draws.below(3) == 0
    if depth == 0:
        return Formula(PROPERTIES[draws.below(len(PROPERTIES))], denied=denied)
    deep = draw_formula(draws, depth - 1)
    other = draw_formula(draws, draws.below(min(depth, 2)))
    parts = (deep, other) if draws.below(2) else (other, deep)
    return Formula(joint="and" if draws.below(2) else "or", parts=parts, denied=denied)


# ----------------------------------------------------------------------------------------------------------------------
# Texts of words without a meaning, some of which give a text a property; a learner must find out which.


SHORTEST, LONGEST = 6, 10  # words of a text
TRIGGERS = 3  # words that give a property
NOISE = 24  # words that give none


def _all_words() -> tuple[str, ...]:
    words = [first + vowel + last for first in "bdfgklmn" for vowel in "aeiou" for last in "mnrst"]
    draws = Draws("hf_mech/rules/words")
    for i in range(len(words) - 1, 0, -1):
        j = draws.below(i + 1)
        words[i], words[j] = words[j], words[i]
    return tuple(words[: TRIGGERS * len(PROPERTIES) + NOISE])


WORDS = _all_words()
"""Those of all texts: first the triggers of each property, then the noise. The same in every data set."""
TRIGGERS_OF: Mapping[str, tuple[str, ...]] = {
    name: WORDS[TRIGGERS * i : TRIGGERS * (i + 1)] for i, name in enumerate(PROPERTIES)
}


def draw_text(draws: Draws) -> list[str]:
    """A random text: each property holds in half of the texts, by one of its triggers anywhere."""
    length = SHORTEST + draws.below(LONGEST - SHORTEST + 1)
    noise = WORDS[-NOISE:]
    words = [noise[draws.below(NOISE)] for _ in range(length)]
    places = list(range(length))
    for own in TRIGGERS_OF.values():
        if draws.below(2):
            words[places.pop(draws.below(len(places)))] = own[draws.below(TRIGGERS)]
    return words


def truths_of(text: list[str]) -> dict[str, bool]:
    """Which properties a text has."""
    return {name: any(word in own for word in text) for name, own in TRIGGERS_OF.items()}
