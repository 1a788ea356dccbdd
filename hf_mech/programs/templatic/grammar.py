"""Prompts drawn from the grammar of App. D; each depends only on task, split, seed and index."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hf_mech.data.random_numbers import Draws
from hf_mech.data.whole_numbers import check_whole
from hf_mech.programs.templatic.errors import TaskError
from hf_mech.programs.templatic.tasks import Split, Task, split_named, task_named
from hf_mech.programs.templatic.template import END, Field, Prompt, Template, Values
from hf_mech.programs.templatic.words import DELIMITER_SYMBOLS

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
        TaskError: no such task or split, or a seed or range out of bounds.

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
        check_whole(name, value, 0, TaskError)
    return (_example(task, split, seed, index) for index in range(start, stop))


def prompt_at(task: str | Task, split: str | Split, seed: int, index: int) -> Prompt:
    """One example as its template and the values of its constituents. Raises TaskError: no such task or split."""
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
        TaskError: `count` is larger than n.
    """
    if count > n:
        raise TaskError(f"No {count} different symbols can be drawn out of {n}.")
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
