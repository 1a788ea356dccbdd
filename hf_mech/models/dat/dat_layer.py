"""The weights of one production, and its layer on vectors, (70c), (72)."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from .dat_attention import attention_weights, match_scores, soft_dat_norm, update
from .dat_embedding import Embedding
from .dat_history import Registers
from .dat_program import Layer
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
        """The functions that its queries and keys use."""
        operands = [*self.query.operands, *self.key.operands]
        return {operand.function for operand in operands if operand.function is not None}

    def forward(
        self,
        registers: Registers,
        readable: Registers,
        allowed: Tensor,
        embedding: Embedding,
        temperature: float,
    ) -> tuple[Registers, Tensor]:
        """One layer, (70c).

        Args:
            registers: i[N], [batch, N, width] of each register, or of all of them superposed.
            readable: i[n], [batch, n, width] likewise.
            allowed: True where N may attend to n, [batch, N, n].
            embedding: the vectors of registers and values.

        Returns:
            o[N], like `registers`, and the weights of the cells read, [batch, N, n].
        """
        queries, keys = self.query(registers, embedding), self.key(readable, embedding)
        scores = match_scores(queries, keys)
        weights = attention_weights(scores, len(queries), allowed, self.layer.right_match, temperature)
        norm = embedding.fillers.norm if temperature == 0 else partial(soft_dat_norm, temperature=temperature)
        made = registers
        for (target, _), value in zip(self.layer.writes, self.value(readable, embedding), strict=True):
            old = embedding.unbind(registers, target)
            made = embedding.act(made, target, update(old, value, weights, norm))
        return made, weights


__all__ = ["DATLayer"]
