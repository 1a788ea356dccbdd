"""Binary arithmetic on numbers of any length: sums and products (lowest bit first), square roots (highest first).

They are Python integers, so the length is not limited.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice
from hf_mech.languages.task import Examples, Task, all_scored

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
