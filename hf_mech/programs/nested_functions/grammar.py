"""Prompts drawn at random; each depends only on configuration, split, seed and index."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hf_mech.data.random_numbers import Draws
from hf_mech.data.whole_numbers import check_whole
from hf_mech.programs.nested_functions.calls import Call, Definition, Text, depth
from hf_mech.programs.nested_functions.errors import SplitError
from hf_mech.programs.nested_functions.prompt import Prompt
from hf_mech.programs.nested_functions.splits import Split, split_named, vocabulary

BUCKETS = 10
_SPLIT_BUCKETS = {"train": range(9), "test": range(9, 10)}
"""The parts of all prompts, by `bucket`, that a split may draw from: train and test share no prompt, for any seeds."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Example:
    """One row of the data set.

    Args:
        prompt: definitions, an expression and an arrow, words with one space between them.
        completion: the steps to its value.
        info: JSON: `depth` of the expression, number of `definitions`, number of words of the completion, `words`.
    """

    prompt: str
    completion: str
    info: str


def generate(
    config: str = "rlw", split: str | Split = "train", seed: int = 0, start: int = 0, stop: int | None = None
) -> Iterator[Example]:
    """The examples `start` to `stop - 1` of a split.

    Args:
        config: the vocabulary, see `VOCABULARIES`.
        split: a split or its name.
        seed: 0 or more; another seed gives other examples.
        start, stop: the range of indices. By default `stop` is the split's size; a larger one continues the split.

    Raises:
        SplitError: no such configuration or split, or a seed or range out of bounds.

    Example:

    ```python
    >>> example = next(generate("rlw", "test", stop=1))
    >>> print(example.prompt)
    jo ( ed , dr ) -> ed ed dr ; bi ( hg ) -> hg iy hg ; dy ( gs ) -> gs gs ; bi ( bi ( tt ) ) ->
    >>> print(example.completion)
    bi ( bi ( tt ) -> tt iy tt ) -> bi ( tt iy tt ) -> tt iy tt iy tt iy tt

    ```
    """
    split = split_named(split) if isinstance(split, str) else split
    vocabulary(config, split.held_out)
    stop = split.size if stop is None else stop
    for name, value in (("seed", seed), ("start", start), ("stop", stop)):
        check_whole(name, value, 0, SplitError)
    return (_example(config, split, seed, index) for index in range(start, stop))


def bucket(prompt: str) -> int:
    """The number of a prompt's part, out of 10. Train has 9 parts, test has one."""
    return zlib.crc32(prompt.encode()) % BUCKETS


def _example(config: str, split: Split, seed: int, index: int) -> Example:
    draws = Draws(f"nested/{config}/{split.name}/{seed}/{index}")
    allowed = _SPLIT_BUCKETS.get(split.name, range(BUCKETS))
    while True:
        prompt = _Drawing(draws, split, list(vocabulary(config, split.held_out))).prompt()
        text = prompt.text
        if bucket(text) not in allowed:
            continue
        completion = prompt.completion()
        said = completion.count(" ") + 1
        if text.count(" ") + 1 + said <= split.most_words:
            break
    info = {"depth": depth(prompt.expression), "definitions": len(prompt.definitions), "words": said}
    return Example(text, completion, json.dumps(info))


class _Drawing:
    """One prompt; functions, parameters and other words are different words."""

    def __init__(self, draws: Draws, split: Split, words: list[str]) -> None:
        self.draws = draws
        self.split = split
        self.words = words

    def prompt(self) -> Prompt:
        definitions: list[Definition] = []
        for function in [self.new_word() for _ in range(self.one_of(self.split.definitions))]:
            definitions.append(self.definition(function, definitions))
        expression = (self.call(self.one_of(self.split.depths), definitions),)
        order = list(range(len(definitions)))
        return Prompt(tuple(definitions[order.pop(self.draws.below(len(order)))] for _ in definitions), expression)

    def definition(self, function: str, before: Sequence[Definition]) -> Definition:
        """Its body has as many parameters as it takes arguments, or one more, drawn with return, and perhaps a word."""
        parameters = tuple(self.new_word() for _ in range(self.one_of(self.split.arities)))
        self.words += parameters  # other definitions may have them, too
        body: list[str | Call] = [self.one_of(parameters) for _ in range(len(parameters) + self.draws.below(2))]
        if self.draws.below(2):
            constants = [word for word in self.words if word not in parameters]
            body.insert(self.draws.below(len(body) + 1), self.one_of(constants))
        if self.split.body_calls and before:
            called = self.one_of(before)
            arguments = tuple((self.one_of(parameters),) for _ in called.parameters)
            body[self.draws.below(len(body))] = Call(called.function, arguments)
        return Definition(function, parameters, tuple(body))

    def call(self, depth: int, definitions: Sequence[Definition]) -> Call:
        """A call of that depth exactly: one argument has a call of a depth less by one, others may have a call."""
        called = self.one_of(definitions)
        deepest = self.draws.below(len(called.parameters))
        arguments: list[Text] = []
        for number in range(len(called.parameters)):
            if depth > 1 and number == deepest:
                arguments.append((self.call(depth - 1, definitions),))
            elif depth > 1 and self.draws.below(3) == 0:
                arguments.append((self.call(1 + self.draws.below(depth - 1), definitions),))
            else:
                arguments.append(tuple(self.one_of(self.words) for _ in range(self.one_of(self.split.lengths))))
        return Call(called.function, tuple(arguments))

    def one_of(self, choices: Sequence[_T]) -> _T:
        return choices[self.draws.below(len(choices))]

    def new_word(self) -> str:
        """A word that no later draw gives again."""
        return self.words.pop(self.draws.below(len(self.words)))
