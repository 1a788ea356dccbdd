"""The states of every cell after every layer, in the order in which the layers ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .dat_history import AnyGroup, Registers, Tree
from .dat_program import Block, DATProgram, Layer


@dataclass(frozen=True)
class LayerState:
    """The cells of one group after one layer.

    Args:
        layer: the layer, counted in the order of the program; None before the first.
        repetitions: the repetition of each enclosing block, the outermost first, counted from 0.
        values: the registers' values, [batch, cells, registers].
    """

    layer: int | None
    repetitions: tuple[int, ...]
    values: Tensor


def trace_of(program: DATProgram, group: AnyGroup) -> list[LayerState]:
    """The states before the first layer and after each layer that ran. Rows that ended a block replay it."""
    tree = group.tensors.tree
    return [LayerState(None, (), _values(_first(tree))), *_outputs(program.statements, tree, ())]


def first_input(group: AnyGroup) -> Registers:
    """The registers of a group of cells before the first layer."""
    return _first(group.tensors.tree)


def _outputs(statements: tuple[Layer | Block, ...], tree: Tree, repetitions: tuple[int, ...]) -> Iterator[LayerState]:
    for i, statement in enumerate(statements):
        if isinstance(statement, Layer):
            yield LayerState(statement.index, repetitions, _values(_first(tree[i + 1])))
        else:
            for j, body in enumerate(tree[i]):
                yield from _outputs(statement.body, body, (*repetitions, j))


def _first(node: Any) -> Registers:
    """The input of a layer, a block or a body; for the last node of a body, its output."""
    while isinstance(node, list):
        node = node[0]
    return node


def _values(registers: Registers) -> Tensor:
    return torch.stack([r.argmax(-1) if r.dim() == 3 else r.long() for r in registers], -1)
