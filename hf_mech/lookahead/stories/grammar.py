"""Short stories with a beginning, a conflict and an end; each a pure function of (seed, index, split).

The end depends on the beginning (name, thing, colour, snack, place, hour) and on the conflict (helper, trouble), so a
text between a prefix and a suffix fits only if it agrees with both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from hf_mech.data.random_numbers import Draws
from hf_mech.data.whole_numbers import check_whole
from hf_mech.lookahead.stories.errors import StorySettingsError
from hf_mech.lookahead.stories.plots import BEGINNING, END, PLOTS, WORDS, Slot, pronouns

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
TEST_SHARE = 10
"""One in so many combinations of hero, thing and place is kept for test."""

_MARKS = ("hero", "thing", "place")


@dataclass(frozen=True)
class Story:
    """A story of the grammar.

    Attributes:
        text: the story, sentences with one space between them.
        plot: a key of `plots.PLOTS`.
        facts: the fact words, by name: hero, colour, helper, trouble and so on.
    """

    text: str
    plot: str
    facts: Mapping[str, str]


def story_at(seed: int, index: int, split: Split = "train") -> Story:
    """The story of that number; the same on every machine.

    Args:
        seed: 0 or more.
        index: 0 or more.
        split: `train` or `test`. They share no combination of hero, thing and place, so no story, for any seeds.

    Raises:
        StorySettingsError: a negative or fractional number, or another split.
    """
    for name, value in (("seed", seed), ("index", index)):
        check_whole(name, value, 0, StorySettingsError)
    if split not in SPLITS:
        raise StorySettingsError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
    draws = Draws(f"stories/{split}/{seed}/{index}")
    facts = {name: words[draws.below(len(words))] for name, words in WORDS.items()}
    while split_of(facts) != split:
        facts |= {name: WORDS[name][draws.below(len(WORDS[name]))] for name in _MARKS}
    plot = _PLOT_NAMES[draws.below(len(_PLOT_NAMES))]
    troubles = PLOTS[plot].troubles
    facts["trouble"] = troubles[draws.below(len(troubles))]
    words = facts | pronouns(facts["hero"])
    sentences = []
    for slot in slots_of(plot):
        chosen = draws.below(slot.choices)
        if chosen < len(slot.sentences):
            sentences.append(slot.sentences[chosen].format_map(words))
    return Story(" ".join(sentences), plot, facts)


def stories(seed: int, start: int, stop: int, split: Split = "train") -> Iterator[Story]:
    """The stories from number `start` up to, not including, `stop`."""
    return (story_at(seed, index, split) for index in range(start, stop))


def split_of(facts: Mapping[str, str]) -> Split:
    """The split that stories with these facts belong to."""
    return "train" if sum(_PLACE_OF[name][facts[name]] for name in _MARKS) % TEST_SHARE else "test"


def slots_of(plot: str) -> tuple[Slot, ...]:
    """The slots of a plot's stories, in order."""
    return _SLOTS[plot]


def distinct_stories() -> int:
    """The number of different texts, both splits together.

    Each choice of facts and sentences is another text: `reading.read` finds the choices in the text again. Facts that a
    choice of sentences does not mention are not counted twice.
    """
    return sum(_texts(plot) for plot in PLOTS)


def _texts(plot: str) -> int:
    """The texts of a plot: for each set of facts mentioned so far, the number of ways to choose sentences."""
    ways: dict[frozenset[str], int] = {frozenset(): 1}
    for slot in slots_of(plot):
        options = [_fields(sentence) for sentence in slot.sentences] + [frozenset[str]()] * slot.optional
        longer: dict[frozenset[str], int] = {}
        for mentioned, count in ways.items():
            for fields in options:
                longer[mentioned | fields] = longer.get(mentioned | fields, 0) + count
        ways = longer
    sizes = {name: len(words) for name, words in WORDS.items()} | {"trouble": len(PLOTS[plot].troubles)}
    return sum(count * prod(sizes[name] for name in mentioned) for mentioned, count in ways.items())


def _fields(sentence: str) -> frozenset[str]:
    """The facts in a sentence, without pronouns: the hero's name decides them and is in every story."""
    return frozenset(name for name in (*WORDS, "trouble") if f"{{{name}}}" in sentence)


_PLACE_OF = {name: {word: place for place, word in enumerate(WORDS[name])} for name in _MARKS}
_PLOT_NAMES = tuple(PLOTS)
_SLOTS = {name: (*BEGINNING, *plot.conflict, *plot.solution, *END, plot.lesson) for name, plot in PLOTS.items()}
