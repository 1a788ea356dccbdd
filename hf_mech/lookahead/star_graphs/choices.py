"""Random choices for many rows at once, from numpy's generator or from `Dice`, whose numbers never change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice

Random = np.random.Generator | Dice


def orders(random: Random, count: int, n: int) -> NDArray[np.int64]:
    """Random orders of 0 to n - 1, [count, n], each as likely."""
    if isinstance(random, Dice):
        # The index in the lower half makes all keys of a row differ, so every way to sort gives the same order.
        keys = random.words((count, n)) << np.uint64(32) | np.arange(n, dtype=np.uint64)
        keys.sort(axis=1)
        return (keys & np.uint64(0xFFFFFFFF)).view(np.int64)
    return random.random((count, n)).argsort(1)


def below(random: Random, n: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Whole numbers of that shape, uniform in 0 to n - 1."""
    return random.below(n, shape) if isinstance(random, Dice) else random.integers(n, size=shape)
