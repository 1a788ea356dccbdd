"""Texts of words without a meaning, some of which give a text a property; a learner must find out which."""

from __future__ import annotations

from collections.abc import Mapping

from hf_mech.data.random_numbers import Draws
from hf_mech.programs.rules.formulas import PROPERTIES

SHORTEST, LONGEST = 6, 10  # words of a text
TRIGGERS = 3  # words that give a property
NOISE = 24  # words that give none


def _all_words() -> tuple[str, ...]:
    words = [first + vowel + last for first in "bdfgklmn" for vowel in "aeiou" for last in "mnrst"]
    draws = Draws("hf_mech/programs/rules/words")
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
