"""The seed of an episode: training, test and play never meet, and no episode comes twice."""

from __future__ import annotations

import zlib
from typing import Literal, get_args

from hf_mech.control.errors import SeedError, check_whole
from hf_mech.data.random_numbers import Dice

Split = Literal["train", "test", "play"]
SPLITS: tuple[Split, ...] = get_args(Split)
MOST_EPISODES = 2**30
"""The most episodes of a split: engines take seeds of 32 bits, and two of them name the split."""

_STREAM = zlib.crc32(b"episode_seed")


def episode_seed(seed: int, split: Split, index: int) -> int:
    """The seed of one episode, for `environment.reset(seed=...)`.

    The two highest bits name the split, so episodes of two splits differ whatever their seeds are. The other 30 bits
    are the index, permuted in an order that the seed decides, so the episodes of one seed and split all differ.

    Args:
        seed: of the data set or of the evaluation; 0 or more.
        split: "train", "test" or "play", the held-out episodes that models are judged on.
        index: the number of the episode in its split, from 0.

    Returns:
        A number in 0 to 2**32 - 1.

    Raises:
        SeedError: a seed or an index out of its range, or another split.

    Example:

    ```python
    >>> [episode_seed(0, "train", 0), episode_seed(0, "train", 1), episode_seed(0, "play", 0)]
    [365172154, 674208463, 2512655802]

    ```
    """
    check_whole("seed", seed, 0, None, SeedError)
    check_whole("index", index, 0, MOST_EPISODES - 1, SeedError)
    if split not in SPLITS:
        raise SeedError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
    return SPLITS.index(split) << 30 | _permuted(int(index), int(seed))


def _permuted(index: int, seed: int) -> int:
    """A bijection of the numbers below 2**30: sums, odd products and shifted xors each are one."""
    mask = MOST_EPISODES - 1
    for first, second in Dice(seed, (_STREAM,)).words((3, 2)).tolist():
        index = (index + first) * (second | 1) & mask
        index ^= index >> 15
    return index
