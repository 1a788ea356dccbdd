"""Definitions, expressions and the steps to a value: Sec. 9.3.1, (89)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hf_mech.programs.nested_functions.errors import PromptError

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
            PromptError: the call has another number of arguments.
        """
        if len(call.arguments) != len(self.parameters):
            raise PromptError(
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
        PromptError: a function is not defined, or has another number of arguments.
    """
    while has_call(expression):
        calls = dict.fromkeys(innermost_calls(expression))
        if undefined := next((call.function for call in calls if call.function not in definitions), None):
            raise PromptError(f"{undefined!r} is not defined; defined are {', '.join(definitions) or 'no functions'}.")
        values = {call: definitions[call.function].value(call) for call in calls}
        if depth(expression) > 1:
            yield from words(expression, values)
            yield ARROW
        expression = _replaced(expression, values)
        yield from words(expression)
        if has_call(expression):
            yield ARROW
