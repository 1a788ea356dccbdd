"""The two kinds of attention heads of the Semi-formal Transformer, (92b), and the relaxation of the biased ones.

The residual stream is V_b + V_u. V_b holds the registers of a program, V_u is an ordinary residual stream. A biased
head is a production: it reads one cell and writes registers. An unbiased layer is a transformer layer of V_u. Both read
the whole stream, (92d).

The relaxation of a biased head differs from footnote 13. A register is a distribution over its values, and a test holds
with a probability: the product of q . k over the targets. Where all registers are one-hot the head is the DAT's at any
temperature; so the structure that a program builds stays exact while the truth values in it are uncertain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from .dat_attention import dat_max, dat_norm, soft_dat_norm, soft_first_match
from .dat_history import Registers
from .dat_program import Layer, Operand
from .dat_projection import DATProjection

CERTAIN = 1e-13  # the logit of a probability is that of one at least this far from 0 and 1: some 30 nats
_FAR = -1e4  # a score at which no weight is left


class BiasedHead(nn.Module):
    """A production whose query and key may also read V_u, and whose value may come from V_u, (92c, d).

    Args:
        layer: the production; its weights in V_b are compiled from it.
        size: d, the number of values.
        stream: the width of V_u.
        steering: the width of queries and keys in V_u.
        estimates: for every constant that stands for an estimate, the values that it chooses from.
    """

    def __init__(self, layer: Layer, size: int, stream: int, steering: int, estimates: Mapping[int, tuple[int, ...]]):
        super().__init__()
        self.layer = layer
        self.query = DATProjection([match.query for match in layer.matches], size)
        self.key = DATProjection([match.key for match in layer.matches], size)
        self.value = DATProjection([source for _, source in layer.writes], size)
        self.steer_query = nn.Linear(stream, steering, bias=False)
        self.steer_key = nn.Linear(stream, steering, bias=False)
        self.choices = {
            i: estimates[source.values[0]]
            for i, (_, source) in enumerate(layer.writes)
            if source.register is None and source.values[0] in estimates
        }
        self.estimates = nn.ModuleDict({str(i): nn.Linear(stream, len(own)) for i, own in self.choices.items()})

    def forward(
        self, registers: Registers, allowed: Tensor, tables: Mapping[str, Tensor], temperature: float, stream: Tensor
    ) -> tuple[Registers, Tensor]:
        """One production.

        Args:
            registers: i, [batch, cells, values] each: the part of the stream in V_b.
            allowed: True where N may read n, [batch, N, n].
            tables: the functions, see `ValueSpace.table`.
            temperature: of the match and of DATnorm; at 0 they are DATmax and DATnorm, at 1 probabilities.
            stream: the part of the stream in V_u, [batch, cells, stream].

        Returns:
            The registers after the layer, and the weights of the cells read, [batch, N, n].
        """
        weights = self.weights(registers, allowed, tables, temperature, stream)
        made = list(registers)
        for i, (target, source) in enumerate(self.layer.writes):
            made[target] = self._written(i, source, registers, tables, weights, temperature, stream)
        return tuple(made), weights

    def weights(
        self, registers: Registers, allowed: Tensor, tables: Mapping[str, Tensor], temperature: float, stream: Tensor
    ) -> Tensor:
        """The weights of the cells read, [batch, N, n]; a row sums to the probability that some cell matches."""
        matches = match_probability(
            self.query(registers, tables),
            self.key(registers, tables),
            [match.query.register is None for match in self.layer.matches],
            [match.key.register is None for match in self.layer.matches],
        )
        scores = (matches + CERTAIN).log() - (1 - matches + CERTAIN).log()
        steered = self.steer_query(stream) @ self.steer_key(stream).mT
        scores = scores + steered.to(scores.dtype) / self.steer_query.out_features**0.5
        if temperature == 0:
            return dat_max((scores > 0) & allowed, self.layer.right_match).to(scores.dtype)
        return soft_first_match((scores / temperature).masked_fill(~allowed, _FAR), self.layer.right_match)

    def _written(
        self,
        i: int,
        source: Operand,
        registers: Registers,
        tables: Mapping[str, Tensor],
        weights: Tensor,
        temperature: float,
        stream: Tensor,
    ) -> Tensor:
        old = registers[self.layer.writes[i][0]]
        if i in self.choices:
            shares = softmax(self.estimates[str(i)](stream), -1).to(old.dtype)
            value = torch.zeros_like(old).index_copy(-1, torch.tensor(self.choices[i], device=old.device), shares)
        else:
            value = self.value(registers, tables)[i]
        return biased_update(old, value, weights, temperature, constant=source.register is None and i not in self.choices)


def match_probability(
    queries: Sequence[Tensor], keys: Sequence[Tensor], constant_query: Sequence[bool], constant_key: Sequence[bool]
) -> Tensor:
    """The probability that all targets match, prod_t q_t . k_t, [batch, N, n], of registers that are distributions.

    Args:
        queries, keys: for every target [batch, N, values] and [batch, n, values].
        constant_query, constant_key: whether it is the same in all cells: then no product of all pairs is needed.
    """
    products = []
    for query, key, same_query, same_key in zip(queries, keys, constant_query, constant_key, strict=True):
        if same_query:
            products.append((query[:, :1] * key).sum(-1)[:, None])
        elif same_key:
            products.append((query * key[:, :1]).sum(-1)[..., None])
        else:
            products.append(query @ key.mT)
    pairs = queries[0].new_ones(queries[0].shape[0], queries[0].shape[1], keys[0].shape[1])
    return reduce(torch.mul, products, pairs).clamp(0, 1)


def match_probability_reference(queries: Sequence[Tensor], keys: Sequence[Tensor]) -> Tensor:
    """[`match_probability`] pair by pair."""
    rows = []
    for N in range(queries[0].shape[1]):
        row = []
        for n in range(keys[0].shape[1]):
            probability = torch.ones_like(queries[0][:, 0, 0])
            for query, key in zip(queries, keys, strict=True):
                probability = probability * (query[:, N] * key[:, n]).sum(-1)
            row.append(probability)
        rows.append(torch.stack(row, -1))
    return torch.stack(rows, 1)


def biased_update(
    register: Tensor, value: Tensor, weights: Tensor, temperature: float, constant: bool = False
) -> Tensor:
    """The output of a register, DATnorm(i[N] + sum_n w_n (v[n] - i[N])), App. L: the old value goes as the new one comes.

    With one-hot vectors and weights it is (70c-iv). With distributions it is one, and at temperature 1 DATnorm leaves it
    as it is.

    Args:
        register: i, [batch, N, values].
        value: v, [batch, n, values].
        weights: [batch, N, n].
        constant: whether the value is the same in all cells.
    """
    mass = weights.sum(-1, keepdim=True)
    read = mass * value[:, :1] if constant else weights @ value
    vectors = register + read - mass * register
    return dat_norm(vectors) if temperature == 0 else soft_dat_norm(vectors, temperature)


def attention_entropy(weights: Tensor) -> Tensor:
    """(92e): the entropy in nats of which cell is read, [batch, N]; to read none is an outcome like any other.

    It is 0 if and only if the head reads a single cell or none, as DATmax does.
    """
    none = (1 - weights.sum(-1, keepdim=True)).clamp(min=0)
    return torch.special.entr(torch.cat([weights, none], -1).clamp(min=1e-12)).sum(-1)


class UnbiasedLayer(nn.Module):
    """Unbiased heads and an MLP, (92b, f): both write into V_u, LayerNorm sees V_u alone.

    Args:
        stream: the width of V_u.
        heads: how many.
        inner: the width of the MLP.
        biased: the width of V_b.
        reading: the rank of the part of queries, keys and values that reads V_b.
        eps: of LayerNorm.
    """

    def __init__(self, stream: int, heads: int, inner: int, biased: int, reading: int, eps: float):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(stream, eps=eps)
        self.read = nn.Linear(biased, reading, bias=False)
        self.attend = nn.Linear(stream + reading, 3 * stream)
        self.out = nn.Linear(stream, stream)
        self.mlp_norm = nn.LayerNorm(stream, eps=eps)
        self.up = nn.Linear(stream, inner)
        self.down = nn.Linear(inner, stream)

    def forward(self, stream: Tensor, biased: Tensor, exists: Tensor) -> Tensor:
        """V_u after the layer, [batch, cells, stream].

        Args:
            stream: V_u.
            biased: V_b, [batch, cells, biased].
            exists: True at cells, [batch, cells].
        """
        inputs = torch.cat([self.norm(stream), self.read(biased)], -1)
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.attend(inputs).chunk(3, -1)
        )
        scores = query @ key.mT / query.shape[-1] ** 0.5
        shares = softmax(scores.masked_fill(~exists[:, None, None], torch.finfo(scores.dtype).min), -1)
        stream = stream + self.out((shares @ value).transpose(1, 2).flatten(2))
        return stream + self.down(nn.functional.gelu(self.up(self.mlp_norm(stream))))


__all__ = ["BiasedHead", "UnbiasedLayer", "attention_entropy", "biased_update", "match_probability"]
