"""The states of the cells at every layer; later cells read them, (34), (63), (71).

The states of a group of cells that were updated together form a tree: the input of each layer, one subtree for each
repetition of a repeat block, and the output at the end. A later cell reads the same layer of the same repetition; if a
group ended a block earlier, its last repetition replaces those that it did not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

Registers = tuple[Tensor, ...]  # one for every register, [batch, cells] or [batch, cells, values]
Tree = list[Any]  # Registers for a layer, list[Tree] for a repeat block


@dataclass
class Group:
    """Cells that were updated together.

    Args:
        tree: the inputs of every layer.
        final: the registers after the last layer.
        exists: True at columns that are cells, [batch, cells].
        positions: their positions from 1, [batch, cells].
        last: the final registers of each row's last cell so far, [batch, 1] or [batch, 1, values].
        count: the number of cells in each row so far, [batch].
    """

    tree: Tree
    final: Registers
    exists: Tensor
    positions: Tensor
    last: Registers
    count: Tensor

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.exists.shape[1]

    @property
    def tensors(self) -> Group:
        return self

    def register(self, index: int) -> Tensor:
        return self.final[index]

    def select(self, rows: Tensor) -> Group:
        return self.map(lambda tensor: tensor.index_select(0, rows.to(tensor.device)))

    def memory(self) -> dict[int, int]:
        found: dict[int, int] = {}

        def count(tensor: Tensor) -> Tensor:
            found[id(tensor)] = tensor.numel() * tensor.element_size()
            return tensor

        self.map(count)
        return found

    def map(self, function: Callable[[Tensor], Tensor]) -> Group:
        """The group with another batch dimension; tensors that layers share are still shared."""
        done: dict[int, Tensor] = {}

        def once(tensor: Tensor) -> Tensor:
            if id(tensor) not in done:
                done[id(tensor)] = function(tensor)
            return done[id(tensor)]

        def walk(node: Any) -> Any:
            return once(node) if isinstance(node, Tensor) else type(node)(walk(child) for child in node)

        return Group(
            walk(self.tree),
            walk(self.final),
            once(self.exists),
            once(self.positions),
            walk(self.last),
            once(self.count),
        )


class AnyGroup(Protocol):
    """A group, in the form of the machine that computes it: [`Group`], or `dat_rows.RowGroup`."""

    @property
    def count(self) -> Tensor:
        """The number of cells in each row so far, [batch]."""

    @property
    def width(self) -> int:
        """The number of columns."""

    @property
    def tensors(self) -> Group:
        """The same states as tensors."""

    @property
    def final(self) -> Registers:
        """The registers after the last layer."""

    def register(self, index: int) -> Tensor:
        """A register after the last layer, [batch, cells] or [batch, cells, values]."""

    def select(self, rows: Tensor) -> AnyGroup:
        """The group with these rows of the batch, in this order."""

    def memory(self) -> dict[int, int]:
        """The bytes of every object that holds states, by its id."""


G = TypeVar("G", bound=AnyGroup)


@dataclass
class History(Generic[G]):
    """All groups so far, in order: the prompt's cells, then one cell a row each."""

    groups: list[G] = field(default_factory=list)

    @property
    def width(self) -> int:
        """The number of columns of all groups."""
        return self.groups[0].width + len(self.groups) - 1

    @property
    def tensors(self) -> History[Group]:
        """The same states as tensors."""
        return History([group.tensors for group in self.groups])

    @property
    def exists(self) -> Tensor:
        """[batch, cells of all groups]."""
        return torch.cat([group.tensors.exists for group in self.groups], 1)

    @property
    def positions(self) -> Tensor:
        """[batch, cells of all groups]."""
        return torch.cat([group.tensors.positions for group in self.groups], 1)

    def trees(self) -> list[Tree]:
        return [group.tensors.tree for group in self.groups]


def enter(trees: Sequence[Tree], statement: int, repetition: int) -> list[Tree]:
    """The trees of one repetition of a block; a group that ended the block earlier replays its last repetition."""
    blocks = [tree[statement] for tree in trees]
    return [block[min(repetition, len(block) - 1)] for block in blocks]


def choose(rows: Tensor, new: Any, old: Any) -> Any:
    """Trees, registers or tensors: from `new` where `rows` [batch] is True, else from `old`."""
    if new is old:
        return new
    if isinstance(new, Tensor):
        return torch.where(rows.view(-1, *[1] * (new.dim() - 1)), new, old)
    if isinstance(new, tuple) or not new:
        return type(new)(choose(rows, a, b) for a, b in zip(new, old, strict=True))
    # A nested block may differ in its number of repetitions: the shorter one replays its last.
    longest = max(len(new), len(old))
    return [choose(rows, new[min(i, len(new) - 1)], old[min(i, len(old) - 1)]) for i in range(longest)]
