"""The states of every cell after every layer, in the order in which the layers ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from .dat_embedding import Embedding
from .dat_history import AnyGroup, Registers, Tree
from .dat_program import Block, DATProgram, Statement


@dataclass(frozen=True)
class LayerState:
    """The cells of one group after one layer.

    Args:
        layer: the layer, counted in the order of the program; None before the first.
        repetitions: the repetition of each enclosing block, the outermost first, counted from 0.
        values: the registers' values, [batch, cells, registers].
        reads: if asked for, the weights of the cells that were read, [batch, heads, cells, cells so far]: a one-hot
            row, or zeros if no cell matches; None before the first layer.
    """

    layer: int | None
    repetitions: tuple[int, ...]
    values: Tensor
    reads: Tensor | None = None


class Reads(list[Tensor]):
    """A recorder, see `dat_machine.Recorder`: the weights of the read cells for every layer that ran, in order."""

    def add(self, layer: int, reads: Tensor, outputs: Registers, rows: Tensor) -> None:
        """Keeps the weights alone."""
        self.append(reads)


def trace_of(
    program: DATProgram, group: AnyGroup, embedding: Embedding, reads: Sequence[Tensor] | None = None
) -> list[LayerState]:
    """The states before the first layer and after each layer that ran. Rows that ended a block replay it.

    Args:
        program: the program.
        group: the cells.
        embedding: the vectors of registers and values.
        reads: the weights of the read cells for every layer that ran, of a batch of one row.
    """
    first = LayerState(None, (), embedding.every_value(first_input(group)))
    outputs = list(_outputs(program.statements, group.tensors.tree, (), embedding))
    if reads is not None:
        outputs = [replace(state, reads=own) for state, own in zip(outputs, reads, strict=True)]
    return [first, *outputs]


def first_input(group: AnyGroup) -> Registers:
    """The registers of a group of cells before the first layer."""
    return _first(group.tensors.tree)


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
