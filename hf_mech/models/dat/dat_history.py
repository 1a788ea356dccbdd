"""The states of the cells at every layer; later cells read them, (34), (63), (71).

The states of a group of cells that were updated together form a tree: the input of each layer, one subtree for each
repetition of a repeat block, and the output at the end. A later cell reads the same layer of the same repetition; if a
group ended a block earlier, its last repetition replaces those that it did not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

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


@dataclass
class History:
    """All groups so far, in order."""

    groups: list[Group] = field(default_factory=list)

    @property
    def exists(self) -> Tensor:
        """[batch, cells of all groups]."""
        return torch.cat([group.exists for group in self.groups], 1)

    @property
    def positions(self) -> Tensor:
        """[batch, cells of all groups]."""
        return torch.cat([group.positions for group in self.groups], 1)

    def trees(self) -> list[Tree]:
        return [group.tree for group in self.groups]


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
