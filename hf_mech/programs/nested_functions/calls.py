"""Nested functions: definitions, calls and the steps to a value, the vocabularies and the splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.tasks import words as templatic_words

# ----------------------------------------------------------------------------------------------------------------------
# Definitions, expressions and the steps to a value: Sec. 9.3.1, (89).


ARROW = "->"


@dataclass(frozen=True)
class Call:
    """`function ( argument , argument )`; an argument is a text."""

    function: str
    arguments: tuple[Text, ...]

    @property
    def innermost(self) -> bool:
        """Whether no argument has a call."""
        return not any(has_call(argument) for argument in self.arguments)


Text = tuple["str | Call", ...]
"""Words and calls, one after the other."""


@dataclass(frozen=True)
class Definition:
    """`function ( parameter , parameter ) -> body`; words of the body that are no parameters stand for themselves."""

    function: str
    parameters: tuple[str, ...]
    body: Text

    def value(self, call: Call) -> Text:
        """The body with the call's arguments in place of the parameters.

        Raises:
            ProgramsError: the call has another number of arguments.
        """
        if len(call.arguments) != len(self.parameters):
            raise ProgramsError(
                f"{self.function} takes {len(self.parameters)} arguments, got {len(call.arguments)} in "
                f"{' '.join(words((call,)))!r}."
            )
        return _filled(self.body, dict(zip(self.parameters, call.arguments, strict=True)))

    def words(self) -> Iterator[str]:
        """The definition as it stands in a prompt."""
        yield from words((Call(self.function, tuple((name,) for name in self.parameters)),))
        yield ARROW
        yield from words(self.body)


def _filled(text: Text, values: Mapping[str, Text]) -> Text:
    filled: list[str | Call] = []
    for item in text:
        if isinstance(item, Call):
            filled.append(Call(item.function, tuple(_filled(argument, values) for argument in item.arguments)))
        else:
            filled.extend(values.get(item, (item,)))
    return tuple(filled)


def has_call(text: Text) -> bool:
    """Whether a text has a call."""
    return any(isinstance(item, Call) for item in text)


def depth(text: Text) -> int:
    """How deep calls stand in one another: 0 if there is none.

    >>> depth((Call("f", ((Call("g", (("a",),)),), ("b",))),))
    2
    """
    return max((1 + max(map(depth, item.arguments)) for item in text if isinstance(item, Call)), default=0)


def words(text: Text, values: Mapping[Call, Text] | None = None) -> Iterator[str]:
    """The words of a text, and behind each call that `values` has, an arrow and its value."""
    for item in text:
        if isinstance(item, str):
            yield item
            continue
        yield item.function
        yield "("
        for number, argument in enumerate(item.arguments):
            if number:
                yield ","
            yield from words(argument, values)
        yield ")"
        if values and item in values:
            yield ARROW
            yield from words(values[item])


def innermost_calls(text: Text) -> Iterator[Call]:
    """The calls without a call in their arguments."""
    for item in text:
        if isinstance(item, Call):
            if item.innermost:
                yield item
            for argument in item.arguments:
                yield from innermost_calls(argument)


def _replaced(text: Text, values: Mapping[Call, Text]) -> Text:
    replaced: list[str | Call] = []
    for item in text:
        if isinstance(item, str):
            replaced.append(item)
        elif item in values:
            replaced.extend(values[item])
        else:
            replaced.append(Call(item.function, tuple(_replaced(argument, values) for argument in item.arguments)))
    return tuple(replaced)


def steps(definitions: Mapping[str, Definition], expression: Text) -> Iterator[str]:
    """The words of a completion, (89): the expression with the values of its innermost calls behind them, if some are
    in other calls; an arrow; the expression with the values in place of the calls; and so on until no call is left.

    Args:
        definitions: by the name of the function.
        expression: what is evaluated. Where definitions call each other in a circle, the steps do not end.

    Raises:
        ProgramsError: a function is not defined, or has another number of arguments.
    """
    while has_call(expression):
        calls = dict.fromkeys(innermost_calls(expression))
        if undefined := next((call.function for call in calls if call.function not in definitions), None):
            raise ProgramsError(f"{undefined!r} is not defined; defined: {', '.join(definitions) or 'no functions'}.")
        values = {call: definitions[call.function].value(call) for call in calls}
        if depth(expression) > 1:
            yield from words(expression, values)
            yield ARROW
        expression = _replaced(expression, values)
        yield from words(expression)
        if has_call(expression):
            yield ARROW


# ----------------------------------------------------------------------------------------------------------------------
# The vocabularies and splits, as data. The paper proposes the task and names no sizes: these are ours.


VOCABULARIES: Mapping[str, int | None] = {"rlw": None, "small": 32, "single": 32}
"""Configurations: how many of the 676 two-letter words; None: all. `small` and `single` are for small models."""
TRAINED: Mapping[str, Mapping[str, tuple[int, ...]]] = {"single": {"definitions": (1,), "lengths": (1,)}}
"""What a configuration draws where a split asks for nothing else: `single` has one function and one-word arguments."""


@dataclass(frozen=True)
class Split:
    """How the prompts of a split are drawn.

    Args:
        name: of the split.
        size: the number of prompts.
        depths: how deep calls stand in one another, each as likely.
        definitions: how many functions are defined.
        arities: how many arguments a function has.
        lengths: how many words an argument without a call has.
        body_calls: whether bodies call functions defined before.
        held_out: whether the words are those that training never shows.
        most_words: of a prompt and its completion.
    """

    name: str
    size: int = 2_000
    depths: tuple[int, ...] = (1, 2)
    definitions: tuple[int, ...] = (2, 3)
    arities: tuple[int, ...] = (1, 2)
    lengths: tuple[int, ...] = (1, 2)
    body_calls: bool = False
    held_out: bool = False
    most_words: int = 500

    @property
    def short_name(self) -> str:
        """The head of its column in a table.

        >>> [split_named(name).short_name for name in ("test", "ood_lexical", "ood_depth_4")]
        ['test', 'lexical', 'depth 4']
        """
        return self.name.removeprefix("ood_").replace("_", " ")


SPLITS: Mapping[str, Split] = {
    split.name: split
    for split in (
        Split("train", 200_000),
        Split("test", 5_000),
        Split("ood_lexical", held_out=True),
        *(Split(f"ood_depth_{depth}", depths=(depth,)) for depth in (3, 4, 6)),
        *(Split(f"ood_length_{length}", lengths=(length,)) for length in (3, 6)),
        Split("ood_arguments_4", arities=(3, 4)),
        Split("ood_definitions_8", definitions=(8,)),
        Split("ood_bodies", body_calls=True),
    )
}


def split_named(name: str, config: str = "rlw") -> Split:
    """The split of that name in a configuration. Raises ProgramsError: there is none."""
    if name not in SPLITS:
        raise ProgramsError(f"The split must be one of {', '.join(SPLITS)}, got {name!r}.")
    split, train = SPLITS[name], SPLITS["train"]
    own: dict[str, Any] = dict(TRAINED.get(config, {}))
    if split.body_calls:
        own.pop("definitions", None)  # a body can call only a function that was defined before
    usual = {part: drawn for part, drawn in own.items() if getattr(split, part) == getattr(train, part)}
    return replace(split, **usual) if usual else split


def vocabulary(config: str, held_out: bool) -> tuple[str, ...]:
    """The words of prompts. Raises ProgramsError: there is no such configuration."""
    if config not in VOCABULARIES:
        raise ProgramsError(f"The configuration must be one of {', '.join(VOCABULARIES)}, got {config!r}.")
    return templatic_words("rlw", held_out)[: VOCABULARIES[config]]
