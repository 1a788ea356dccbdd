"""Tasks that move or repeat symbols: the output is the input in another order, twice, or with its gap filled."""

from __future__ import annotations

import numpy as np

from hf_mech.data.random_numbers import Dice
from hf_mech.languages.task import Examples, Task, all_scored


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
