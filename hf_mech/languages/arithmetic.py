"""Arithmetic modulo five: random expressions and equations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice, scaled
from hf_mech.languages.task import Examples, Task, all_scored

# ----------------------------------------------------------------------------------------------------------------------
# Arithmetic modulo 5: expressions with brackets, equations in one unknown, and expressions without brackets.
#
# An expression of length 1 to 4 is `d`, `-d`, `(d)` or `(-d)`; a longer one is `(left op right)`, the length of its
# left
# side uniform in 1 to length - 4. The trees of all examples are built together, level by level.
#
# The unknown is `x` and the congruence sign is `=`. An expression to evaluate ends without `=`; its value is the
# output.


_DIGITS = tuple("01234")
_MODULUS = 5
_LONGEST_LEAF = 4
_SIGN = np.array([1, -1, 1, -1])  # of a leaf, by its length - 1
_DIGIT_AT = np.array([0, 1, 1, 2])  # the place of its digit


def _operations() -> NDArray[np.int64]:
    """[3, 5, 5]: the value of `left op right` for + - *."""
    left, right = np.ogrid[:_MODULUS, :_MODULUS]
    return np.stack([left + right, left - right, left * right]) % _MODULUS


_VALUES = _operations()


def _expressions(
    dice: Dice, length: int, count: int, operators: int, opening: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Symbols [count, length] and values [count]; `operators` is 3 for + - * and 2 for + -, from index 5 on.

    Every cell of the text has a random word. It determines the digit, the operator or, at an opening bracket, the
    length of the left side.
    """
    words = dice.words((count, length)).reshape(-1)
    text = scaled(words, _MODULUS)

    levels: list[tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]] = []
    starts = np.arange(0, count * length, length)
    lengths = np.full(count, length)
    while len(starts):
        splits = lengths > _LONGEST_LEAF
        leaf_starts, leaf_kinds = starts[~splits], lengths[~splits] - 1
        leaf_values = _SIGN[leaf_kinds] * text[leaf_starts + _DIGIT_AT[leaf_kinds]] % _MODULUS

        brackets = lengths > 2
        text[starts[brackets]] = opening
        text[(starts + lengths - 1)[brackets]] = opening + 1
        negative = _SIGN[leaf_kinds] < 0
        text[(leaf_starts + _DIGIT_AT[leaf_kinds] - 1)[negative]] = _MODULUS + 1

        starts, lengths = starts[splits], lengths[splits]
        left = 1 + scaled(words[starts], lengths - 4)
        at = starts + 1 + left
        operator = scaled(words[at], operators)
        text[at] = _MODULUS + operator
        levels.append((splits, leaf_values, operator))
        starts, lengths = np.concatenate([starts + 1, at + 1]), np.concatenate([left, lengths - left - 3])

    values = np.zeros(0, np.int64)
    for splits, leaf_values, operator in reversed(levels):
        left_values, right_values = np.split(values, 2)
        values = np.empty(len(splits), np.int64)
        values[~splits] = leaf_values
        values[splits] = _VALUES[operator, left_values, right_values]
    return text.reshape(count, length), values


def _modular_arithmetic(dice: Dice, length: int, count: int) -> Examples:
    inputs, values = _expressions(dice, length, count, operators=3, opening=8)
    return all_scored(inputs, values[:, None])


def _solve_equation(dice: Dice, length: int, count: int) -> Examples:
    """The first digit from a random cell on (cyclically) becomes the unknown."""
    equals, unknown = 10, 9
    text, values = _expressions(dice, length - 2, count, operators=2, opening=7)
    cells = (dice.below(length - 2, (count, 1)) + np.arange(length - 2)) % (length - 2)
    first = np.argmax(np.take_along_axis(text, cells, axis=1) < _MODULUS, axis=1)
    rows = np.arange(count)
    at = cells[rows, first]
    solutions = text[rows, at]
    text[rows, at] = unknown
    inputs = np.concatenate([text, np.full((count, 1), equals), values[:, None]], axis=1)
    return all_scored(inputs, solutions[:, None])


def _modular_arithmetic_simple(dice: Dice, length: int, count: int) -> Examples:
    """Products before sums, as usual: `total` is the sum before the last + or -, `product` the current product."""
    inputs = dice.below(np.where(np.arange(length) % 2, 3, _MODULUS), (count, length))
    total, product = np.zeros(count, np.int64), inputs[:, 0]
    for at in range(1, length, 2):
        operator, digit = inputs[:, at], inputs[:, at + 1]
        times = operator == 2
        total = np.where(times, total, total + product)
        product = np.where(times, product * digit, np.where(operator == 1, -digit, digit)) % _MODULUS
    inputs[:, 1::2] += _MODULUS
    return all_scored(inputs, ((total + product) % _MODULUS)[:, None])


MODULAR_ARITHMETIC = Task(
    "modular_arithmetic",
    "deterministic context-free",
    (*_DIGITS, "+", "-", "*", "(", ")"),
    _DIGITS,
    _modular_arithmetic,
)
SOLVE_EQUATION = Task(
    "solve_equation",
    "deterministic context-free",
    (*_DIGITS, "+", "-", "(", ")", "x", "="),
    _DIGITS,
    _solve_equation,
    shortest=3,
)
MODULAR_ARITHMETIC_SIMPLE = Task(
    "modular_arithmetic_simple", "regular", (*_DIGITS, "+", "-", "*"), _DIGITS, _modular_arithmetic_simple, step=2
)
