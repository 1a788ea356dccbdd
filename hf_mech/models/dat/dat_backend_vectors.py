"""The backends `dense` and `relaxed`: registers as vectors, (66)-(70), App. L."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .dat_attention import match_scores
from .dat_embedding import Embedding
from .dat_history import Registers
from .dat_layer import DATHeads, DATLayer
from .dat_machine import Cells, Readable
from .dat_program import DATProgram, Heads, Layer, Match, Operand
from .dat_values import FIRST_NUMBER, UNSET


class VectorBackend:
    """See `dat_machine.Backend`; the registers are in the form of `embedding`."""

    def __init__(
        self,
        program: DATProgram,
        layers: Sequence[DATLayer | DATHeads],
        embedding: Embedding,
        end: int | None,
        temperature: float,
    ):
        self.program, self.layers, self.embedding, self.end = program, layers, embedding, end
        self.temperature = temperature

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
        for index, own in self._own(symbols, cells).items():
            values[index] = own
        return self.embedding.embed([value * cells.exists for value in values])

    def carry(self, last: Registers, symbols: Tensor, cells: Cells) -> Registers:
        for index, value in self._own(symbols, cells).items():
            last = self.embedding.act(last, index, self.embedding.fillers.embed(value * cells.exists))
        return last

    def _own(self, symbols: Tensor, cells: Cells) -> dict[int, Tensor]:
        """The values of each cell's own: its position and its symbol."""
        parts = self.program.parts
        return {parts["position"]: cells.positions + FIRST_NUMBER, parts["symbol"]: symbols}

    def changed(self, before: Tensor, after: Tensor) -> Tensor:
        return self.embedding.fillers.differ(before, after)

    def step(
        self, layer: Layer | Heads, registers: Registers, cells: Cells, readable: Readable
    ) -> tuple[Registers, Tensor]:
        allowed = [allowed_pairs(cells, readable, head.causal) for head in layer.heads]
        every = tuple(readable.register(index) for index in range(len(registers)))
        made, weights = self.layers[layer.index](registers, every, allowed, self.embedding, self.temperature)
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
        every = tuple(readable.register(index) for index in range(len(registers)))
        queries = [self._side(match.query, registers) for match in matches]
        keys = [self._side(match.key, every) for match in matches]
        matching = match_scores(queries, keys) > 1 - 0.5 / len(matches)
        return (matching & allowed_pairs(cells, readable, False)).any(2).any(1)

    def _side(self, operand: Operand, registers: Registers) -> Tensor:
        """One side of an until condition: the nearest value, mapped by the program's own weights."""
        fillers = self.embedding.fillers
        if operand.register is None:
            vector = fillers.of(operand.values).expand(*registers[0].shape[:2], -1)
        else:
            hard = fillers.embed(self.embedding.values(registers, operand.register))
            vector = fillers.image(operand.function, hard)
        return fillers.ones - vector if operand.negated else vector


def allowed_pairs(cells: Cells, readable: Readable, causal: bool) -> Tensor:
    """Which pairs of cells exist and may meet, [batch, N, n]."""
    allowed = cells.exists[:, :, None] & readable.exists[:, None]
    if causal:
        size = readable.exists.shape[1]
        columns = torch.arange(size, device=allowed.device)
        allowed = allowed & (columns <= columns[size - readable.own :, None])
    return allowed
