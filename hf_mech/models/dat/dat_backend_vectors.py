"""The backends `dense` and `relaxed`: registers as vectors, (66)-(70)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from .dat_attention import match_scores
from .dat_history import Registers
from .dat_layer import DATLayer
from .dat_machine import Cells, Readable
from .dat_program import DATProgram, Layer, Match, Operand
from .dat_projection import apply
from .dat_values import FIRST_NUMBER, UNSET


class VectorBackend:
    """See `dat_machine.Backend`; a register is [batch, cells, values]."""

    def __init__(
        self,
        program: DATProgram,
        layers: Sequence[DATLayer],
        tables: Mapping[str, Tensor],
        end: int | None,
        size: int,
        temperature: float,
        dtype: torch.dtype,
    ):
        self.program, self.layers, self.tables, self.end = program, layers, tables, end
        self.size, self.temperature, self.dtype = size, temperature, dtype

    def _one_hot(self, values: Tensor, cells: Cells) -> Tensor:
        return one_hot(values.long() * cells.exists, self.size).to(self.dtype)

    def begin(self, symbols: Tensor, cells: Cells, ends: Tensor, given: Mapping[int, Tensor]) -> Registers:
        nothing = torch.zeros_like(symbols)
        values = [nothing] * len(self.program.registers)
        for index, value in self.program.initial.items():
            values[index] = torch.full_like(nothing, value)
        if self.end is not None:
            eop = self.program.parts["eop"]
            values[eop] = values[eop].masked_fill(ends, self.end)
        for index, own in given.items():
            values[index] = torch.where(own == UNSET, values[index], own)
        return self._place([self._one_hot(value, cells) for value in values], symbols, cells)

    def carry(self, last: Registers, symbols: Tensor, cells: Cells) -> Registers:
        return self._place(list(last), symbols, cells)

    def _place(self, registers: list[Tensor], symbols: Tensor, cells: Cells) -> Registers:
        registers[self.program.parts["position"]] = self._one_hot(cells.positions + FIRST_NUMBER, cells)
        registers[self.program.parts["symbol"]] = self._one_hot(symbols, cells)
        return tuple(registers)

    def changed(self, before: Tensor, after: Tensor) -> Tensor:
        return before.argmax(-1) != after.argmax(-1)

    def step(self, layer: Layer, registers: Registers, cells: Cells, readable: Readable) -> tuple[Registers, Tensor]:
        allowed = allowed_pairs(cells, readable, layer.causal)
        every = tuple(readable.register(index) for index in range(len(registers)))
        made, weights = self.layers[layer.index](registers, every, allowed, self.tables, self.temperature)
        # A soft DATnorm sharpens its input, so rows whose block has ended must not pass through it.
        active = cells.exists[..., None]
        outputs = tuple(
            old if new is old else torch.where(active, new, old) for old, new in zip(registers, made, strict=True)
        )
        return outputs, weights

    def weights(self, reads: Tensor, readable: Readable) -> Tensor:
        return reads

    @torch.no_grad()
    def holds(self, matches: tuple[Match, ...], registers: Registers, cells: Cells, readable: Readable) -> Tensor:
        every = [readable.register(index) for index in range(len(registers))]
        queries = [self._side(match.query, registers) for match in matches]
        keys = [self._side(match.key, every) for match in matches]
        matching = match_scores(queries, keys) > 1 - 0.5 / len(matches)
        return (matching & allowed_pairs(cells, readable, False)).any(2).any(1)

    def _side(self, operand: Operand, registers: Sequence[Tensor]) -> Tensor:
        """One side of an until condition: the largest value, mapped by the program's own weights."""
        if operand.register is None:
            vector = registers[0].new_zeros(self.size)
            vector[list(operand.values)] = 1.0
            vector = vector.expand(*registers[0].shape[:2], -1)
        else:
            hard = one_hot(registers[operand.register].argmax(-1), self.size).to(self.dtype)
            vector = apply(self.tables, operand.function, hard)
        return 1.0 - vector if operand.negated else vector


def allowed_pairs(cells: Cells, readable: Readable, causal: bool) -> Tensor:
    """Which pairs of cells exist and may meet, [batch, N, n]."""
    allowed = cells.exists[:, :, None] & readable.exists[:, None]
    if causal:
        size = readable.exists.shape[1]
        columns = torch.arange(size, device=allowed.device)
        allowed = allowed & (columns <= columns[size - readable.own :, None])
    return allowed


__all__ = ["VectorBackend", "allowed_pairs"]
