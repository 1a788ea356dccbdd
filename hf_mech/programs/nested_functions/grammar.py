"""Prompts of nested functions: as text, read back, drawn at random, and as the rows of a data set."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import islice
from typing import Any, TypeVar

import lark
import pyarrow as pa

from hf_mech.data.random_numbers import Draws
from hf_mech.data.shards import tables_of
from hf_mech.data.whole_numbers import check_whole
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.nested_functions.calls import (
    ARROW,
    Call,
    Definition,
    Split,
    Text,
    depth,
    has_call,
    split_named,
    steps,
    vocabulary,
    words,
)

# ----------------------------------------------------------------------------------------------------------------------
# Prompts as text: definitions with a semicolon behind each, the expression, and an arrow, (89).


END = ";"
MOST_WORDS = 10_000

_GRAMMAR = r"""
prompt: (definition ";")* text "->"
definition: text "->" text
text: (WORD | call)+
call: WORD "(" text ("," text)* ")"
WORD: /\S+/
%ignore /\s+/
"""


@dataclass(frozen=True)
class Prompt:
    """Definitions, and an expression of their functions."""

    definitions: tuple[Definition, ...]
    expression: Text

    @cached_property
    def by_name(self) -> Mapping[str, Definition]:
        """The definitions, by the name of the function."""
        return {definition.function: definition for definition in self.definitions}

    @property
    def text(self) -> str:
        """The prompt's words, with spaces between them."""
        said = [word for definition in self.definitions for word in (*definition.words(), END)]
        return " ".join([*said, *words(self.expression), ARROW])

    def completion(self, most_words: int = MOST_WORDS) -> str:
        """Every step to the value.

        Raises:
            ProgramsError: a function is not defined or has another number of arguments, or the steps have more words.
        """
        said = list(islice(steps(self.by_name, self.expression), most_words + 1))
        if len(said) > most_words:
            raise ProgramsError(f"The steps have more than {most_words:,} words; do definitions call each other?")
        return " ".join(said)


def read_prompt(text: str) -> Prompt:
    """The prompt in a text with a space between words.

    Raises:
        ProgramsError: the text is no prompt, a function is defined twice, or a parameter is.

    Example:

    ```python
    >>> prompt = read_prompt("swap ( x , y ) -> y x ; twice ( x ) -> x x ; swap ( twice ( a b ) , swap ( c , d ) ) ->")
    >>> print(prompt.completion())
    swap ( twice ( a b ) -> a b a b , swap ( c , d ) -> d c ) -> swap ( a b a b , d c ) -> d c a b a b

    ```
    """
    try:
        prompt: Prompt = _Reader().transform(_parser().parse(text))
    except lark.exceptions.VisitError as error:
        raise error.orig_exc from None
    except lark.UnexpectedInput as error:
        form = "`f ( x , y ) -> y x ; f ( a , b ) ->`, with a space between words"
        raise ProgramsError(f"A prompt has the form {form}, got {text!r}.") from error
    for names in ([one.function for one in prompt.definitions], *(one.parameters for one in prompt.definitions)):
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ProgramsError(f"{twice!r} is defined twice; give each function and parameter a name of its own.")
    return prompt


@cache
def _parser() -> lark.Lark:
    return lark.Lark(_GRAMMAR, start="prompt", parser="lalr", lexer="basic")


class _Reader(lark.Transformer[Any, Any]):
    def prompt(self, children: list[Any]) -> Prompt:
        *definitions, expression = children
        return Prompt(tuple(definitions), expression)

    def definition(self, children: list[Text]) -> Definition:
        head, body = children
        match head:
            case (Call(function, arguments),) if all(len(one) == 1 and not has_call(one) for one in arguments):
                return Definition(function, tuple(str(name) for (name,) in arguments), body)
        raise ProgramsError(f"A definition begins like `f ( x , y ) ->`, got {' '.join(words(head))!r}.")

    def text(self, children: list[Any]) -> Text:
        return tuple(children)

    def call(self, children: list[Any]) -> Call:
        function, *arguments = children
        return Call(function, tuple(arguments))

    def WORD(self, token: lark.Token) -> str:
        return str(token)


# ----------------------------------------------------------------------------------------------------------------------
# Prompts drawn at random; each depends only on configuration, split, seed and index.


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
        config: the vocabulary and what training draws, see `VOCABULARIES` and `TRAINED`.
        split: a split or its name.
        seed: 0 or more; another seed gives other examples.
        start, stop: the range of indices. By default `stop` is the split's size; a larger one continues the split.

    Raises:
        ProgramsError: no such configuration or split, or a seed or range out of bounds.

    Example:

    ```python
    >>> example = next(generate("rlw", "test", stop=1))
    >>> print(example.prompt)
    jo ( ed , dr ) -> ed ed dr ; bi ( hg ) -> hg iy hg ; dy ( gs ) -> gs gs ; bi ( bi ( tt ) ) ->
    >>> print(example.completion)
    bi ( bi ( tt ) -> tt iy tt ) -> bi ( tt iy tt ) -> tt iy tt iy tt iy tt

    ```
    """
    split = split_named(split, config) if isinstance(split, str) else split
    vocabulary(config, split.held_out)
    stop = split.size if stop is None else stop
    for name, value in (("seed", seed), ("start", start), ("stop", stop)):
        check_whole(name, value, 0, ProgramsError)
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


# ----------------------------------------------------------------------------------------------------------------------
# The rows of a data set; the prompts come from `hf_mech.programs.nested_functions.grammar`.


COLUMNS = ("prompt", "completion", "info")
_SCHEMA = pa.schema([(name, pa.string()) for name in COLUMNS])


@dataclass(frozen=True)
class NestedFunctionSettings:
    """The settings of a data set.

    Args:
        config: the vocabulary and what training draws, see `VOCABULARIES` and `TRAINED`.
        seed: of all prompts; 0 or more.
        num_train: the number of training prompts, the first of the split; None for all.
        num_eval: the maximum number of prompts of any other split, its first ones; None for all.

    Raises:
        ProgramsError: no such configuration, or a number out of its range.
    """

    config: str
    seed: int = 0
    num_train: int | None = None
    num_eval: int | None = None

    def __post_init__(self) -> None:
        vocabulary(self.config, held_out=False)
        check_whole("seed", self.seed, 0, ProgramsError)
        check_whole("num_train", self.num_train, 1, ProgramsError, optional=True)
        check_whole("num_eval", self.num_eval, 1, ProgramsError, optional=True)

    def rows(self, split: str) -> int:
        """The number of prompts of the split. Raises ProgramsError: there is no such split."""
        size = split_named(split).size
        if split == "train":
            return size if self.num_train is None else self.num_train
        return size if self.num_eval is None else min(size, self.num_eval)


def generate_rows(settings: NestedFunctionSettings, split: str, shard: int) -> Iterator[pa.Table]:
    """The rows of one shard, as tables with the columns of the data set; the same on every machine.

    Raises:
        ProgramsError: there is no such split.
    """
    for table in tables_of(settings.rows(split), shard):
        examples = generate(settings.config, split, settings.seed, table.start, table.stop)
        yield pa.Table.from_pylist([asdict(example) for example in examples], _SCHEMA)
