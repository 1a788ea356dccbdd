"""What a task is: its alphabet, its examples, the positions that are scored, and its random numbers.

The tasks themselves are in `hf_mech.languages.tasks`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice
from hf_mech.data.whole_numbers import check_whole


class LanguagesError(ValueError):
    """A task, a length, a layout, rows, a tokenizer or a corpus that do not fit; the text says what to do."""


Level = Literal["regular", "deterministic context-free", "context-sensitive"]


class Examples(NamedTuple):
    """Examples of one length.

    Attributes:
        inputs: [count, length] int64, indices into the task's `inputs`.
        outputs: [count, out] int64, indices into the task's `outputs`.
        scored: [count, out] bool, True where an output counts; the others only fill the row.
    """

    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]
    scored: NDArray[np.bool_]


def all_scored(inputs: NDArray[np.int64], outputs: NDArray[np.int64]) -> Examples:
    """Examples in which every output counts."""
    return Examples(inputs, outputs, np.ones(outputs.shape, bool))


@dataclass(frozen=True)
class Task:
    """A function from strings to strings, with the distribution of its examples (Delétang et al., 2023).

    Args:
        name: its key in `hf_mech.languages.TASKS`.
        level: its level in the Chomsky hierarchy.
        inputs: the input symbols.
        outputs: the output symbols; a symbol that is also an input symbol is the same token.
        draw: (dice, length, count) -> examples. Use `sample`, which checks its arguments.
        shortest: the shortest length with examples.
        step: lengths are `shortest`, `shortest + step`, and so on.
    """

    name: str
    level: Level
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    draw: Callable[[Dice, int, int], Examples] = field(repr=False)
    shortest: int = 1
    step: int = 1

    @property
    def symbols(self) -> tuple[str, ...]:
        """All symbols, each once: the inputs, then the outputs that are not among them."""
        return tuple(dict.fromkeys((*self.inputs, *self.outputs)))

    def lengths(self, low: int, high: int) -> Sequence[int]:
        """The lengths from `low` to `high`, both included, for which the task has examples.

        Raises:
            LanguagesError: there is no such length, or `low` or `high` is not a whole number from 1 on.
        """
        check_whole("length", low, 1, LanguagesError)
        check_whole("length", high, 1, LanguagesError)
        first = self.shortest + max(0, -(-(low - self.shortest) // self.step)) * self.step
        found = range(first, high + 1, self.step)
        if not found:
            every = f" in steps of {self.step}" if self.step > 1 else ""
            raise LanguagesError(
                f"Task {self.name!r} has no examples of length {low} to {high}: its lengths begin at {self.shortest}"
                f"{every}. Choose a range with one of them."
            )
        return found

    def sample(self, dice: Dice, length: int, count: int) -> Examples:
        """Draws examples of one length.

        Args:
            dice: the random numbers; the same dice draw the same examples.
            length: of the inputs, in symbols.
            count: the number of examples, 1 or more.

        Raises:
            LanguagesError: the task has no examples of that length, or the count is not a whole number from 1 on.
        """
        self.lengths(length, length)
        check_whole("count", count, 1, LanguagesError)
        return self.draw(dice, length, count)


# The independent streams of a seed, by number. The numbers never change: data sets depend on them.
_STREAMS = {"fresh": 0, "evaluation": 1, "train": 2, "test": 3}


def dice_for(task_name: str, stream: Literal["fresh", "evaluation", "train", "test"], seed: int, index: int) -> Dice:
    """The random numbers of one batch or shard; they differ for every task, stream, seed and index.

    Raises:
        LanguagesError: a seed or an index (the message says step) that is negative or no whole number.
    """
    check_whole("seed", seed, 0, LanguagesError)
    check_whole("step", index, 0, LanguagesError)
    return Dice(seed, (zlib.crc32(task_name.encode()), _STREAMS[stream], index))
