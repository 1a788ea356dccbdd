"""A cell's state as vectors: registers side by side, (66), (69a), or superposed, (69b), App. L.

App. L: the state is the tensor product representation T = sum_i r_i (x) f_i, r_i the vector of register i (its role)
and f_i that of its value (its filler). The roles are orthonormal, so the dual of a role is the role itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .dat_fillers import DenseFillers, Fillers, LocalFillers, in_one_hot
from .dat_history import Registers
from .dat_vectors import orthonormal


class Embedding:
    """Binds fillers to roles. One-hot roles: a tensor [batch, cells, width] for every register.

    Args:
        fillers: the vectors of the values.
        number: M, the number of registers.
        roles: dense orthonormal roles, [M, M]; then the state is one tensor [batch, cells, M * width].
    """

    def __init__(self, fillers: Fillers, number: int, roles: Tensor | None = None):
        self.fillers, self.number, self.roles = fillers, number, roles

    def bind(self, fillers: Sequence[Tensor]) -> Registers:
        """T = sum_i r_i (x) f_i, for the filler of every register."""
        if self.roles is None:
            return tuple(fillers)
        return ((self.roles.T @ torch.stack(list(fillers), -2)).flatten(-2),)

    def embed(self, values: Sequence[Tensor]) -> Registers:
        """The state in which every register holds a value, [batch, cells] each."""
        return self.bind([self.fillers.embed(value) for value in values])

    def unbind(self, registers: Registers, index: int) -> Tensor:
        """r_i T, the filler of a register, [batch, cells, width]."""
        if self.roles is None:
            return registers[index]
        return self.roles[index] @ registers[0].unflatten(-1, (self.number, -1))

    def act(self, registers: Registers, index: int, filler: Tensor) -> Registers:
        """Sets a register: T + r^T [f - r T]."""
        if self.roles is None:
            return (*registers[:index], filler, *registers[index + 1 :])
        change = filler - self.unbind(registers, index)
        return (registers[0] + (self.roles[index][:, None] * change[..., None, :]).flatten(-2),)

    def values(self, registers: Registers, index: int) -> Tensor:
        """The values of a register, [batch, cells]; those of the backend `gather` are values already."""
        if registers[0].dim() == 2:
            return registers[index].long()
        return self.fillers.values(self.unbind(registers, index))

    def every_value(self, registers: Registers) -> Tensor:
        """The values of all registers, [batch, cells, M]."""
        return torch.stack([self.values(registers, index) for index in range(self.number)], -1)

    def local(self, registers: Registers, index: int) -> Tensor:
        """A register in one-hot form, [batch, cells, values]; that of any backend."""
        if registers[0].dim() == 2:
            return in_one_hot(registers[index], self.fillers.size, self.fillers.dtype)
        return self.fillers.local(self.unbind(registers, index))

    def stream(self, registers: Registers) -> Tensor:
        """The whole state as one vector, [batch, cells, M * width]; that of any backend."""
        if registers[0].dim() == 2:
            registers = self.embed(registers)
        return torch.cat(registers, -1)


def make_embedding(
    form: str,
    width: int,
    seed: int,
    device: torch.device,
    dtype: torch.dtype,
    tables: Mapping[str, Tensor],
    size: int,
    number: int,
) -> Embedding:
    """The embedding of a configuration.

    Args:
        form: `"local"`, `"semi_local"` or `"distributed"`.
        width, seed: of the dense fillers; the roles have the next seed.
        tables: the functions, see `ValueSpace.table`.
        size: d, the number of values.
        number: M, the number of registers.
    """
    if form == "local":
        return Embedding(LocalFillers(size, tables, device, dtype), number)
    fillers = DenseFillers(size, width, seed, tables, device, dtype)
    if form == "semi_local":
        return Embedding(fillers, number)
    return Embedding(fillers, number, orthonormal(number, seed + 1).to(device, dtype))
