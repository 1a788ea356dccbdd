"""The weights of one production, and its layer on vectors, (70c), (72)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from .dat_attention import attention_weights, match_scores, update
from .dat_history import Registers
from .dat_program import Layer
from .dat_projection import DATProjection


class DATLayer(nn.Module):
    """The weights of one production: query, key and value, (72), compiled from `layer`."""

    def __init__(self, layer: Layer, size: int):
        super().__init__()
        self.layer = layer
        self.query = DATProjection([match.query for match in layer.matches], size)
        self.key = DATProjection([match.key for match in layer.matches], size)
        self.value = DATProjection([source for _, source in layer.writes], size)

    def forward(
        self,
        registers: Registers,
        readable: Sequence[Tensor],
        allowed: Tensor,
        tables: Mapping[str, Tensor],
        temperature: float,
    ) -> tuple[Registers, Tensor]:
        """One layer, (70c).

        Args:
            registers: i[N], [batch, N, values] each.
            readable: i[n], [batch, n, values] each.
            allowed: True where N may attend to n, [batch, N, n].

        Returns:
            o[N], [batch, N, values] each, and the weights of the cells read, [batch, N, n].
        """
        queries, keys = self.query(registers, tables), self.key(readable, tables)
        scores = match_scores(queries, keys)
        weights = attention_weights(scores, len(queries), allowed, self.layer.right_match, temperature)
        made = list(registers)
        for (target, _), value in zip(self.layer.writes, self.value(readable, tables), strict=True):
            made[target] = update(registers[target], value, weights, temperature)
        return tuple(made), weights


__all__ = ["DATLayer"]
