"""How deep the bracketed expressions are nested, and how far evaluating a few levels of them can take a model.

The stack of a layer holds the layer's inputs, not what the layer makes of them. So one would expect a layer to evaluate
one level of brackets; that trained models are bounded by it is not shown here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice
from hf_mech.languages import TASKS

from .settings import TEST_LENGTHS

_SAMPLES = 200
_SEED = 0


def nesting(symbols: Sequence[str]) -> int:
    """The most operations that an operand of the expression passes through: 0 for `3` or `(-3)`, 2 for `((1+2)*3)`."""
    open_brackets: list[list[int]] = [[]]
    for symbol in symbols:
        if symbol == "(":
            open_brackets.append([])
        elif symbol == ")":
            operands = open_brackets.pop()
            open_brackets[-1].append(max(operands) + (len(operands) > 1))
        elif symbol == "x" or symbol.isdigit():
            open_brackets[-1].append(0)
        elif symbol == "=":
            break
    return open_brackets[0][0]


def accuracy_of_levels(task: str, levels: int) -> float:
    """What one scores on the test lengths who answers right up to so many levels, and else the most frequent answer.

    Measured on 200 examples of each length.
    """
    depths, answers = _examples(task)
    deep = depths > levels
    guess = np.bincount(answers).argmax()
    return float(np.where(deep, answers == guess, True).mean())


@cache
def _examples(task: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nesting and the answer of examples of all test lengths, as many of each."""
    known, depths, answers = TASKS[task], [], []
    for length in known.lengths(*TEST_LENGTHS):
        examples = known.sample(Dice(_SEED, (length,)), length, _SAMPLES)
        depths += [nesting(text) for text in np.array(known.inputs)[examples.inputs].tolist()]
        answers += examples.outputs[:, 0].tolist()
    return np.array(depths), np.array(answers)
