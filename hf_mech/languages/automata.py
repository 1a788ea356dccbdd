"""Tasks that run an automaton over the string: three finite ones, and one with a stack.

A finite automaton outputs one symbol for the whole string. Stack manipulation reads a stack from bottom to top, then
actions on it; its output is the stack from top to bottom.
"""

from __future__ import annotations

import numpy as np

from hf_mech.data.random_numbers import Dice
from hf_mech.languages.task import Examples, Task, all_scored

_POP, _FIRST_PUSH, _BOTTOM = 2, 3, 2


def _even_pairs(dice: Dice, length: int, count: int) -> Examples:
    """Whether `ab` and `ba` together occur an even number of times: true if the first and last symbols are equal."""
    inputs = dice.below(2, (count, length))
    return all_scored(inputs, (inputs[:, :1] == inputs[:, -1:]).astype("int64"))


def _parity_check(dice: Dice, length: int, count: int) -> Examples:
    """Whether `b` occurs an even number of times."""
    inputs = dice.below(2, (count, length))
    return all_scored(inputs, 1 - inputs.sum(axis=1, keepdims=True) % 2)


def _cycle_navigation(dice: Dice, length: int, count: int) -> Examples:
    """The end of a walk from 0 on a circle of five places; a step is -1, 0 or +1."""
    inputs = dice.below(3, (count, length))
    return all_scored(inputs, (inputs - 1).sum(axis=1, keepdims=True) % 5)


def _stack_manipulation(dice: Dice, length: int, count: int) -> Examples:
    """No loop over time: an element is on the last stack if the stack never fell below it after its push."""
    start = 1 + dice.below(max(length - 1, 1), (count, 1))
    words = dice.words((count, length))
    initial = np.arange(length) < start
    # The initial stack has symbols 0 and 1; then come actions 2 to 4.
    inputs = ((words * np.where(initial, np.uint64(2), np.uint64(3))) >> np.uint64(32)).view(np.int64)
    inputs += 2 * ~initial

    pops = inputs == _POP
    walk = np.cumsum(np.where(pops, np.int32(-1), np.int32(1)), axis=1, dtype=np.int32)
    # A POP of an empty stack changes nothing, so the height is the walk reflected at zero.
    height = walk - np.minimum(np.minimum.accumulate(walk, axis=1), 0)
    lowest_after = np.minimum.accumulate(height[:, ::-1], axis=1)[:, ::-1]
    rows, times = np.nonzero(~pops & (height <= lowest_after))

    last = height[:, -1]
    outputs = np.zeros((count, length + 1), np.int64)
    pushed = inputs[rows, times]
    outputs[rows, last[rows] - height[rows, times]] = np.where(pushed < _POP, pushed, pushed - _FIRST_PUSH)
    outputs[np.arange(count), last] = _BOTTOM
    return Examples(inputs, outputs, np.arange(length + 1) <= last[:, None])


EVEN_PAIRS = Task("even_pairs", "regular", ("a", "b"), ("odd", "even"), _even_pairs)
PARITY_CHECK = Task("parity_check", "regular", ("a", "b"), ("odd", "even"), _parity_check)
CYCLE_NAVIGATION = Task("cycle_navigation", "regular", ("LEFT", "STAY", "RIGHT"), tuple("01234"), _cycle_navigation)
STACK_MANIPULATION = Task(
    "stack_manipulation",
    "deterministic context-free",
    ("a", "b", "POP", "PUSHa", "PUSHb"),
    ("a", "b", "[END]"),
    _stack_manipulation,
)
