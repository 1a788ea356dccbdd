"""The grammar of the stories: drawing them, their splits, the rows of a data set, and reading stories back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from string import Formatter
from typing import Literal, get_args

import pyarrow as pa

from hf_mech.data.random_numbers import Draws
from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.plots import BEGINNING, END, PLOTS, WORDS, Plot, Slot, pronouns

# ----------------------------------------------------------------------------------------------------------------------
# Short stories with a beginning, a conflict and an end; each a pure function of (seed, index, split).
#
# The end depends on the beginning (name, thing, colour, snack, place, hour) and on the conflict (helper, trouble), so a
# text between a prefix and a suffix fits only if it agrees with both.


Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
Length = Literal["full", "short"]
LENGTHS: tuple[Length, ...] = get_args(Length)
TEST_SHARE = 10
"""One in so many combinations of hero, thing and place is kept for test."""

_MARKS = ("hero", "thing", "place")


@dataclass(frozen=True)
class Story:
    """A story of the grammar.

    Attributes:
        sentences: one a slot that is not empty.
        plot: a key of `plots.PLOTS`.
        facts: the fact words, by name: hero, colour, helper, trouble and so on.
    """

    sentences: tuple[str, ...]
    plot: str
    facts: Mapping[str, str]

    @property
    def text(self) -> str:
        """The sentences, with one space between them."""
        return " ".join(self.sentences)


def story_at(seed: int, index: int, split: Split = "train", length: Length = "full") -> Story:
    """The story of that number; the same on every machine.

    Args:
        seed: 0 or more.
        index: 0 or more.
        split: `train` or `test`. They share no combination of hero, thing and place, so no story, for any seeds.
        length: `full`, of 18 to 22 sentences, or `short`, of 7.

    Raises:
        LookaheadError: a negative or fractional number, or another split or length.
    """
    for name, value in (("seed", seed), ("index", index)):
        check_whole(name, value, 0, LookaheadError)
    _check_name("split", split, SPLITS)
    _check_name("length", length, LENGTHS)
    draws = Draws(f"stories/{split}/{seed}/{index}")
    facts = {name: words[draws.below(len(words))] for name, words in WORDS.items()}
    while split_of(facts) != split:
        facts |= {name: WORDS[name][draws.below(len(WORDS[name]))] for name in _MARKS}
    plot = _PLOT_NAMES[draws.below(len(_PLOT_NAMES))]
    troubles = PLOTS[plot].troubles
    facts["trouble"] = troubles[draws.below(len(troubles))]
    words = facts | pronouns(facts["hero"])
    sentences = []
    for slot in slots_of(plot, length):
        chosen = draws.below(slot.choices)
        if chosen < len(slot.sentences):
            sentences.append(slot.sentences[chosen].format_map(words))
    return Story(tuple(sentences), plot, facts)


def stories(seed: int, start: int, stop: int, split: Split = "train", length: Length = "full") -> Iterator[Story]:
    """The stories from number `start` up to, not including, `stop`."""
    return (story_at(seed, index, split, length) for index in range(start, stop))


def _check_name(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise LookaheadError(f"{name} must be one of {', '.join(known)}, got {value!r}.")


def split_of(facts: Mapping[str, str]) -> Split:
    """The split that stories with these facts belong to."""
    return "train" if sum(_PLACE_OF[name][facts[name]] for name in _MARKS) % TEST_SHARE else "test"


def slots_of(plot: str, length: Length = "full") -> tuple[Slot, ...]:
    """The slots of a plot's stories, in order."""
    return tuple(slot for slot in _SLOTS[plot] if slot.short or length == "full")


def facts_of(length: Length = "full") -> tuple[str, ...]:
    """The facts that stories of this length tell, but for the trouble."""
    told = {
        name for plot in PLOTS for slot in slots_of(plot, length) for text in slot.sentences for name in _fields(text)
    }
    return tuple(name for name in WORDS if name in told)


def distinct_stories(length: Length = "full") -> int:
    """The number of different texts, both splits together.

    Each choice of facts and sentences is another text: `read` finds the choices in the text again. Facts that a
    choice of sentences does not mention are not counted twice.
    """
    return sum(_texts(plot, length) for plot in PLOTS)


def _texts(plot: str, length: Length) -> int:
    """The texts of a plot: for each set of facts mentioned so far, the number of ways to choose sentences."""
    ways: dict[frozenset[str], int] = {frozenset(): 1}
    for slot in slots_of(plot, length):
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


# ----------------------------------------------------------------------------------------------------------------------
# The data set: rows of stories.


@dataclass(frozen=True)
class StorySettings:
    """The settings of a data set.

    Args:
        seed: of all stories; 0 or more.
        num_train: the training stories.
        num_test: the test stories; none of them has the hero, thing and place of a training story.
        length: `full`, of 18 to 22 sentences, or `short`, of 7.

    Raises:
        LookaheadError: a number out of its range, or another length.
    """

    seed: int = 0
    num_train: int = 100_000
    num_test: int = 1_000
    length: Length = "full"

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("num_train", 1), ("num_test", 1)):
            check_whole(name, getattr(self, name), least, LookaheadError)
        _check_name("length", self.length, LENGTHS)

    def rows(self, split: Split) -> int:
        """The number of stories of a split."""
        return self.num_train if split == "train" else self.num_test


def generate_rows(settings: StorySettings, split: Split, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the column `text`; the same on every machine."""
    for table in tables_of(settings.rows(split), shard):
        drawn = stories(settings.seed, table.start, table.stop, split, settings.length)
        texts = [story.text for story in drawn]
        yield pa.table({"text": pa.array(texts, pa.string())})


# ----------------------------------------------------------------------------------------------------------------------
# Reads a text as a story of the grammar, and says whether its end agrees with its beginning.


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

    White space between words does not matter. The text may be any text, also one by a model, and a story of either
    length.
    """
    text = " ".join(text.split())
    readings = [_read_as(name, slots_of(name, length), text) for length in LENGTHS for name in PLOTS]
    best = max(readings, key=lambda reading: (reading.complete, reading.read))
    return best if best.read else Reading(None, {}, (), 0, False)


def consistent(text: str) -> bool:
    """Whether the text is a whole story of the grammar whose end agrees with its beginning."""
    return read(text).consistent


def _read_as(name: str, slots: tuple[Slot, ...], text: str) -> Reading:
    found: list[tuple[str, str]] = []  # facts and pronouns in the order of the text
    at, complete = 0, True
    for slot in slots:
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
