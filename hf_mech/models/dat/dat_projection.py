"""The weights of a layer: query, key and value as blocks between registers, (72).

A block from register y to register x is `a F + b J`: F maps each value to its image under a function (the identity
by default), J is all ones. Equality is a = 1, b = 0, (72a, b); inequality is a = -1, b = 1, the ones' complement,
(72e). A constant's bias is `a e + b 1`; e is one at the constants' neurons, (72c, d). Every nonzero block is stored as
its two numbers (a, b). They do not depend on the embedding: with dense fillers, F and J are those of another basis.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .dat_embedding import Embedding
from .dat_fillers import Fillers
from .dat_history import Registers
from .dat_program import Operand


class DATProjection(nn.Module):
    """One of a layer's three affine maps: a row of `weight` [targets, 2] for every target register.

    Args:
        operands: the input of each target.
    """

    def __init__(self, operands: Sequence[Operand]):
        super().__init__()
        self.operands = tuple(operands)
        self.weight = nn.Parameter(torch.empty(len(self.operands), 2))

    def compiled(self) -> Tensor:
        """The weights of the program, [targets, 2]."""
        rows = [(-1.0, 1.0) if operand.negated else (1.0, 0.0) for operand in self.operands]
        return torch.tensor(rows).reshape(len(rows), 2)

    def is_compiled(self) -> bool:
        """Whether the weights are exactly those of the program."""
        return bool((self.weight == self.compiled().to(self.weight)).all())

    def forward(self, registers: Registers, embedding: Embedding) -> list[Tensor]:
        """The query, key or value filler of every target, [batch, cells, width] each.

        Args:
            registers: the cells' input vectors, in the form of `embedding`.
        """
        weight = self.weight.to(registers[0].dtype)
        return [self._target(i, weight, registers, embedding) for i in range(len(self.operands))]

    def _target(self, i: int, weight: Tensor, registers: Registers, embedding: Embedding) -> Tensor:
        (scale, shift), operand, fillers = weight[i], self.operands[i], embedding.fillers
        if operand.register is None:
            vector = scale * fillers.of(operand.values) + shift * fillers.ones
            return vector.expand(*registers[0].shape[:2], -1)
        source = embedding.unbind(registers, operand.register)
        return scale * fillers.image(operand.function, source) + shift * fillers.count(source) * fillers.ones

    @torch.no_grad()
    def block(self, i: int, fillers: Fillers) -> Tensor:
        """The block of target `i` as in the paper: [width, width], or the bias [width] of a constant."""
        operand, (scale, shift) = self.operands[i], self.weight[i]
        if operand.register is None:
            return scale * fillers.of(operand.values) + shift * fillers.ones
        identity = torch.eye(fillers.width, dtype=self.weight.dtype, device=self.weight.device)
        return scale * fillers.image(operand.function, identity) + shift * fillers.count(identity) * fillers.ones

    def extra_repr(self) -> str:
        return f"targets={len(self.operands)}"


@torch.no_grad()
def matrix_of(
    projection: DATProjection, embedding: Embedding, places: Sequence[int], count: int, roles: bool
) -> tuple[Tensor, Tensor]:
    """The whole matrix [M * width, count * width] and bias of a projection, (72).

    Args:
        places: the register that each target writes, or its place in the query.
        count: the number of registers, or of targets.
        roles: whether the output is a cell's state, with the roles of the embedding; those of a query and a key are
            one-hot, as their products are the same with any orthonormal roles (App. L).
    """
    fillers, weight = embedding.fillers, projection.weight
    own = torch.eye(embedding.number) if embedding.roles is None else embedding.roles
    made = own if roles else torch.eye(count)
    own, made = own.to(weight), made.to(weight)
    matrix = weight.new_zeros(embedding.number, fillers.width, count, fillers.width)
    bias = weight.new_zeros(count, fillers.width)
    for i, (operand, place) in enumerate(zip(projection.operands, places, strict=True)):
        block = projection.block(i, fillers)
        if operand.register is None:
            bias += made[place][:, None] * block
        else:
            matrix += torch.einsum("a,b,fg->afbg", own[operand.register], made[place], block)
    return matrix.flatten(2).flatten(0, 1), bias.flatten()
