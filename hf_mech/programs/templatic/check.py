"""Check prompts against the grammar of App. D: an error for an unreadable one, a warning for a broken constraint."""

from __future__ import annotations

import warnings
from collections import Counter

from hf_mech.programs.templatic.errors import GrammarWarning
from hf_mech.programs.templatic.parse import Region, parse, regions
from hf_mech.programs.templatic.template import Prompt


def violations(text: str) -> list[str]:
    """The additional constraints of App. D that a prompt breaks, in words; an empty list for a prompt of the grammar.

    Raises:
        PromptError: the text is not k examples and a cue.
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
        PromptError: no cue, no example, or no common template, and so no completion.

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
