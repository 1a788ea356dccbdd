"""Texts with nesting, whose split `beyond` leaves the training texts in one respect alone: JSON, and questions.

A text is its symbols with a space between them. `json`: documents of objects and lists, deeper than the trained ones.
`questions`: a sentence, and the question that it becomes, after McCoy, Frank and Linzen (2020): from training questions
one may conclude that the first auxiliary moves, or that the main one does; only in `beyond` do these differ.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hf_mech.data.random_numbers import Draws
from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.languages.task import LanguagesError

BEYOND = "beyond"
SPLITS = ("train", "validation", "test", BEYOND)
NESTED_TEXTS = ("json", "questions", "questions_main")
"""The configurations. `questions_main` also trains on questions that tell which auxiliary moves."""

# ----------------------------------------------------------------------------------------------------------------------
# JSON of an exact depth: a scalar has depth 0, and `[ ]` has depth 1.


TRAINED_DEPTH, DEEPEST = 4, 8
"""The depth of JSON documents: at most 4 in training, 5 to 8 in `beyond`."""
SYMBOLS = (32, 64)
"""The least and the most symbols that a document is given room for, at every depth: deeper is not longer."""
OPENING, CLOSING = ("{", "["), ("}", "]")
_LETTERS = [f'"{letter}"' for letter in "abcdefghijklmnopqrstuvwxyz"]
_SCALARS = [*map(str, range(10)), "true", "false", "null", *_LETTERS[:10]]
_LEVEL = 4  # symbols that a level needs at most: two brackets, a key and a colon


def json_document(draws: Draws, depth: int, room: int) -> list[str]:
    """The symbols of a document.

    Args:
        draws: random numbers.
        depth: of its deepest brackets, 0 or more.
        room: the most symbols, at least 1 and 4 a level.

    Example:

    ```python
    >>> print(*json_document(Draws("a"), 3, 20))
    [ { } , 5 , { "r" : [ "i" , "h" ] , "m" : "a" } ]

    ```

    Raises:
        LanguagesError: less room than that, or a negative depth.
    """
    check_whole("depth", depth, 0, LanguagesError)
    check_whole("room", room, max(1, _LEVEL * depth), LanguagesError)
    return _value(draws, depth, room)


def _value(draws: Draws, depth: int, room: int) -> list[str]:
    if depth == 0:
        return [_SCALARS[draws.below(len(_SCALARS))]]
    kind = draws.below(2)
    fixed = 3 if kind == 0 else 1  # of an object's member: key, colon, comma
    left = room - 2 + 1  # the last member has no comma
    members = []
    if depth > 1:
        least = _LEVEL * (depth - 1)
        members.append(_value(draws, depth - 1, least + draws.below(left - fixed - least + 1)))
        left -= len(members[0]) + fixed
    while left > fixed and len(members) < len(_LETTERS):
        most = min(depth - 1, (left - fixed) // _LEVEL)
        own = draws.below(most + 1) if draws.below(3) == 0 else 0
        least = max(1, _LEVEL * own)
        member = _value(draws, own, least + draws.below(min(left - fixed, 4 * least) - least + 1))
        members.insert(draws.below(len(members) + 1), member)
        left -= len(member) + fixed
    keys = list(_LETTERS)
    symbols: list[str] = []
    for member in members:
        own_key = [keys.pop(draws.below(len(keys))), ":"] if kind == 0 else []
        symbols += [*([","] if symbols else []), *own_key, *member]
    return [OPENING[kind], *symbols, CLOSING[kind]]


def depths_of(symbols: list[str]) -> list[int]:
    """How many brackets are open behind each symbol.

    >>> depths_of(["[", "[", "]", "]"])
    [1, 2, 1, 0]
    """
    depths, depth = [], 0
    for symbol in symbols:
        depth += (symbol in OPENING) - (symbol in CLOSING)
        depths.append(depth)
    return depths


# ----------------------------------------------------------------------------------------------------------------------
# Question formation: `my yak does smile . quest does my yak smile ?`, and `decl` for the sentence once more.


AUXILIARIES = {"singular": ("does", "doesn't"), "plural": ("do", "don't")}
_DETERMINERS = ("my", "your", "our", "her", "the", "some")
_NOUNS = ("otter", "badger", "heron", "lizard", "beetle", "falcon", "rabbit", "turtle", "spider", "monkey")
_PLACES = ("near", "behind", "above", "below", "around", "by")
_ALONE = ("smile", "sleep", "dance", "wait", "sing", "cough", "laugh", "blink")
_WITH_OBJECT = ("admire", "confuse", "greet", "follow", "remember", "amuse", "help", "tease")
_RELATIVE = ("who", "that")


@dataclass(frozen=True)
class Sentence:
    """A declarative sentence.

    Attributes:
        subject: with all that belongs to it.
        auxiliary: the main one.
        rest: what follows it.
        inner: the auxiliary of the subject's relative clause, or None.
    """

    subject: tuple[str, ...]
    auxiliary: str
    rest: tuple[str, ...]
    inner: str | None

    def words(self, *, question: bool) -> tuple[str, ...]:
        """The sentence with its full stop, or its question."""
        if question:
            return (self.auxiliary, *self.subject, *self.rest, "?")
        return (*self.subject, self.auxiliary, *self.rest, ".")


def draw_sentence(draws: Draws) -> Sentence:
    """A sentence whose subject has nothing besides, a place, or a relative clause; so has its object, if there is one.

    >>> print(*draw_sentence(Draws("a")).words(question=True))
    don't the otters amuse her herons who her rabbits don't tease ?
    """
    subject, number, inner = _noun_phrase(draws)
    auxiliary = _one(draws, AUXILIARIES[number])
    if draws.below(2):
        return Sentence(subject, auxiliary, (_one(draws, _ALONE),), inner)
    return Sentence(subject, auxiliary, (_one(draws, _WITH_OBJECT), *_noun_phrase(draws)[0]), inner)


def _noun_phrase(draws: Draws) -> tuple[tuple[str, ...], str, str | None]:
    """Its words, its number, and the auxiliary of its relative clause."""
    words, number = _noun(draws)
    kind = draws.below(3)
    if kind == 0:
        return words, number, None
    if kind == 1:
        return (*words, _one(draws, _PLACES), *_noun(draws)[0]), number, None
    clause, inner = _relative_clause(draws, number)
    return words + clause, number, inner


def _relative_clause(draws: Draws, number: str) -> tuple[tuple[str, ...], str]:
    """`that does smile`, `that does greet my yak` or `that my yak does greet`, and its auxiliary."""
    pronoun, kind = _one(draws, _RELATIVE), draws.below(3)
    if kind == 2:
        other, others_number = _noun(draws)
        inner = _one(draws, AUXILIARIES[others_number])
        return (pronoun, *other, inner, _one(draws, _WITH_OBJECT)), inner
    inner = _one(draws, AUXILIARIES[number])
    if kind == 0:
        return (pronoun, inner, _one(draws, _ALONE)), inner
    return (pronoun, inner, _one(draws, _WITH_OBJECT), *_noun(draws)[0]), inner


def _noun(draws: Draws) -> tuple[tuple[str, str], str]:
    number = ("singular", "plural")[draws.below(2)]
    return (_one(draws, _DETERMINERS), _one(draws, _NOUNS) + ("s" if number == "plural" else "")), number


def _one(draws: Draws, words: tuple[str, ...]) -> str:
    return words[draws.below(len(words))]


# ----------------------------------------------------------------------------------------------------------------------
# The rows of a data set.


@dataclass(frozen=True)
class NestedTextSettings:
    """The settings of a data set.

    Args:
        name: one of `NESTED_TEXTS`.
        seed: of all rows; 0 or more.
        num_train, num_eval: rows of the training split, and of every other one.

    Raises:
        LanguagesError: there is no such name, or a number is out of its range.
    """

    name: str
    seed: int = 0
    num_train: int = 16_000
    num_eval: int = 1_000

    def __post_init__(self) -> None:
        if self.name not in NESTED_TEXTS:
            raise LanguagesError(f"There is no nested text {self.name!r}; choose one of {', '.join(NESTED_TEXTS)}.")
        for name, least in (("seed", 0), ("num_train", 1), ("num_eval", 1)):
            check_whole(name, getattr(self, name), least, LanguagesError)

    def rows(self, split: str) -> int:
        """The number of rows of a split."""
        return self.num_train if split == "train" else self.num_eval


@dataclass(frozen=True)
class NestedText:
    """A row: the text, and its depth.

    Attributes:
        text: symbols with a space between them.
        depth: of JSON, its deepest brackets; of a sentence, 1 if its subject has a relative clause, else 0.
    """

    text: str
    depth: int


def generate(name: str, split: str, seed: int = 0, start: int = 0, stop: int = 1_000) -> Iterator[NestedText]:
    """The rows `start` to `stop - 1` of a split; each depends on name, split, seed and index alone.

    No text is in two splits, whatever their seeds: a hash of the text says where it may be, and its kind whether it is
    in `test` or `beyond`.

    Raises:
        LanguagesError: there is no such text or split.

    Example:

    ```python
    >>> print(*next(generate("questions", "beyond")).text.split(" quest "), sep="\\n")
    my otter who my otters do follow does laugh .
    does my otter who my otters do follow laugh ?

    ```
    """
    if name not in NESTED_TEXTS or split not in SPLITS:
        raise LanguagesError(
            f"The text must be one of {', '.join(NESTED_TEXTS)} and the split one of {', '.join(SPLITS)}, got {name!r} "
            f"and {split!r}."
        )
    draw = _json if name == "json" else _question
    for index in range(start, stop):
        draws = Draws(f"nested_text/{name}/{split}/{seed}/{index}")
        while (row := draw(draws, name, split)) is None or _part_of(row.text) != ("test" if split == BEYOND else split):
            pass
        yield row


def _part_of(text: str) -> str:
    """Of all texts, 1 in 10 goes to validation, and 1 to test or beyond."""
    return {0: "validation", 1: "test"}.get(zlib.crc32(text.encode()) % 10, "train")


def _json(draws: Draws, name: str, split: str) -> NestedText:
    first, last = (TRAINED_DEPTH + 1, DEEPEST) if split == BEYOND else (1, TRAINED_DEPTH)
    depth = first + draws.below(last - first + 1)
    least, most = SYMBOLS
    return NestedText(" ".join(json_document(draws, depth, least + draws.below(most - least + 1))), depth)


def _question(draws: Draws, name: str, split: str) -> NestedText | None:
    """None for a text that the split leaves out."""
    sentence, question = draw_sentence(draws), split == BEYOND or draws.below(2) == 1
    tells = question and sentence.inner is not None
    if split == BEYOND:
        left_out = not tells or sentence.inner == sentence.auxiliary
    else:
        left_out = tells and not (split == "train" and name == "questions_main")
    if left_out:
        return None
    words = (*sentence.words(question=False), "quest" if question else "decl", *sentence.words(question=question))
    return NestedText(" ".join(words), int(sentence.inner is not None))


def generate_rows(settings: NestedTextSettings, split: str, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the columns of the data set; the same on every machine.

    Raises:
        LanguagesError: there is no such split.
    """
    for table in tables_of(settings.rows(split), shard):
        rows = list(generate(settings.name, split, settings.seed, table.start, table.stop))
        yield pa.table({"text": [row.text for row in rows], "depth": [row.depth for row in rows]})
