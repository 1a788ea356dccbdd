"""Prompts as text: definitions with a semicolon behind each, the expression, and an arrow, (89)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import Any

import lark

from hf_mech.programs.nested_functions.calls import ARROW, Call, Definition, Text, has_call, steps, words
from hf_mech.programs.nested_functions.errors import PromptError

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
            PromptError: a function is not defined or has another number of arguments, or the steps have more words.
        """
        said = list(islice(steps(self.by_name, self.expression), most_words + 1))
        if len(said) > most_words:
            raise PromptError(f"The steps have more than {most_words:,} words; do definitions call each other?")
        return " ".join(said)


def read_prompt(text: str) -> Prompt:
    """The prompt in a text with a space between words.

    Raises:
        PromptError: the text is no prompt, a function is defined twice, or a parameter is.

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
        raise PromptError(f"A prompt has the form {form}, got {text!r}.") from error
    for names in ([one.function for one in prompt.definitions], *(one.parameters for one in prompt.definitions)):
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise PromptError(f"{twice!r} is defined twice; give each function and parameter a name of its own.")
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
        raise PromptError(f"A definition begins like `f ( x , y ) ->`, got {' '.join(words(head))!r}.")

    def text(self, children: list[Any]) -> Text:
        return tuple(children)

    def call(self, children: list[Any]) -> Call:
        function, *arguments = children
        return Call(function, tuple(arguments))

    def WORD(self, token: lark.Token) -> str:
        return str(token)
