"""The weights of a layer: query, key and value as blocks between registers, (72).

A block from register y to register x is `a F + b J`: F maps each value to its image under a function (the identity
by default), J is all ones. Equality is a = 1, b = 0, (72a, b); inequality is a = -1, b = 1, the ones' complement,
(72e). A constant's bias is `a e + b 1`; e is one at the constants' neurons, (72c, d). Every nonzero block is stored as
its two numbers (a, b).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from .dat_program import Operand

Vectors = Sequence[Tensor]  # one [batch, cells, values] for every register


class DATProjection(nn.Module):
    """One of a layer's three affine maps: a row of `weight` [targets, 2] for every target register.

    Args:
        operands: the input of each target.
        size: d, the number of values.
    """

    def __init__(self, operands: Sequence[Operand], size: int):
        super().__init__()
        self.operands, self.size = tuple(operands), size
        self.weight = nn.Parameter(torch.empty(len(self.operands), 2))

    def compiled(self) -> Tensor:
        """The weights of the program, [targets, 2]."""
        rows = [(-1.0, 1.0) if operand.negated else (1.0, 0.0) for operand in self.operands]
        return torch.tensor(rows).reshape(len(rows), 2)

    def is_compiled(self) -> bool:
        """Whether the weights are exactly those of the program."""
        return bool((self.weight == self.compiled().to(self.weight)).all())

    def forward(self, registers: Vectors, tables: Mapping[str, Tensor]) -> list[Tensor]:
        """The query, key or value register of every target, [batch, cells, values] each.

        Args:
            registers: the cells' input vectors.
            tables: the functions, see `ValueSpace.table`.
        """
        weight = self.weight.to(registers[0].dtype)
        return [self._target(i, weight, registers, tables) for i in range(len(self.operands))]

    def _target(self, i: int, weight: Tensor, registers: Vectors, tables: Mapping[str, Tensor]) -> Tensor:
        scale, shift = weight[i]
        operand = self.operands[i]
        if operand.register is None:
            vector = scale * self.indicator(operand).to(registers[0]) + shift
            return vector.expand(*registers[0].shape[:2], -1)
        source = registers[operand.register]
        return scale * apply(tables, operand.function, source) + shift * source.sum(-1, keepdim=True)

    def indicator(self, operand: Operand) -> Tensor:
        """One at the neurons of the operand's constants, [values]."""
        return torch.zeros(self.size).index_fill(0, torch.tensor(operand.values, dtype=torch.long), 1.0)

    @torch.no_grad()
    def block(self, i: int, tables: Mapping[str, Tensor]) -> Tensor:
        """The block of target `i` as in the paper: [values, values], or the bias [values] of a constant."""
        operand, (scale, shift) = self.operands[i], self.weight[i]
        if operand.register is None:
            return scale * self.indicator(operand).to(self.weight) + shift
        identity = torch.eye(self.size, dtype=self.weight.dtype, device=self.weight.device)
        return scale * apply(tables, operand.function, identity) + shift

    def extra_repr(self) -> str:
        return f"targets={len(self.operands)}, values={self.size}"


def apply(tables: Mapping[str, Tensor], function: str | None, vectors: Tensor) -> Tensor:
    """Moves every neuron [..., values] to its image under a function; neurons without an image are dropped."""
    if function is None:
        return vectors
    table = tables[function]
    defined = table >= 0
    return torch.zeros_like(vectors).index_add(-1, table[defined], vectors[..., defined])
