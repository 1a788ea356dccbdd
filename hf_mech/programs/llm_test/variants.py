"""The variants of a prompt that language models are asked, and the system prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from hf_mech.data.random_numbers import Draws
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.templatic.grammar import Prompt, Values, distinct, prompt_at
from hf_mech.programs.templatic.tasks import SPLITS, TASKS, Task, split_named, task_named, words

# ----------------------------------------------------------------------------------------------------------------------
# The instruction that the paper puts before each prompt when it tests a language model (App. G).


SYSTEM_PROMPT = (
    "You are a helpful assistant; please complete the following abstract pattern exactly once. The pattern contains an "
    "example question/answer pair, followed by a second question and a missing answer. Do not output anything except "
    "the final answer. Pay close attention to all special characters."
)
"""The paper's sys_prompt, word for word (App. G). It mentions one example. It is also used for k
shots, because the paper has no other wording."""

GRAMMAR = """\
<tgt> ::= <example> <cue>
<example> ::= Q <question> A <answer>
<cue> ::= Q <question> A
<question> ::= <dc sequence>
<answer> ::= <dc sequence>
<dc sequence> ::= <constituent list> [ <delimiter> ]
<constituent list> ::= <constituent> [ <delimiter> <constituent list> ]
<delimiter> ::= <symbol> [ <delimiter> ]
<constituent> ::= <symbol> [ <constituent> ]"""
"""The grammar of the task. App. G's text is garbled after the second rule; these are the nine rules of App. D, with
their left-hand sides moved back by one line. The constraints that App. D adds as text are left out."""

GRAMMAR_PROMPT = f"The grammar for these patterns can be described as follows:\n\n{GRAMMAR}"
"""The addition to the system prompt in the third row of Table 9 (App. G)."""


def system_prompt(grammar: bool = False) -> str:
    """The system prompt of App. G.

    Args:
        grammar: append the grammar of the task, as the third row of Table 9 does.
    """
    return f"{SYSTEM_PROMPT}\n\n{GRAMMAR_PROMPT}" if grammar else SYSTEM_PROMPT


# ----------------------------------------------------------------------------------------------------------------------
# The prompts of Tables 2 and 6 to 10: splits of the data set, selected, cut or changed as in App. H.
#
# The paper's "dynamically created" prompts are made from the prompts of a split, one for one. A variant then differs
# from its baseline only in the tested aspect:
#
# ======================  =====================================================================================
# `4_shot_rlw` and such   the next larger task of Table 1 with its last shots; the paper does not say how it cut
# `dyn_ood_lexical`       test, the letters of the cue's constituents in upper case
# `dyn_ood_cons_len`      test, each constituent of the cue replaced by 7 symbols that are new to the prompt
# `dyn_rev_cons_len`      test, each constituent of the shots replaced by 7 symbols that are new to the prompt
# `con_count`             only the split's prompts with that number of constituents
# `con_length`            only the split's prompts with that number of symbols in every constituent
# ======================  =====================================================================================


SHIFTED_LENGTH = 7
"""The symbols of a constituent in cues, or in shots, of another length (Table 10)."""

_K_SHOT = re.compile(r"([1-9]\d*)_shot_rlw")


@dataclass(frozen=True)
class Variant:
    """A set of prompts, with or without the grammar in the system prompt.

    Args:
        task: a task of Table 1, or `k_shot_rlw` with k from 1 to 10.
        split: a split of Table 1, `dyn_ood_lexical`, `dyn_ood_cons_len` or `dyn_rev_cons_len`.
        con_count: only prompts with that number of constituents; None takes all.
        con_length: only prompts with that number of symbols in every constituent; None takes all.
        grammar: append the grammar to the system prompt (Table 9).

    Raises:
        ProgramsError: if there is no such task or split, or none of its prompts has that count or length.
    """

    task: str = "1_shot_rlw"
    split: str = "test"
    con_count: int | None = None
    con_length: int | None = None
    grammar: bool = False

    def __post_init__(self) -> None:
        try:
            task = _source(self.task)
            split = split_named("test" if self.split in _SHIFTS else self.split)
        except ProgramsError as error:
            raise ProgramsError(
                f"{error} Beside these there are k_shot_rlw with k from 1 to 10, and the splits {', '.join(_SHIFTS)}."
            ) from error
        if self.split in _SHIFTS and task.vocabulary != "rlw":
            raise ProgramsError(f"{self.split} is made from two-letter words; {self.task} has others.")
        for name, asked, there in (
            ("con_count", self.con_count, split.counts),
            ("con_length", self.con_length, () if self.split in _LENGTH_SHIFTS else split.lengths),
        ):
            if asked is not None and asked not in there:
                choice = f"one of {', '.join(map(str, there))}" if there else "left out, since lengths differ,"
                raise ProgramsError(f"{name} must be {choice} in the split {self.split}, got {asked!r}.")

    @property
    def name(self) -> str:
        """A name fit for a file, such as `1_shot_rlw.test.count-2.length-1`."""
        parts = [self.task, self.split]
        parts += [f"count-{self.con_count}"] if self.con_count is not None else []
        parts += [f"length-{self.con_length}"] if self.con_length is not None else []
        return ".".join([*parts, "grammar"] if self.grammar else parts)


def prompts_of(variant: Variant, seed: int = 0, count: int = 100) -> list[Prompt]:
    """The first `count` prompts of a variant: the same for the same seed, and the first of any larger count.

    Args:
        variant: the variant of the task.
        seed: of the data set's prompts; 0 or more.
        count: number of prompts; 1 or more.

    Raises:
        ProgramsError: if the split has fewer, or seed or count is out of range.

    Example:

    ```python
    >>> (prompt,) = prompts_of(Variant("2_shot_rlw", "dyn_ood_lexical", con_count=2, con_length=1), count=1)
    >>> print(prompt.text, "|", prompt.completion)
    Q bm + ak ] | A ak } ^ bm ] & . Q mr + ne ] | A ne } ^ mr ] & . Q FK + QB ] | A | QB } ^ FK ] & .

    ```
    """
    numbers: tuple[tuple[str, Any, int], ...] = (("seed", seed, 0), ("count", count, 1))
    for name, value, least in numbers:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ProgramsError(f"{name} must be a whole number, {least} or more, got {value!r}.")
    prompts = list(islice(_prompts(variant, seed), count))
    if len(prompts) < count:
        raise ProgramsError(
            f"The split has {len(prompts)} prompts as {variant.name} asks for, {count} were asked for. Ask for fewer."
        )
    return prompts


def _prompts(variant: Variant, seed: int) -> Iterator[Prompt]:
    task, shift = _source(variant.task), _SHIFTS.get(variant.split)
    k = _shots(variant.task, task)
    split = "test" if shift else variant.split
    for index in range(task.size(split)):
        prompt = prompt_at(task, split, seed, index)
        prompt = Prompt(prompt.template, prompt.shots[len(prompt.shots) - k :], prompt.cue)
        if variant.con_count not in (None, prompt.template.count):
            continue
        if shift:
            prompt = shift(prompt, Draws(f"{variant.task}/{variant.split}/{seed}/{index}"))
        if variant.con_length is None or _all_lengths(prompt) == {variant.con_length}:
            yield prompt


def _lexical(prompt: Prompt, draws: Draws) -> Prompt:
    cue = tuple(tuple(symbol.upper() for symbol in value) for value in prompt.cue)
    return Prompt(prompt.template, prompt.shots, cue)


def _longer_cue(prompt: Prompt, draws: Draws) -> Prompt:
    fresh = _fresh(prompt, draws, prompt.template.count)
    return Prompt(prompt.template, prompt.shots, fresh)


def _longer_shots(prompt: Prompt, draws: Draws) -> Prompt:
    count = prompt.template.count
    fresh = _fresh(prompt, draws, count * len(prompt.shots))
    shots = tuple(fresh[at : at + count] for at in range(0, len(fresh), count))
    return Prompt(prompt.template, shots, prompt.cue)


def _fresh(prompt: Prompt, draws: Draws, constituents: int) -> Values:
    """Constituents of 7 symbols, all different and new to the prompt."""
    used = {symbol for values in (*prompt.shots, prompt.cue) for value in values for symbol in value}
    free = [word for word in words("rlw") if word not in used]
    drawn = [free[i] for i in distinct(draws, len(free), constituents * SHIFTED_LENGTH)]
    return tuple(tuple(drawn[at : at + SHIFTED_LENGTH]) for at in range(0, len(drawn), SHIFTED_LENGTH))


_SHIFTS: dict[str, Callable[[Prompt, Draws], Prompt]] = {
    "dyn_ood_lexical": _lexical,
    "dyn_ood_cons_len": _longer_cue,
    "dyn_rev_cons_len": _longer_shots,
}

_LENGTH_SHIFTS = ("dyn_ood_cons_len", "dyn_rev_cons_len")

ALL_SPLITS = (*SPLITS, *_SHIFTS)
"""Every split that a variant can have."""


def _source(task: str) -> Task:
    """The task of Table 1 that gives the prompts: the task itself, or the next with more shots."""
    match = _K_SHOT.fullmatch(task)
    if match is None or task in TASKS:
        return task_named(task)
    larger = [other for name, other in TASKS.items() if _K_SHOT.fullmatch(name) and other.shots > int(match[1])]
    if not larger:
        raise ProgramsError(f"No task has as many shots as {task!r}.")
    return min(larger, key=lambda other: other.shots)


def _shots(task: str, source: Task) -> int:
    match = _K_SHOT.fullmatch(task)
    return int(match[1]) if match else source.shots


def _all_lengths(prompt: Prompt) -> set[int]:
    return set(map(len, chain(*prompt.shots, prompt.cue)))
