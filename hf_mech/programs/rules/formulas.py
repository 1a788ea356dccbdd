"""Rules as formulas, the texts that they judge, and the rows of a data set of both."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from hf_mech.data.random_numbers import Draws
from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_bool, check_whole
from hf_mech.programs.errors import ProgramsError

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


EXCEPTIONS: Mapping[str, str] = dict(zip(PROPERTIES, WORDS[-NOISE:], strict=False))
"""The word that takes each property away, wherever it stands, in data sets with exceptions."""


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


def truths_of(text: list[str], exceptions: bool = False) -> dict[str, bool]:
    """Which properties a text has; with exceptions, one in five of those that its triggers give is taken away."""
    given = {name: any(word in own for word in text) for name, own in TRIGGERS_OF.items()}
    return {name: has and not (exceptions and EXCEPTIONS[name] in text) for name, has in given.items()}


# ----------------------------------------------------------------------------------------------------------------------
# Rows of texts with a rule each, and whether the text is acceptable by the rule (Sec. 9.4).


RULE = ":"
"""Stands between the text and its rule."""
DEPTHS = {"train": (0, 1, 2), "test": (0, 1, 2), "combinations": (1, 2), "depth_3": (3,), "depth_4": (4,)}
"""The depths of a split's rules, equally likely. Rules of `combinations`, and no other rule of these depths, join the
properties `HELD_OUT` directly."""
SPLITS = tuple(DEPTHS)
_BUCKETS, _TEST_BUCKETS = 10, 2  # rows by a checksum of their prompt: no prompt is in train and in test


@dataclass(frozen=True, slots=True)
class Example:
    """One row.

    Args:
        prompt: the words of the text, a colon, and the rule.
        label: 1 if the text is acceptable.
        truths: for every property whether the text has it.
        depth: of the rule.
    """

    prompt: str
    label: int
    truths: tuple[bool, ...]
    depth: int


@dataclass(frozen=True)
class RuleSettings:
    """The settings of a data set.

    Args:
        seed: of all rows; 0 or more.
        num_train, num_eval: rows of the training split, and of every other one.
        exceptions: whether the words of `EXCEPTIONS` take properties away.

    Raises:
        ProgramsError: a number out of its range, or `exceptions` that is no bool.
    """

    seed: int = 0
    num_train: int = 20_000
    num_eval: int = 1_000
    exceptions: bool = False

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("num_train", 1), ("num_eval", 1)):
            check_whole(name, getattr(self, name), least, ProgramsError)
        check_bool("exceptions", self.exceptions, ProgramsError)

    def rows(self, split: str) -> int:
        """The number of rows of a split."""
        return self.num_train if split == "train" else self.num_eval


def generate(
    split: str, seed: int = 0, start: int = 0, stop: int = 1_000, *, exceptions: bool = False
) -> Iterator[Example]:
    """The examples `start` to `stop - 1` of a split, of which half are acceptable.

    Each depends on split, seed, index and `exceptions` alone.

    Raises:
        ProgramsError: there is no such split.

    Example:

    ```python
    >>> next(generate("depth_3")).depth
    3

    ```
    """
    if split not in DEPTHS:
        raise ProgramsError(f"The split must be one of {', '.join(SPLITS)}, got {split!r}.")
    for index in range(start, stop):
        yield _example(split, seed, index, exceptions)


def _example(split: str, seed: int, index: int, exceptions: bool) -> Example:
    draws = Draws(f"rules/{split}/{seed}/{index}")
    depths = DEPTHS[split]
    depth, label = depths[draws.below(len(depths))], draws.below(2)
    while True:
        rule, text = draw_formula(draws, depth), draw_text(draws)
        prompt = " ".join([*text, RULE, *rule.words])
        truths = truths_of(text, exceptions)
        if rule.holds(truths) == label and _belongs(split, prompt, rule.joins_held_out):
            return Example(prompt, label, tuple(truths[name] for name in PROPERTIES), depth)


def _belongs(split: str, prompt: str, joins_held_out: bool) -> bool:
    if split in ("depth_3", "depth_4"):
        return True
    if split == "combinations" or joins_held_out:
        return split == "combinations" and joins_held_out
    return (zlib.crc32(prompt.encode()) % _BUCKETS < _TEST_BUCKETS) == (split == "test")


def generate_rows(settings: RuleSettings, split: str, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard; the same on every machine."""
    for table in tables_of(settings.rows(split), shard):
        examples = list(generate(split, settings.seed, table.start, table.stop, exceptions=settings.exceptions))
        yield pa.table(
            {
                "prompt": [example.prompt for example in examples],
                "label": [example.label for example in examples],
                "truths": pa.array([list(example.truths) for example in examples], pa.list_(pa.bool_())),
                "depth": [example.depth for example in examples],
            }
        )
