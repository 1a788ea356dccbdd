"""Prompts read back: their parts, a check of a completion, and the right completion."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import groupby

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.grammar import ANSWER, QUESTION, Field, Prompt, Template, Values
from hf_mech.programs.templatic.tasks import GrammarWarning

# ----------------------------------------------------------------------------------------------------------------------
# From the text of a prompt to its template and the values of its constituents (Sec. 3.3).


Region = tuple[str, ...]


def regions(text: str) -> tuple[tuple[tuple[Region, Region], ...], Region]:
    """Split a prompt into the Q-region and A-region of each example, and the Q-region of its cue, without `Q` and `A`.

    Raises:
        ProgramsError: no cue, no example, or a region that is empty or out of order.
    """
    symbols = text.split()
    marks = [(i, s) for i, s in enumerate(symbols) if s in (QUESTION, ANSWER)]
    if not symbols or symbols[0] != QUESTION:
        raise ProgramsError(f"A prompt begins with {QUESTION!r}, got {_start(symbols)}.")
    if symbols[-1] != ANSWER:
        raise ProgramsError(
            f"A prompt ends with a cue, {QUESTION!r} question {ANSWER!r}, that asks for the answer; got the end "
            f"{' '.join(symbols[-5:])!r}. Leave out the answer, and keep the {ANSWER!r} before it."
        )
    for number, (at, mark) in enumerate(marks):
        if mark != (QUESTION, ANSWER)[number % 2]:
            raise ProgramsError(f"{QUESTION!r} and {ANSWER!r} must take turns, got {mark!r} twice by symbol {at + 1}.")
    ends = [at for at, _ in marks[1:]]
    parts = [tuple(symbols[at + 1 : end]) for (at, _), end in zip(marks, ends, strict=False)]
    for part, (at, mark) in zip(parts, marks, strict=False):
        if not part:
            raise ProgramsError(f"Nothing comes after the {mark!r} that is symbol {at + 1} of the prompt.")
    *examples, cue = parts
    if not examples:
        raise ProgramsError("A prompt needs at least one example before its cue, got a cue alone.")
    return tuple(zip(examples[::2], examples[1::2], strict=True)), cue


def parse(text: str) -> Prompt:
    """The template of a prompt, and the values of its constituents.

    A symbol in the question of every example and in the cue is part of a delimiter (32c-iii); the symbols between
    delimiters are a constituent (32b-iii). In an answer, a question's constituent is a field that the cue fills; all
    other symbols are delimiters (32d-i).

    Raises:
        ProgramsError: the text is not k examples and a cue, or they do not follow one template.

    Example:

    ```python
    >>> print(parse("Q B V D E A D E V B . Q F G H V K L A").template)
    Q <1> V <2> A <2> V <1> .

    ```
    """
    examples, cue = regions(text)
    fixed = set(cue).intersection(*(question for question, _ in examples))
    fields, cue_values = _fields(cue, fixed)
    templates, shots = [], []
    for number, (question, answer) in enumerate(examples, 1):
        found, values = _fields(question, fixed)
        if found != fields:
            raise ProgramsError(
                f"The question of example {number} does not have the cue's delimiters in the cue's order: "
                f"{_show(found)!r}, and the cue has {_show(fields)!r}. Symbols that both have are taken for "
                "delimiters: a constituent of the cue must have others than the example's."
            )
        order = _answer(answer, values, number)
        try:
            templates.append(Template(fields, order))
        except ProgramsError as error:
            raise ProgramsError(f"Example {number} follows no template. {error}") from error
        shots.append(values)
    for number, template in enumerate(templates, 1):
        if template != templates[0]:
            raise ProgramsError(f"Example 1 follows {str(templates[0])!r}, and example {number} {str(template)!r}.")
    return Prompt(templates[0], tuple(shots), cue_values)


def _fields(question: Region, fixed: set[str]) -> tuple[tuple[Field, ...], Values]:
    """The fields of a Q-region, runs of fixed symbols and of others, and the values of its constituents."""
    fields: list[Field] = []
    values: list[Region] = []
    for is_delimiter, run in groupby(question, key=fixed.__contains__):
        if is_delimiter:
            fields.append(tuple(run))
        else:
            fields.append(len(values))
            values.append(tuple(run))
    return tuple(fields), tuple(values)


def _answer(answer: Region, values: Values, number: int) -> tuple[Field, ...]:
    """The fields of an A-region, from whole constituents of the question and delimiters."""
    longest_first = sorted(enumerate(values), key=lambda pair: -len(pair[1]))
    inside = {symbol for value in values for symbol in value}
    fields: list[Field] = []
    at = 0
    while at < len(answer):
        symbol = answer[at]
        if symbol in inside:
            whole = next((pair for pair in longest_first if answer[at : at + len(pair[1])] == pair[1]), None)
            if whole is None:
                raise ProgramsError(
                    f"The answer of example {number} has {symbol!r} of a constituent and not all of that constituent. "
                    "An answer repeats constituents whole (32d-ii)."
                )
            fields.append(whole[0])
            at += len(whole[1])
        else:
            before = fields[-1] if fields else None
            if isinstance(before, tuple):
                fields[-1] = (*before, symbol)
            else:
                fields.append((symbol,))
            at += 1
    return tuple(fields)


def _show(fields: tuple[Field, ...]) -> str:
    return " ".join(f"<{f + 1}>" if isinstance(f, int) else " ".join(f) for f in fields)


def _start(symbols: list[str]) -> str:
    return repr(" ".join(symbols[:5])) if symbols else "no symbol"


# ----------------------------------------------------------------------------------------------------------------------
# Check prompts against the grammar of App. D: an error for an unreadable one, a warning for a broken constraint.


def violations(text: str) -> list[str]:
    """The additional constraints of App. D that a prompt breaks, in words; an empty list for a prompt of the grammar.

    Raises:
        ProgramsError: the text is not k examples and a cue.
    """
    examples, cue = regions(text)
    found = []
    for number, (question, answer) in enumerate(examples, 1):
        found += _repeated(question, f"<question> of example {number}")
        found += _repeated(answer, f"<answer> of example {number}")
    found += _repeated(cue, "<cue>")
    # A symbol in every question and in the cue is part of a delimiter; other shared symbols are not.
    fixed = set(cue).intersection(*(question for question, _ in examples))
    for number, (question, _) in enumerate(examples, 1):
        here, there = ([s for s in dict.fromkeys(part) if s in question and s in cue] for part in (question, cue))
        moved = {s for pair in zip(here, there, strict=True) if pair[0] != pair[1] for s in pair}
        if shared := [s for s in here if s in moved or s not in fixed]:
            found.append(
                f"{_list(shared)}: symbols in the <constituents> of the <cue> cannot overlap with symbols in the "
                f"<constituents> of the <question> (of example {number})."
            )
    return found


def check_prompt(text: str) -> Prompt:
    """Read a prompt. Warn of each broken constraint of App. D, before any error.

    Warns:
        GrammarWarning: a symbol is repeated where the grammar forbids it; the completion may not be the only one.

    Raises:
        ProgramsError: no cue, no example, or no common template, and so no completion.

    Example:

    ```python
    >>> print(check_prompt("Q x => y A y or not x . Q ( u and v ) => z A").template)
    Q <1> => <2> A <2> or not <1> .

    ```
    """
    for violation in violations(text):
        warnings.warn(f"The prompt breaks a constraint of App. D. {violation}", GrammarWarning, stacklevel=2)
    return parse(text)


def _repeated(region: Region, name: str) -> list[str]:
    repeated = [symbol for symbol, times in Counter(region).items() if times > 1]
    return [f"{_list(repeated)}: no symbol can be repeated within the {name}."] if repeated else []


def _list(symbols: list[str]) -> str:
    return ", ".join(map(repr, symbols))


# ----------------------------------------------------------------------------------------------------------------------
# The right completion of a prompt, found by plain text processing: the reference for a model's answer.


def complete(prompt: str) -> str:
    """The completion of a prompt of k examples and a cue, exact wherever the prompt follows a template.

    Symbols of the result have one space between them. A prompt that breaks a constraint of App. D may have several
    readings; this function takes one of them. `hf_mech.programs.templatic.parse.check_prompt` finds such prompts.

    Raises:
        ProgramsError: the text is not k examples and a cue, or they do not follow one template.

    Example: `tgt 1` of Sec. 7.2.4.

    ```python
    >>> complete("Q the big bear ? a red car A the big bear $ . Q some baby cub ? one small house A")
    'some baby cub $ .'

    ```
    """
    return parse(prompt).completion
