"""Random whole numbers that never change, on any machine or with any version of numpy.

Every number is a 32-bit word, scaled to its range; in a range of n, the probability of a number is off by a share of
n / 2**32 at most. There are three classes because data sets draw in three ways:

=======  =========  ======================================================  ========================================
class    words      draws                                                   used, for example, by
=======  =========  ======================================================  ========================================
`Dice`   PCG64      whole arrays, many examples at once                     `hf_mech.languages`, and star graphs in
                                                                            `hf_mech.lookahead`
`Die`    PCG64      one number at a time, from one long stream              `hf_mech.planning.traces`: each step of
                                                                            a walk depends on the one before
`Draws`  SHAKE-128  one number at a time, from a short stream for each      `hf_mech.programs`, and stories in
                    example                                                 `hf_mech.lookahead`: a row depends on its
                                                                            own index alone
=======  =========  ======================================================  ========================================

PCG64 is numpy's fast generator, and its raw bits are all that numpy promises to keep; numpy's methods that turn bits
into ranges, shuffles or choices may change (NEP 19), so none is used here. `Draws` begins a new stream for every row,
so it has to start fast, and its key is a text; a hash function serves both needs.

Published data sets and results depend on these streams: a new way to draw is a new class, never a change of these.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Dice:
    """Whole arrays of random whole numbers; the same ones for the same seed and key.

    Args:
        seed: 0 or more.
        key: which of the seed's independent streams, a tuple of whole numbers, 0 or more.

    Example:

    ```python
    >>> Dice(0, (1, 2)).below(6, (2, 5)).tolist()
    [[0, 3, 3, 5, 3], [5, 2, 1, 4, 3]]

    ```
    """

    def __init__(self, seed: int, key: tuple[int, ...] = ()) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key))

    def below(self, n: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Numbers of that shape, uniform in 0 to n - 1; n may be an array that broadcasts to it."""
        return scaled(self.words(shape), n)

    def words(self, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        """Numbers of that shape, uniform in 0 to 2**32 - 1, for `scaled` when the bounds are not known yet."""
        raw: NDArray[np.uint64] = self._bits.random_raw(int(np.prod(shape))).reshape(shape)
        raw >>= np.uint64(32)
        return raw


def scaled(words: NDArray[np.uint64], n: ArrayLike) -> NDArray[np.int64]:
    """Numbers uniform in 0 to n - 1 out of words uniform in 0 to 2**32 - 1."""
    return ((words * np.asarray(n, np.uint64)) >> np.uint64(32)).view(np.int64)


class Die:
    """Random whole numbers one at a time; the same ones for the same seed and key.

    Args:
        seed: 0 or more.
        key: which of the seed's independent streams, a tuple of whole numbers, 0 or more.

    Example:

    ```python
    >>> die = Die(0, (1,))
    >>> [die.below(6) for _ in range(8)]
    [0, 4, 3, 4, 4, 3, 0, 0]

    ```
    """

    _BLOCK = 4096  # part of the stream: each block of words is used from its end

    def __init__(self, seed: int, key: tuple[int, ...] = ()) -> None:
        self._dice = Dice(seed, key)
        self._words: list[int] = []

    def below(self, n: int) -> int:
        """A number uniform in 0 to n - 1."""
        if not self._words:
            self._words = self._dice.words((self._BLOCK,)).tolist()
        return self._words.pop() * n >> 32

    def shuffle(self, items: list[Any]) -> None:
        """Puts the list into a random order, all equally likely."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


class Draws:
    """Random whole numbers one at a time; the same ones for the same key.

    Args:
        key: any text.

    Example:

    ```python
    >>> draws = Draws("1_shot_rlw/train/0/7")
    >>> [draws.below(6) for _ in range(8)]
    [1, 5, 2, 5, 5, 2, 0, 2]

    ```
    """

    def __init__(self, key: str) -> None:
        self._shake = hashlib.shake_128(key.encode())
        self._words: tuple[int, ...] = ()
        self._next = 0

    def below(self, n: int) -> int:
        """A number uniform in 0 to n - 1."""
        at = self._next
        if at == len(self._words):
            # A longer digest of the same key begins with the shorter one.
            size = 2 * at or 64
            self._words = struct.unpack(f"<{size}I", self._shake.digest(4 * size))
        self._next = at + 1
        return (self._words[at] * n) >> 32
