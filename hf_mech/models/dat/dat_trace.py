"""What every layer has made of every cell, in the order in which the layers ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .dat_history import Group, Registers, Tree
from .dat_program import Block, DATProgram, Layer


@dataclass(frozen=True)
class LayerState:
    """The cells of one group after one layer.

    Args:
        layer: the layer, counted in the order of the program; None before the first.
        repetitions: in which repetition of each enclosing block, from the outermost, counted from 0.
        values: the registers' values, [batch, cells, registers].
    """

    layer: int | None
    repetitions: tuple[int, ...]
    values: Tensor


def trace_of(program: DATProgram, group: Group) -> list[LayerState]:
    """The states before the first layer and after each one that ran."""
    inputs = list(_inputs(program.statements, group.tree, ()))
    outputs = [*(registers for _, _, registers in inputs[1:]), group.final]
    first = inputs[0][2] if inputs else group.final
    trace = [LayerState(None, (), _values(first))]
    for (layer, repetitions, _), registers in zip(inputs, outputs, strict=False):
        trace.append(LayerState(layer.index, repetitions, _values(registers)))
    return trace


def _inputs(
    statements: tuple[Layer | Block, ...], tree: Tree, repetitions: tuple[int, ...]
) -> Iterator[tuple[Layer, tuple[int, ...], Registers]]:
    for statement, node in zip(statements, tree, strict=False):  # a tree has its end as one more entry
        if isinstance(statement, Layer):
            yield statement, repetitions, node
        else:
            for i, body in enumerate(node):
                yield from _inputs(statement.body, body, (*repetitions, i))


def _values(registers: Registers) -> Tensor:
    return torch.stack([r.argmax(-1) if r.dim() == 3 else r.long() for r in registers], -1)
