"""The weights of one production, and its layer on vectors, (70c), (72)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from .dat_attention import attention_weights, match_scores, soft_dat_norm, update
from .dat_embedding import Embedding
from .dat_history import Registers
from .dat_program import Heads, Layer
from .dat_projection import DATProjection


class DATLayer(nn.Module):
    """The weights of one production: query, key and value, (72), compiled from `layer`."""

    def __init__(self, layer: Layer):
        super().__init__()
        self.layer = layer
        self.query = DATProjection([match.query for match in layer.matches])
        self.key = DATProjection([match.key for match in layer.matches])
        self.value = DATProjection([source for _, source in layer.writes])

    @property
    def functions(self) -> set[str]:
        """The functions that its queries, keys and values use."""
        operands = [*self.query.operands, *self.key.operands, *self.value.operands]
        return {operand.function for operand in operands if operand.function is not None}

    @property
    def heads(self) -> tuple[DATLayer, ...]:
        """Itself: a layer of one head."""
        return (self,)

    def forward(
        self,
        registers: Registers,
        readable: Registers,
        allowed: Sequence[Tensor],
        embedding: Embedding,
        temperature: float,
    ) -> tuple[Registers, Tensor]:
        """One layer, (70c).

        Args:
            registers: i[N], [batch, N, width] of each register, or of all of them superposed.
            readable: i[n], [batch, n, width] likewise.
            allowed: for each head, here one: True where N may attend to n, [batch, N, n].
            embedding: the vectors of registers and values.

        Returns:
            o[N], like `registers`, and the weights of the cells read, [batch, heads, N, n].
        """
        weights, values = self.attend(registers, readable, allowed[0], embedding, temperature)
        return self.act(registers, weights, values, embedding, temperature), weights[:, None]

    def attend(
        self, registers: Registers, readable: Registers, allowed: Tensor, embedding: Embedding, temperature: float
    ) -> tuple[Tensor, list[Tensor]]:
        """The weights of the cells read, [batch, N, n], and the values v[n], [batch, n, width] each."""
        queries, keys = self.query(registers, embedding), self.key(readable, embedding)
        scores = match_scores(queries, keys)
        weights = attention_weights(scores, len(queries), allowed, self.layer.right_match, temperature)
        return weights, self.value(readable, embedding)

    def act(
        self, registers: Registers, weights: Tensor, values: list[Tensor], embedding: Embedding, temperature: float
    ) -> Registers:
        """Writes the values of the cells read."""
        norm = embedding.fillers.norm if temperature == 0 else partial(soft_dat_norm, temperature=temperature)
        for (target, _), value in zip(self.layer.writes, values, strict=True):
            old = embedding.unbind(registers, target)
            registers = embedding.act(registers, target, update(old, value, weights, norm))
        return registers


class DATHeads(nn.Module):
    """A layer of several productions, (90a). Every head reads the layer's input; no two write the same register of a
    cell, so their order has no meaning."""

    def __init__(self, layer: Heads):
        super().__init__()
        self.heads = nn.ModuleList(DATLayer(head) for head in layer.heads)

    def forward(
        self,
        registers: Registers,
        readable: Registers,
        allowed: Sequence[Tensor],
        embedding: Embedding,
        temperature: float,
    ) -> tuple[Registers, Tensor]:
        """One layer, see [`DATLayer.forward`]."""
        made, reads = registers, []
        for head, own in zip(self.heads, allowed, strict=True):
            assert isinstance(head, DATLayer)
            weights, values = head.attend(registers, readable, own, embedding, temperature)
            made = head.act(made, weights, values, embedding, temperature)
            reads.append(weights)
        return made, torch.stack(reads, 1)
