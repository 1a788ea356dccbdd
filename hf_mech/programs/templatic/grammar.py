"""Templates, the prompts that are drawn from them, and the rows of a data set."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import pyarrow as pa

from hf_mech.data.random_numbers import Draws
from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.tasks import DELIMITER_SYMBOLS, Split, Task, split_named, task_named

# ----------------------------------------------------------------------------------------------------------------------
# A template, and the prompts that are instances of it (Sec. 4.1, (31)-(32)).


QUESTION, ANSWER = "Q", "A"  # the values of the fields FQ and FA, reserved (32c-iii)
END = "."  # ends every example of the data set; in a template, the last symbol of its last delimiter

Field = int | tuple[str, ...]  # a constituent, by its number from 0, or a delimiter, by its symbols
Values = tuple[tuple[str, ...], ...]  # the symbols of each constituent


@dataclass(frozen=True)
class Template:
    """The fields of a Q-region and of an A-region, without the `Q` and the `A` that begin them.

    Args:
        question: constituents and delimiters. The constituents are numbered 0, 1, ... from the left, with a delimiter
            between any two.
        answer: constituents of the question, not necessarily all of them, and delimiters of its own. Two constituents
            may be neighbours, as in (25). The grammar has each at most once (32b-i); a template may repeat one.

    Raises:
        ProgramsError: no field, an empty delimiter, two delimiters in a row, or invalid constituents.

    Example: the template of Sec. 4.2.1.

    ```python
    >>> template = Template((0, ("`", "?"), 1), (1, ("=", ".")))
    >>> print(template)
    Q <1> ` ? <2> A <2> = .
    >>> template.complete((("big", "bear"), ("car",)))
    'car = .'

    ```
    """

    question: tuple[Field, ...]
    answer: tuple[Field, ...]

    def __post_init__(self) -> None:
        for name, region in (("question", self.question), ("answer", self.answer)):
            if not region:
                raise ProgramsError(f"The {name} of a template must have at least one field, got none.")
            if () in region:
                raise ProgramsError(f"A delimiter must have at least one symbol, got the {name} {region}.")
            if any(isinstance(a, tuple) and isinstance(b, tuple) for a, b in pairwise(region)):
                raise ProgramsError(f"Two delimiters in a row are one: join their symbols in the {name} {region}.")
        numbers = [f for f in self.question if isinstance(f, int)]
        if numbers != list(range(len(numbers))):
            raise ProgramsError(f"The question's constituents must be 0, 1, 2, ... from the left, got {numbers}.")
        if any(isinstance(a, int) and isinstance(b, int) for a, b in pairwise(self.question)):
            raise ProgramsError(f"Two constituents of a question need a delimiter between them, got {self.question}.")
        used = [f for f in self.answer if isinstance(f, int)]
        if not set(used) <= set(numbers):
            raise ProgramsError(f"The answer's constituents must be the question's (32d-i), {numbers}, got {used}.")

    @cached_property
    def count(self) -> int:
        """The number of constituents in the question."""
        return sum(isinstance(f, int) for f in self.question)

    def ask(self, values: Sequence[Sequence[str]]) -> str:
        """A cue, the text of a Q-region and its `A`. Raises ProgramsError: not a value for each constituent."""
        return f"{QUESTION} {self._fill(self.question, values)} {ANSWER}"

    def complete(self, values: Sequence[Sequence[str]]) -> str:
        """The text of the A-region after its `A`. Raises ProgramsError: not a value for each constituent."""
        return self._fill(self.answer, values)

    def _fill(self, region: tuple[Field, ...], values: Sequence[Sequence[str]]) -> str:
        if len(values) != self.count or not all(values):
            raise ProgramsError(f"Each of the {self.count} constituents needs at least one symbol, got {values}.")
        return " ".join([symbol for field in region for symbol in (values[field] if isinstance(field, int) else field)])

    def __str__(self) -> str:
        names = [(f"<{i + 1}>",) for i in range(self.count)]
        return f"{self.ask(names)} {self.complete(names)}"


@dataclass(frozen=True)
class Prompt:
    """An instance of a template: k examples, and a cue to be completed.

    Args:
        template: the common template of the examples and the cue.
        shots: the values of each example, in their order.
        cue: the values of the cue.

    Example: `swap` of Sec. 7.2.4.

    ```python
    >>> swap = Template((0, ("V",), 1), (1, ("V",), 0, (".",)))
    >>> prompt = Prompt(swap, shots=((("B",), ("D", "E")),), cue=(("F", "G", "H"), ("K", "L")))
    >>> prompt.text
    'Q B V D E A D E V B . Q F G H V K L A'
    >>> prompt.completion
    'K L V F G H .'

    ```
    """

    template: Template
    shots: tuple[Values, ...]
    cue: Values

    @property
    def text(self) -> str:
        """The prompt: symbols with one space between them, from the first `Q` to the last `A`."""
        ask, complete = self.template.ask, self.template.complete
        return " ".join([*(f"{ask(shot)} {complete(shot)}" for shot in self.shots), ask(self.cue)])

    @property
    def completion(self) -> str:
        """The answer to the cue."""
        return self.template.complete(self.cue)


# ----------------------------------------------------------------------------------------------------------------------
# Prompts drawn from the grammar of App. D; each depends only on task, split, seed and index.


ECHO_EVERY = 40  # every 40th training prompt is an echo prompt; the paper gives no number
DELIMITER_LENGTHS = (1, 2)  # symbols in a delimiter, equally likely: the lengths in (10) and in Sec. 4.2.1

# The parts of all prompts, by `bucket`, that a split may draw from: no prompt is in two splits, for any seeds. The echo
# prompts of the train split and `ood_lexical` share their words; the same rule keeps those two apart.
BUCKETS = 10
_SPLIT_BUCKETS = {"train": range(8), "dev": range(8, 9), "test": range(9, 10), "ood_lexical": range(9, 10)}


@dataclass(frozen=True, slots=True)
class Example:
    """One row of the data set.

    Args:
        prompt: k examples and the cue, in symbols with one space between them.
        completion: the answer to the cue, with its full stop.
        info: JSON. `{"type": "echo"}` for an echo prompt; for any other its type `templatic`, the number of its
            constituents, and the length of each one in each example and, last, in the cue:
            `{"type": "templatic", "cons_count": 2, "cons_len": [[1, 4], [2, 2]]}`.
    """

    prompt: str
    completion: str
    info: str


def generate(
    task: str | Task, split: str | Split = "train", seed: int = 0, start: int = 0, stop: int | None = None
) -> Iterator[Example]:
    """The examples `start` to `stop - 1` of a split.

    Args:
        task: a task of Table 1 or its name.
        split: a split of Table 1 or its name.
        seed: 0 or more; another seed gives other examples.
        start, stop: the range of indices. An example depends on its index and not on the range, so parts add up to the
            whole. By default `stop` is the split's size; a larger `stop` continues the split.

    Raises:
        ProgramsError: no such task or split, or a seed or range out of bounds.

    Example:

    ```python
    >>> for example in generate("1_shot_rlw", "test", stop=1):
    ...     print(example.prompt)
    ...     print(example.completion)
    Q vy sf ( & nu A nu % vy sf * } . Q nj pq tl zt ( & cg A
    cg % nj pq tl zt * } .

    ```
    """
    task, split = _named(task, split)
    stop = task.size(split.name) if stop is None else stop
    for name, value in (("seed", seed), ("start", start), ("stop", stop)):
        check_whole(name, value, 0, ProgramsError)
    return (_example(task, split, seed, index) for index in range(start, stop))


def prompt_at(task: str | Task, split: str | Split, seed: int, index: int) -> Prompt:
    """One example as its template and the values of its constituents. Raises ProgramsError: no such task or split."""
    task, split = _named(task, split)
    return _prompt(task, split, seed, index)


def is_echo(split: str | Split, index: int) -> bool:
    """Whether the example of that index is an echo prompt; only the train split has them."""
    name = split if isinstance(split, str) else split.name
    return name == "train" and index % ECHO_EVERY == ECHO_EVERY - 1


def bucket(example_symbol: str, cue_symbol: str) -> int:
    """The number of a prompt's part, out of 10, from the first symbols of its first example and of its cue.

    Train has 8 parts, dev and test have one each.
    """
    return zlib.crc32(f"{example_symbol} {cue_symbol}".encode()) % BUCKETS


def sample_template(draws: Draws, counts: Sequence[int]) -> Template:
    """A template of App. D.

    A question has one of `counts` constituents; an answer has 1 or more of them, each number equally likely, in any
    order (32d-iii). There is a delimiter between any two constituents and, half the time, after the last. No symbol
    occurs twice in a region. As in the data set, a full stop ends the answer.
    """
    count = counts[draws.below(len(counts))]
    used = distinct(draws, count, draws.below(count) + 1)
    question = _region(draws, list(range(count)))
    answer = _region(draws, used)
    last = answer[-1]
    answer = [*answer, (END,)] if isinstance(last, int) else [*answer[:-1], (*last, END)]
    return Template(tuple(question), tuple(answer))


def distinct(draws: Draws, n: int, count: int, first: tuple[int, ...] = ()) -> list[int]:
    """`count` different numbers out of 0 to n - 1: those in `first`, and then others in random order.

    Raises:
        ProgramsError: `count` is larger than n.
    """
    if count > n:
        raise ProgramsError(f"No {count} different symbols can be drawn out of {n}.")
    chosen = dict.fromkeys(first)
    while len(chosen) < count:
        chosen[draws.below(n)] = None
    return list(chosen)


def _region(draws: Draws, constituents: list[int]) -> list[Field]:
    """Constituents and the delimiters between them, and perhaps one after them: <dc sequence> of App. D."""
    lengths = [
        DELIMITER_LENGTHS[draws.below(len(DELIMITER_LENGTHS))] for _ in range(len(constituents) - 1 + draws.below(2))
    ]
    symbols = iter(distinct(draws, len(DELIMITER_SYMBOLS), sum(lengths)))
    delimiters = [tuple([DELIMITER_SYMBOLS[next(symbols)] for _ in range(length)]) for length in lengths]
    region: list[Field] = []
    for position, constituent in enumerate(constituents):
        region.append(constituent)
        region.extend(delimiters[position : position + 1])
    return region


def _named(task: str | Task, split: str | Split) -> tuple[Task, Split]:
    return (
        task_named(task) if isinstance(task, str) else task,
        split_named(split) if isinstance(split, str) else split,
    )


def _example(task: Task, split: Split, seed: int, index: int) -> Example:
    prompt = _prompt(task, split, seed, index)
    if is_echo(split, index):
        info = '{"type": "echo"}'
    else:
        lengths = [[len(value) for value in values] for values in (*prompt.shots, prompt.cue)]
        info = json.dumps({"type": "templatic", "cons_count": prompt.template.count, "cons_len": lengths})
    return Example(prompt.text, prompt.completion, info)


_ECHO = Template((0,), (0, (END,)))


def _prompt(task: Task, split: Split, seed: int, index: int) -> Prompt:
    """Constituents of examples and cue share no symbol. App. D requires this only of the cue."""
    draws = Draws(f"{task.name}/{split.name}/{seed}/{index}")
    echo = is_echo(split, index)
    template = _ECHO if echo else sample_template(draws, task.counts(split))
    choices = (1,) if echo else task.lengths(split)
    lengths = [choices[draws.below(len(choices))] for _ in range((task.shots + 1) * template.count)]
    vocabulary = task.words(held_out=echo or split.held_out)
    size = len(vocabulary)
    allowed = _SPLIT_BUCKETS.get(split.name, range(BUCKETS))
    while True:
        # Echo prompts take the held-out words in turn, so each occurs about equally often.
        cue = index // ECHO_EVERY % size if echo else draws.below(size)
        example = draws.below(size)
        if example != cue and bucket(vocabulary[example], vocabulary[cue]) in allowed:
            break
    _, _, *others = distinct(draws, size, sum(lengths), first=(example, cue))
    at_cue = sum(lengths[: -template.count])
    symbols = iter([vocabulary[i] for i in (example, *others[: at_cue - 1], cue, *others[at_cue - 1 :])])
    each = [tuple([next(symbols) for _ in range(length)]) for length in lengths]
    regions: list[Values] = [tuple(each[i : i + template.count]) for i in range(0, len(each), template.count)]
    return Prompt(template, tuple(regions[:-1]), regions[-1])


# ----------------------------------------------------------------------------------------------------------------------
# The rows of a data set of one task.


COLUMNS = ("prompt", "completion", "info")


@dataclass(frozen=True)
class TemplaticSettings:
    """The settings of a data set.

    Args:
        task: the name of a task, see `hf_mech.programs.templatic.tasks`.
        seed: of all prompts; 0 or more.
        num_train: the number of training prompts, the first of the split; None for all, see `Task.train`.
        num_eval: the maximum number of prompts of any other split, its first ones; None for all, see `Split.size`.

    Raises:
        ProgramsError: no such task, or a number out of its range.
    """

    task: str
    seed: int = 0
    num_train: int | None = None
    num_eval: int | None = None

    def __post_init__(self) -> None:
        task_named(self.task)
        check_whole("seed", self.seed, 0, ProgramsError)
        check_whole("num_train", self.num_train, 1, ProgramsError, optional=True)
        check_whole("num_eval", self.num_eval, 1, ProgramsError, optional=True)

    def rows(self, split: str) -> int:
        """The number of prompts of the split. Raises ProgramsError: there is no such split."""
        size = task_named(self.task).size(split)
        if split == "train":
            return size if self.num_train is None else self.num_train
        return size if self.num_eval is None else min(size, self.num_eval)


def generate_rows(settings: TemplaticSettings, split: str, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the columns of the data set; the same on every machine.

    Raises:
        ProgramsError: there is no such split.
    """
    for table in tables_of(settings.rows(split), shard):
        examples = generate(settings.task, split, settings.seed, table.start, table.stop)
        rows = [(e.prompt, e.completion, e.info) for e in examples]
        yield pa.table({name: pa.array(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)})
