"""The tasks by name: on strings, by finite automata, on binary numbers, and arithmetic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice, scaled
from hf_mech.languages.task import Examples, LanguagesError, Task, all_scored

# ----------------------------------------------------------------------------------------------------------------------
# Tasks that move or repeat symbols: the output is the input in another order, twice, or with its gap filled.


def _reverse_string(dice: Dice, length: int, count: int) -> Examples:
    inputs = dice.below(2, (count, length))
    return all_scored(inputs, inputs[:, ::-1].copy())


def _duplicate_string(dice: Dice, length: int, count: int) -> Examples:
    inputs = dice.below(2, (count, length))
    return all_scored(inputs, np.concatenate([inputs, inputs], axis=1))


def _odds_first(dice: Dice, length: int, count: int) -> Examples:
    inputs = dice.below(2, (count, length))
    return all_scored(inputs, np.concatenate([inputs[:, ::2], inputs[:, 1::2]], axis=1))


def _bucket_sort(dice: Dice, length: int, count: int) -> Examples:
    inputs = dice.below(5, (count, length))
    return all_scored(inputs, np.sort(inputs, axis=1))


def _missing_duplicate(dice: Dice, length: int, count: int) -> Examples:
    half = dice.below(2, (count, length // 2))
    inputs = np.concatenate([half, half], axis=1)
    gaps = dice.below(inputs.shape[1], (count, 1))
    outputs = np.take_along_axis(inputs, gaps, axis=1)
    np.put_along_axis(inputs, gaps, 2, axis=1)
    return all_scored(inputs, outputs)


REVERSE_STRING = Task("reverse_string", "deterministic context-free", ("a", "b"), ("a", "b"), _reverse_string)
DUPLICATE_STRING = Task("duplicate_string", "context-sensitive", ("a", "b"), ("a", "b"), _duplicate_string)
ODDS_FIRST = Task("odds_first", "context-sensitive", ("a", "b"), ("a", "b"), _odds_first)
BUCKET_SORT = Task("bucket_sort", "context-sensitive", tuple("01234"), tuple("01234"), _bucket_sort)
MISSING_DUPLICATE = Task(
    "missing_duplicate", "context-sensitive", ("a", "b", "_"), ("a", "b"), _missing_duplicate, shortest=2, step=2
)


# ----------------------------------------------------------------------------------------------------------------------
# Tasks that run an automaton over the string: three finite ones, and one with a stack.
#
# A finite automaton outputs one symbol for the whole string. Stack manipulation reads a stack from bottom to top, then
# actions on it; its output is the stack from top to bottom.


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


# ----------------------------------------------------------------------------------------------------------------------
# Arithmetic modulo 5: expressions with brackets, equations in one unknown, and expressions without brackets.
#
# An expression of length 1 to 4 is `d`, `-d`, `(d)` or `(-d)`; a longer one is `(left op right)`, the length of its
# left side uniform in 1 to length - 4. The trees of all examples are built together, level by level.
#
# The unknown is `x` and the congruence sign is `=`. An expression to evaluate ends without `=`; its value is the
# output.


_DIGITS = tuple("01234")
MODULUS = 5
_LONGEST_LEAF = 4
_SIGN = np.array([1, -1, 1, -1])  # of a leaf, by its length - 1
_DIGIT_AT = np.array([0, 1, 1, 2])  # the place of its digit


def _operations() -> NDArray[np.int64]:
    """[3, 5, 5]: the value of `left op right` for + - *."""
    left, right = np.ogrid[:MODULUS, :MODULUS]
    return np.stack([left + right, left - right, left * right]) % MODULUS


_VALUES = _operations()


def _expressions(
    dice: Dice, length: int, count: int, operators: int, opening: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Symbols [count, length] and values [count]; `operators` is 3 for + - * and 2 for + -, from index 5 on.

    Every cell of the text has a random word. It determines the digit, the operator or, at an opening bracket, the
    length of the left side.
    """
    words = dice.words((count, length)).reshape(-1)
    text = scaled(words, MODULUS)

    levels: list[tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]] = []
    starts = np.arange(0, count * length, length)
    lengths = np.full(count, length)
    while len(starts):
        splits = lengths > _LONGEST_LEAF
        leaf_starts, leaf_kinds = starts[~splits], lengths[~splits] - 1
        leaf_values = _SIGN[leaf_kinds] * text[leaf_starts + _DIGIT_AT[leaf_kinds]] % MODULUS

        brackets = lengths > 2
        text[starts[brackets]] = opening
        text[(starts + lengths - 1)[brackets]] = opening + 1
        negative = _SIGN[leaf_kinds] < 0
        text[(leaf_starts + _DIGIT_AT[leaf_kinds] - 1)[negative]] = MODULUS + 1

        starts, lengths = starts[splits], lengths[splits]
        left = 1 + scaled(words[starts], lengths - 4)
        at = starts + 1 + left
        operator = scaled(words[at], operators)
        text[at] = MODULUS + operator
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
    first = np.argmax(np.take_along_axis(text, cells, axis=1) < MODULUS, axis=1)
    rows = np.arange(count)
    at = cells[rows, first]
    solutions = text[rows, at]
    text[rows, at] = unknown
    inputs = np.concatenate([text, np.full((count, 1), equals), values[:, None]], axis=1)
    return all_scored(inputs, solutions[:, None])


def _modular_arithmetic_simple(dice: Dice, length: int, count: int) -> Examples:
    """Products before sums, as usual: `total` is the sum before the last + or -, `product` the current product."""
    inputs = dice.below(np.where(np.arange(length) % 2, 3, MODULUS), (count, length))
    total, product = np.zeros(count, np.int64), inputs[:, 0]
    for at in range(1, length, 2):
        operator, digit = inputs[:, at], inputs[:, at + 1]
        times = operator == 2
        total = np.where(times, total, total + product)
        product = np.where(times, product * digit, np.where(operator == 1, -digit, digit)) % MODULUS
    inputs[:, 1::2] += MODULUS
    return all_scored(inputs, ((total + product) % MODULUS)[:, None])


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


# ----------------------------------------------------------------------------------------------------------------------
# Binary arithmetic on numbers of any length: sums and products (lowest bit first), square roots (highest first).
#
# They are Python integers, so the length is not limited.


_OPERATOR, _END = 2, 2


def _positive(dice: Dice, lengths: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Bits [count, width], lowest first: row i uniform in 1 to 2 ** lengths[i] - 1."""
    valid = np.arange(width) < lengths[:, None]
    bits = np.zeros(valid.shape, np.int64)
    zero = np.arange(len(bits))
    while len(zero):
        bits[zero] = dice.below(2, (len(zero), width)) * valid[zero]
        zero = zero[~bits[zero].any(axis=1)]
    return bits


def _numbers(bits: NDArray[np.int64]) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(bits, axis=1, bitorder="little")]


def _bits(numbers: list[int], width: int) -> NDArray[np.int64]:
    size = -(-width // 8)
    packed = np.frombuffer(b"".join(n.to_bytes(size, "little") for n in numbers), np.uint8).reshape(-1, size)
    return np.unpackbits(packed, axis=1, count=width, bitorder="little").astype(np.int64)


def _two_numbers(
    dice: Dice, length: int, count: int, combine: Callable[[int, int], int], out: Callable[[int], int]
) -> Examples:
    """`first operator second`, the length of the first uniform; the result, [END], and zeros that do not count."""
    lengths = 1 + dice.below(length - 2, (count,))
    first = _positive(dice, lengths, length - 2)
    second = _positive(dice, length - 1 - lengths, length - 2)
    columns = np.arange(length) - lengths[:, None]  # 0 at the operator
    inputs = np.where(
        columns < 0,
        np.pad(first, ((0, 0), (0, 2))),
        np.take_along_axis(second, np.clip(columns - 1, 0, length - 3), axis=1),
    )
    inputs[columns == 0] = _OPERATOR

    results = [combine(a, b) for a, b in zip(_numbers(first), _numbers(second), strict=True)]
    ends = np.array([result.bit_length() for result in results], np.int64)
    outputs = _bits(results, out(length))
    outputs[np.arange(count), ends] = _END
    return Examples(inputs, outputs, np.arange(out(length)) <= ends[:, None])


def _compute_sqrt(dice: Dice, length: int, count: int) -> Examples:
    """The floor of the square root of a number of `length` bits, in half as many (rounded up)."""
    bits = _positive(dice, np.full(count, length), length)
    roots = _bits([math.isqrt(n) for n in _numbers(bits)], (length + 1) // 2)
    return all_scored(bits[:, ::-1].copy(), roots[:, ::-1].copy())


BINARY_ADDITION = Task(
    "binary_addition",
    "context-sensitive",
    ("0", "1", "+"),
    ("0", "1", "[END]"),
    partial(_two_numbers, combine=operator.add, out=lambda length: length + 1),
    shortest=3,
)
BINARY_MULTIPLICATION = Task(
    "binary_multiplication",
    "context-sensitive",
    ("0", "1", "*"),
    ("0", "1", "[END]"),
    partial(_two_numbers, combine=operator.mul, out=lambda length: length),
    shortest=3,
)
COMPUTE_SQRT = Task("compute_sqrt", "context-sensitive", ("0", "1"), ("0", "1"), _compute_sqrt)


# ----------------------------------------------------------------------------------------------------------------------
# All tasks by name: Delétang et al.'s fifteen, the four deterministic context-free ones (the paper's) first.
#
# Lengths without examples are left out: equations and texts `first + second` have at least 3 symbols, simple
# expressions an odd number, and strings with a missing symbol an even one. (The original code fills such lengths with
# constants or padding.)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        REVERSE_STRING,
        STACK_MANIPULATION,
        MODULAR_ARITHMETIC,
        SOLVE_EQUATION,
        EVEN_PAIRS,
        PARITY_CHECK,
        CYCLE_NAVIGATION,
        MODULAR_ARITHMETIC_SIMPLE,
        DUPLICATE_STRING,
        MISSING_DUPLICATE,
        ODDS_FIRST,
        BINARY_ADDITION,
        BINARY_MULTIPLICATION,
        COMPUTE_SQRT,
        BUCKET_SORT,
    )
}


def task_named(name: str) -> Task:
    """The task of that name. Raises LanguagesError, with the known names, if there is none."""
    if name not in TASKS:
        raise LanguagesError(f"There is no task {name!r}; choose one of {', '.join(TASKS)}.")
    return TASKS[name]
