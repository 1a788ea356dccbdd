"""The states of every cell after every layer, in the order in which the layers ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .dat_embedding import Embedding
from .dat_history import Group, Registers, Tree
from .dat_program import Block, DATProgram, Statement


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


def trace_of(program: DATProgram, group: Group, embedding: Embedding) -> list[LayerState]:
    """The states before the first layer and after each layer that ran. Rows that ended a block replay it."""
    first = LayerState(None, (), embedding.every_value(first_input(group)))
    return [first, *_outputs(program.statements, group.tree, (), embedding)]


def first_input(group: Group) -> Registers:
    """The registers of a group of cells before the first layer."""
    return _first(group.tree)


def _outputs(
    statements: tuple[Statement, ...], tree: Tree, repetitions: tuple[int, ...], embedding: Embedding
) -> Iterator[LayerState]:
    for i, statement in enumerate(statements):
        if not isinstance(statement, Block):
            yield LayerState(statement.index, repetitions, embedding.every_value(_first(tree[i + 1])))
        else:
            for j, body in enumerate(tree[i]):
                yield from _outputs(statement.body, body, (*repetitions, j), embedding)


def _first(node: Any) -> Registers:
    """The input of a layer, a block or a body; for the last node of a body, its output."""
    while isinstance(node, list):
        node = node[0]
    return node
