"""The two kinds of attention heads of the Semi-formal Transformer, (92b), and the relaxation of the biased ones.

The residual stream is V_b + V_u. V_b holds the registers of a program, V_u is an ordinary residual stream. A biased
head is a production: it reads one cell and writes registers. An unbiased layer is a transformer layer of V_u. Both read
the whole stream, (92d).

The relaxation of a biased head differs from footnote 13. A register is a distribution over its values, and a test holds
with a probability: the product of q . k over the targets. Where all registers are one-hot the head is the DAT's at any
temperature; so the structure that a program builds stays exact while the truth values in it are uncertain.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from .dat_embedding import Embedding, Fillers, Registers, dat_norm, soft_dat_norm
from .dat_layer import DATProjection, dat_max, soft_first_match
from .dat_program import DATError, Layer, Operand

CERTAIN = 1e-13  # the logit of a probability is that of one at least this far from 0 and 1: some 30 nats
_FAR = -1e4  # a score at which no weight is left


class Blocks(DATProjection):
    """The same weights as numbers, for products that need no whole vectors."""

    def forward(self) -> list[tuple[Any, Any]]:  # type: ignore[override]
        """(a, b) of every target; plain numbers if they are not trained, so that a 1 and a 0 cost nothing."""
        return [(row[0], row[1]) if self.weight.requires_grad else tuple(row.tolist()) for row in self.weight]


class BiasedHead(nn.Module):
    """A production whose query and key may also read V_u, and whose value may come from V_u, (92c, d).

    Args:
        layer: the production; its weights in V_b are compiled from it.
        position: the register that identifies a cell. A production that compares it with itself reads its own cell.
        stream: the width of V_u.
        steering: the width of queries and keys in V_u.
        estimates: for every constant that stands for an estimate, the values that it chooses from.
    """

    def __init__(
        self,
        layer: Layer,
        position: int,
        stream: int,
        steering: int,
        estimates: Mapping[int, tuple[int, ...]],
    ):
        super().__init__()
        self.layer = layer
        self.query = Blocks([match.query for match in layer.matches])
        self.key = Blocks([match.key for match in layer.matches])
        self.value = Blocks([source for _, source in layer.writes])
        self.steer_query = nn.Linear(stream, steering, bias=False)
        self.steer_key = nn.Linear(stream, steering, bias=False)
        self.choices = {
            i: estimates[source.values[0]]
            for i, (_, source) in enumerate(layer.writes)
            if source.register is None and source.values[0] in estimates
        }
        self.estimates = nn.ModuleDict({str(i): nn.Linear(stream, len(own)) for i, own in self.choices.items()})
        itself = Operand(register=position)
        self.reads_itself = any(match.query == match.key == itself for match in layer.matches)

    def forward(
        self, registers: Registers, allowed: Tensor, fillers: Fillers, temperature: float, stream: Tensor
    ) -> tuple[Registers, Tensor]:
        """One production.

        Args:
            registers: i, [batch, cells, values] each: the part of the stream in V_b.
            allowed: True where N may read n, [batch, N, n].
            fillers: the one-hot vectors of values, and the functions.
            temperature: of the match and of DATnorm; at 0 they are DATmax and DATnorm, at 1 probabilities.
            stream: the part of the stream in V_u, [batch, cells, stream].

        Returns:
            The registers after the layer, and the weights of the cells read, [batch, N, n]; of a production that reads
            its own cell the weight of that one, [batch, N, 1].
        """
        scores = self.scores(registers, fillers, stream)
        if self.reads_itself:
            allowed = allowed.diagonal(dim1=1, dim2=2)[..., None]
        if temperature == 0:
            weights = dat_max((scores > 0) & allowed, self.layer.right_match).to(scores.dtype)
        else:
            scores = (scores / temperature).masked_fill(~allowed, _FAR)
            weights = soft_first_match(scores, self.layer.right_match)
        made, values = list(registers), self.value()
        for i, (target, source) in enumerate(self.layer.writes):
            read = self._read(i, source, values[i], registers, weights, fillers, stream)
            # Where a function has no value, nothing is written.
            mass = (weights if source.function is None else read).sum(-1, keepdim=True)
            made[target] = biased_update(registers[target], read, mass, temperature)
        return tuple(made), weights

    def scores(self, registers: Registers, fillers: Fillers, stream: Tensor) -> Tensor:
        """The logit of the probability that all targets match, prod_t q_t . k_t, plus q . k in V_u, [batch, N, n]."""
        blocks = zip(self.query(), self.key(), strict=True)
        parts = [self._agreement(i, *pair, registers, fillers) for i, pair in enumerate(blocks)]
        matches = reduce(torch.mul, parts).clamp(0, 1)
        query, key = self.steer_query(stream), self.steer_key(stream)
        steered = (query * key).sum(-1, keepdim=True) if self.reads_itself else query @ key.mT
        certain = (matches + CERTAIN).log() - (1 - matches + CERTAIN).log()
        return certain + steered.to(matches.dtype) / query.shape[-1] ** 0.5

    def _agreement(
        self,
        i: int,
        query: tuple[Any, Any],
        key: tuple[Any, Any],
        registers: Registers,
        fillers: Fillers,
    ) -> Tensor:
        """q_t . k_t of one target, [batch, N, n], or with a 1 for N or n where it is the same for all of them."""
        of_query, of_key = self.query.operands[i], self.key.operands[i]
        if of_query.register is not None and of_key.register is not None:
            left, right = _mapped(of_query, query, registers, fillers), _mapped(of_key, key, registers, fillers)
            return (left * right).sum(-1, keepdim=True) if self.reads_itself else left @ right.mT
        if of_query.register is None:
            products = _with_constant(of_key, key, of_query, query, registers, fillers)
            return products[..., None] if self.reads_itself else products[:, None]
        return _with_constant(of_query, query, of_key, key, registers, fillers)[..., None]

    def _read(
        self,
        i: int,
        source: Operand,
        block: tuple[Any, Any],
        registers: Registers,
        weights: Tensor,
        fillers: Fillers,
        stream: Tensor,
    ) -> Tensor:
        """sum_n w_n v[n] of one written register, [batch, N, values]."""
        scale, shift = block
        if i in self.choices:
            shares = softmax(self.estimates[str(i)](stream), -1).to(weights.dtype)
            indices = torch.tensor(self.choices[i], device=shares.device)
            value = shares.new_zeros(*shares.shape[:2], fillers.size).index_copy(-1, indices, scale * shares) + shift
        elif source.register is None:
            return weights.sum(-1, keepdim=True) * (scale * fillers.of(source.values).to(weights) + shift)
        else:
            value = _mapped(source, block, registers, fillers)
        return weights * value if self.reads_itself else weights @ value


def _mapped(operand: Operand, block: tuple[Any, Any], registers: Registers, fillers: Fillers) -> Tensor:
    """A target that comes from a register, [batch, cells, values]."""
    assert operand.register is not None
    scale, shift = block
    vectors = fillers.image(operand.function, registers[operand.register])
    if not torch.is_tensor(scale) and (scale, shift) == (1.0, 0.0):
        return vectors
    return scale * vectors + shift * registers[operand.register].sum(-1, keepdim=True)


def _with_constant(
    operand: Operand,
    block: tuple[Any, Any],
    constant: Operand,
    other: tuple[Any, Any],
    registers: Registers,
    fillers: Fillers,
) -> Tensor:
    """The product of a register's target with that of a constant, [batch, cells].

    Args:
        operand, block: of the register.
        constant, other: of the constant.
    """
    if operand.register is None:
        raise DATError("A production compares two constants, which tells nothing of the cells; leave it out.")
    vector = other[0] * fillers.of(constant.values).to(registers[0]) + other[1]
    scale, shift = block
    products = scale * (fillers.image(operand.function, registers[operand.register]) @ vector)
    if torch.is_tensor(shift) or shift:
        products = products + shift * registers[operand.register].sum(-1) * vector.sum()
    return products


def biased_head_reference(
    head: BiasedHead, registers: Registers, allowed: Tensor, embedding: Embedding, stream: Tensor
) -> Registers:
    """[`BiasedHead`] at temperature 1, pair by pair: the first n that matches is read, App. L's update."""
    queries, keys, values = (
        DATProjection.forward(own, registers, embedding) for own in (head.query, head.key, head.value)
    )
    for i, choice in head.choices.items():
        shares = softmax(head.estimates[str(i)](stream), -1)
        indices = torch.tensor(choice, device=shares.device)
        values[i] = torch.zeros_like(values[i]).index_copy(-1, indices, shares)
    cells = registers[0].shape[1]
    made = [register.clone() for register in registers]
    for N in range(cells):
        new = [registers[target][:, N] for target, _ in head.layer.writes]
        left = torch.ones_like(registers[0][:, 0, 0])  # the probability that nothing has matched so far
        for n in reversed(range(cells)) if head.layer.right_match else range(cells):
            holds = torch.ones_like(left)
            for query, key in zip(queries, keys, strict=True):
                holds = holds * (query[:, N] * key[:, n]).sum(-1)
            steered = (head.steer_query(stream[:, N]) * head.steer_key(stream[:, n])).sum(-1)
            odds = (steered / head.steer_query.out_features**0.5).exp() * holds
            holds = odds / (1 - holds + odds) * allowed[:, N, n]
            weight = (left * holds)[:, None]
            new = [
                vector + weight * (value[:, n] - _written(source, value[:, n]) * registers[target][:, N])
                for vector, value, (target, source) in zip(new, values, head.layer.writes, strict=True)
            ]
            left = left * (1 - holds)
        for vector, (target, _) in zip(new, head.layer.writes, strict=True):
            made[target][:, N] = vector
    return tuple(made)


def _written(source: Operand, value: Tensor) -> Tensor:
    """The share of a value that is written: none of a function where it has no value."""
    return value.sum(-1, keepdim=True) if source.function is not None else torch.ones_like(value[..., :1])


def biased_update(register: Tensor, read: Tensor, mass: Tensor, temperature: float) -> Tensor:
    """The output of a register, DATnorm(i[N] + sum_n w_n (v[n] - i[N])), App. L: the old value goes, the new one comes.

    With one-hot vectors and weights it is (70c-iv). With distributions it is one, and DATnorm at temperature 1, which
    divides by the sum, leaves it as it is.

    Args:
        register: i, [batch, N, values].
        read: sum_n w_n v[n], [batch, N, values].
        mass: sum_n w_n, [batch, N, 1].
    """
    vectors = register + read - mass * register
    if temperature == 1:
        return vectors
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
