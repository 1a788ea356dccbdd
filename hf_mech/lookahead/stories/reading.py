"""Reads a text as a story of the grammar, and says whether its end agrees with its beginning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from string import Formatter

from hf_mech.lookahead.stories.grammar import slots_of
from hf_mech.lookahead.stories.plots import PLOTS, WORDS, Plot, Slot, pronouns

_PRONOUNS = {name: sorted({pronouns(hero)[name] for hero in WORDS["hero"]}) for name in pronouns("Anna")}


@dataclass(frozen=True)
class Reading:
    """A text as the grammar sees it.

    Attributes:
        plot: the plot whose sentences lead furthest; None if not even the first sentence is one of the grammar.
        facts: the first value of every fact that the text mentions.
        contradictions: the places where a later sentence has another value, or a pronoun that does not fit the hero's
            name, in words.
        read: the characters from the beginning that are sentences of the plot in their order.
        complete: whether they are a whole story, and nothing else.
    """

    plot: str | None
    facts: Mapping[str, str]
    contradictions: tuple[str, ...]
    read: int
    complete: bool

    @property
    def consistent(self) -> bool:
        """Whether the text is a whole story of the grammar without a contradiction."""
        return self.complete and not self.contradictions


def read(text: str) -> Reading:
    """Find the plot, the facts and the contradictions of a text.

    White space between words does not matter. The text may be any text, also one by a model.
    """
    text = " ".join(text.split())
    readings = [_read_as(name, text) for name in PLOTS]
    best = max(readings, key=lambda reading: (reading.complete, reading.read))
    return best if best.read else Reading(None, {}, (), 0, False)


def consistent(text: str) -> bool:
    """Whether the text is a whole story of the grammar whose end agrees with its beginning."""
    return read(text).consistent


def _read_as(name: str, text: str) -> Reading:
    found: list[tuple[str, str]] = []  # facts and pronouns in the order of the text
    at, complete = 0, True
    for slot in slots_of(name):
        match = next((m for m in (p.match(text, at) for p in _patterns(name, slot)) if m), None)
        if match is None:
            if slot.optional:
                continue
            complete = False
            break
        found += _values(match)
        at = match.end()
    facts = dict(reversed([pair for pair in found if pair[0] not in _PRONOUNS]))
    words = facts | (pronouns(facts["hero"]) if "hero" in facts else {})
    wrong = dict.fromkeys(
        f"{field} is {value!r} after {words[field]!r}"
        for field, value in found
        if field in words and words[field] != value
    )
    return Reading(name, facts, tuple(wrong), at, complete and at == len(text))


def _values(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """The fields of a sentence with their words, in the order of the text; a group is called field_number."""
    for group, value in match.groupdict().items():
        yield group.rpartition("_")[0], value


@cache
def _patterns(name: str, slot: Slot) -> tuple[re.Pattern[str], ...]:
    """One expression a sentence of a slot: each field stands for all of its words."""
    return tuple(_pattern(PLOTS[name], sentence) for sentence in slot.sentences)


def _pattern(plot: Plot, sentence: str) -> re.Pattern[str]:
    words = WORDS | _PRONOUNS | {"trouble": plot.troubles}
    parts = []
    for number, (plain, field, _, _) in enumerate(Formatter().parse(sentence)):
        parts.append(re.escape(plain))
        if field is not None:
            longest_first = sorted(words[field], key=len, reverse=True)
            parts.append(f"(?P<{field}_{number}>{'|'.join(map(re.escape, longest_first))})")
    return re.compile("".join(parts) + r"(?:\s|\Z)")
