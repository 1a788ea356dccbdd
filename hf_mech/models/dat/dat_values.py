"""The one space of values that all registers share, (68c): nothing, numbers, the program's constants, and open places.

A value's index is also its neuron within a register and its token id. `nil`, no value, has its own neuron, so a
register is always one-hot and two empty registers are equal. The open places have no value until a tokenizer assigns
them to new words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

NIL, END_OF_PROMPT = 0, 1
FIRST_NUMBER = 2
UNDEFINED = -1
UNSET = -100
"""In the first values of registers: the program decides."""


class ValueSpace:
    """The index of every value.

    Args:
        largest: T, the largest number; the numbers are 0 to T.
        constants: the program's constants, without these numbers.
        num_open: the number of places for words that the program does not name.
    """

    def __init__(self, largest: int, constants: Sequence[str], num_open: int):
        self.largest, self.constants, self.num_open = largest, tuple(constants), num_open
        self.first_constant = FIRST_NUMBER + largest + 1
        self.first_open = self.first_constant + len(self.constants)
        self._indices = {constant: self.first_constant + i for i, constant in enumerate(self.constants)}

    def __len__(self) -> int:
        return self.first_open + self.num_open

    def index(self, value: str | None) -> int | None:
        """The index of a value; None if it is neither a constant nor a number of this space."""
        if value is None:
            return NIL
        if is_number(value, self.largest):
            return FIRST_NUMBER + int(value)
        return self._indices.get(value)

    def value(self, index: int) -> str | None:
        """The value at an index; None for nil, and for the open places, which only a tokenizer can name."""
        if FIRST_NUMBER <= index < self.first_constant:
            return str(index - FIRST_NUMBER)
        if self.first_constant <= index < self.first_open:
            return self.constants[index - self.first_constant]
        return None

    def table(self, function: str, registered: Mapping[str, Mapping[str, str]]) -> Tensor:
        """A function as a table, [len(self)]: the index of its value at each index, `UNDEFINED` where it has none.

        `pos_increment` and `pos_decrement` are built in, (61b); `registered` has the other functions as mappings.

        Raises:
            KeyError: there is no such function.
        """
        table = torch.full((len(self),), UNDEFINED)
        numbers = torch.arange(FIRST_NUMBER, self.first_constant)
        if function == "pos_increment":
            table[numbers[:-1]] = numbers[1:]
        elif function == "pos_decrement":
            table[numbers[1:]] = numbers[:-1]
        else:
            for source, target in registered[function].items():
                left, right = self.index(source), self.index(target)
                if left is not None and right is not None:
                    table[left] = right
        return table


BUILT_IN = ("pos_increment", "pos_decrement")


def is_number(value: str, largest: int) -> bool:
    """Whether the text is one of the numbers 0 to `largest`, without leading zeros."""
    return value.isascii() and value.isdigit() and str(int(value[:9])) == value and int(value) <= largest
