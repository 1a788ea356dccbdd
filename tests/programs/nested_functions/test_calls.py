"""The steps of an evaluation, and what a prompt may be: the paper's example, and an evaluator of another kind."""

from __future__ import annotations

import re

import pytest

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.nested_functions.calls import SPLITS
from hf_mech.programs.nested_functions.grammar import generate, read_prompt

PAPERS = "swap ( x , y ) -> y x ; twice ( x ) -> x x ; swap ( twice ( a b ) , swap ( c , d ) ) ->"


def by_rewriting(prompt: str) -> str:
    """The completion by regular expressions: an innermost call is a name and brackets without brackets."""
    *definitions, expression = (part.strip() for part in prompt.removesuffix("->").split(" ; "))
    bodies = {}
    for definition in definitions:
        head, _, body = definition.partition(" -> ")
        name, parameters = re.fullmatch(r"(\S+) \( (.*) \)", head).groups()
        bodies[name] = (parameters.split(" , "), body.split())
    innermost = re.compile(r"(\S+) \( ([^()]*) \)")

    def value(call: re.Match[str]) -> str:
        parameters, body = bodies[call[1]]
        arguments = dict(zip(parameters, call[2].split(" , "), strict=True))
        return " ".join(arguments.get(word, word) for word in body)

    said = []
    while "(" in expression:
        if innermost.sub("", expression).count("("):
            said.append(innermost.sub(lambda call: f"{call[0]} -> {value(call)}", expression))
        expression = innermost.sub(value, expression)
        said.append(expression)
    return " -> ".join(said)


def test_the_papers_example() -> None:
    wanted = "swap ( twice ( a b ) -> a b a b , swap ( c , d ) -> d c ) -> swap ( a b a b , d c ) -> d c a b a b"
    assert read_prompt(PAPERS).completion() == by_rewriting(PAPERS) == wanted
    assert read_prompt(PAPERS).text == PAPERS


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("config", ["rlw", "small"])
def test_completions_are_those_of_an_evaluator_of_another_kind(config: str, split: str) -> None:
    for example in generate(config, split, seed=3, stop=40):
        assert example.completion == by_rewriting(example.prompt)
        assert read_prompt(example.prompt).text == example.prompt
        assert read_prompt(example.prompt).completion() == example.completion


def test_words_stand_beside_calls_and_bodies_may_call() -> None:
    prompt = "f ( x ) -> g ( x ) q ; g ( y ) -> y and y ; f ( g ( a ) b ) c ->"
    wanted = "f ( g ( a ) -> a and a b ) c -> f ( a and a b ) c -> g ( a and a b ) q c -> a and a b and a and a b q c"
    assert read_prompt(prompt).completion() == by_rewriting(prompt) == wanted


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("f ( x ) -> x ; f ( a )", "A prompt has the form"),
        ("f ( ) -> x ; f ( a ) ->", "A prompt has the form"),
        ("f(x) -> x ; f(a) ->", r"A definition begins like `f \( x , y \) ->`, got 'f\(x\)'"),
        ("f ( x y ) -> x ; f ( a ) ->", "A definition begins like"),
        ("f ( x , x ) -> x ; f ( a , b ) ->", "'x' is defined twice"),
        ("f ( x ) -> x ; f ( y ) -> y ; f ( a ) ->", "'f' is defined twice"),
        ("f ( x ) -> x ; g ( a ) ->", "'g' is not defined; defined: f"),
        ("f ( x ) -> x ; f ( a , b ) ->", r"f takes 1 arguments, got 2 in 'f \( a , b \)'"),
        ("f ( x ) -> f ( x ) x ; f ( a ) ->", "The steps have more than 10,000 words"),
    ],
)
def test_other_prompts_are_refused(prompt: str, message: str) -> None:
    with pytest.raises(ProgramsError, match=message):
        read_prompt(prompt).completion()
