"""Random whole numbers for one example: a function of its key alone, on every machine and for all time.

They are the output of SHAKE-128, so that an example depends neither on its neighbours nor on any generator's state.
"""

from __future__ import annotations

import hashlib
import struct

from hf_mech.templatic.errors import TaskError


class Draws:
    """Random whole numbers, the same ones for the same key.

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
        """A number uniform in 0 to n - 1, up to n / 2**32."""
        at = self._next
        if at == len(self._words):
            # A longer digest of the same key begins with the shorter one.
            size = 2 * at or 64
            self._words = struct.unpack(f"<{size}I", self._shake.digest(4 * size))
        self._next = at + 1
        return (self._words[at] * n) >> 32

    def distinct(self, n: int, count: int, first: tuple[int, ...] = ()) -> list[int]:
        """`count` different numbers out of 0 to n - 1, those in `first` and then others, in random order.

        Raises:
            TaskError: there are not so many.
        """
        if count > n:
            raise TaskError(f"No {count} different symbols can be drawn out of {n}.")
        chosen = dict.fromkeys(first)
        while len(chosen) < count:
            chosen[self.below(n)] = None
        return list(chosen)
