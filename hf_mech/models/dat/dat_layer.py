"""The layers on vectors, (70c), (72): attention, exact or with a temperature (footnote 13), weights, and backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from .dat_embedding import Embedding, Fillers, Registers, soft_dat_norm
from .dat_machine import Cells, Readable
from .dat_program import FIRST_NUMBER, UNSET, DATProgram, Heads, Layer, Match, Operand

# ------------------------------------------------------------------------------------------------------------ attention

KAPPA = 2.0  # any number above 1, (70c-iv)
_FAR = -1e4  # a score at which no weight is left


def match_scores(queries: list[Tensor], keys: list[Tensor]) -> Tensor:
    """The normalised products of (70c-i), [batch, N, n]: 1 where all targets match.

    The product is divided by the number of targets. That is `|q|^2` if the query is one-hot in each of them. It is also
    correct for a negated query, for one of several constants, and for a function without a value.

    Args:
        queries, keys: for every target [batch, N, values] and [batch, n, values].
    """
    products = [torch.matmul(query, key.transpose(-1, -2)) for query, key in zip(queries, keys, strict=True)]
    return torch.stack(products).sum(0) / len(products)


def dat_max(matches: Tensor, right: bool = False) -> Tensor:
    """DATmax, (70c-i): a one-hot row at the first (or last) match, zeros where there is none.

    Args:
        matches: the cells that may be attended to, a boolean [batch, N, n].
        right: take the last match, (61e).
    """
    ordered = matches.flip(-1) if right else matches
    first = ordered & (ordered.long().cumsum(-1) == 1)
    return first.flip(-1) if right else first


def soft_first_match(scores: Tensor, right: bool = False) -> Tensor:
    """Soft DATmax: the weight of n is the probability that n matches and no cell before it does.

    Each n matches with probability sigmoid(score); a row sums to 1 minus the probability of no match. With the scores
    divided by a temperature that goes to 0 this is `dat_max` of `scores > 0`. Footnote 13 breaks ties with a term that
    decreases with n; its size would depend on length and temperature. No such term is needed here.

    Args:
        scores: [batch, N, n]; values below `_FAR` mark cells that may not be attended to.
        right: count from the right.
    """
    ordered = scores.flip(-1) if right else scores
    missed = logsigmoid(-ordered).cumsum(-1)
    before = torch.cat([torch.zeros_like(missed[..., :1]), missed[..., :-1]], -1)
    weights = (logsigmoid(ordered) + before).exp()
    return weights.flip(-1) if right else weights


def soft_first_match_reference(scores: Tensor, right: bool = False) -> Tensor:
    """[`soft_first_match`] position by position."""
    order = range(scores.shape[-1])
    weights: dict[int, Tensor] = {}
    left = torch.ones_like(scores[..., 0])
    for n in reversed(order) if right else order:
        probability = torch.sigmoid(scores[..., n])
        weights[n], left = left * probability, left * (1 - probability)
    return torch.stack([weights[n] for n in order], -1)


def attention_weights(scores: Tensor, targets: int, allowed: Tensor, right: bool, temperature: float) -> Tensor:
    """The weights of the read cells, [batch, N, n]: one-hot or zero at temperature 0, else the soft first match.

    Args:
        scores: from `match_scores`.
        targets: the number of targets; each target that does not match lowers the score by 1 / targets.
        allowed: where a cell may be read, a boolean [batch, N, n].
    """
    surplus = targets * (scores - 1.0) + 0.5  # half a target above or below the threshold
    if temperature == 0:
        return dat_max((surplus > 0) & allowed, right).to(scores.dtype)
    return soft_first_match((surplus / temperature).masked_fill(~allowed, _FAR), right)


def update(register: Tensor, value: Tensor, weights: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
    """The output of one register, (70c-iv): DATnorm(i[N] + kappa v[n]).

    Args:
        register: i, [batch, N, width].
        value: v, [batch, n, width].
        weights: from `attention_weights`.
        norm: DATnorm, for the vectors that the registers hold.
    """
    return norm(register + KAPPA * torch.matmul(weights, value))


# -------------------------------------------------------------------------------------------------------------- weights

# A block from register y to register x is `a F + b J`: F maps each value to its image under a function (the identity
# by default), J is all ones. Equality is a = 1, b = 0, (72a, b); inequality is a = -1, b = 1, the ones' complement,
# (72e). A constant's bias is `a e + b 1`; e is one at the constants' neurons, (72c, d). Every nonzero block is stored
# as its two numbers (a, b). They do not depend on the embedding: with dense fillers, F and J have another basis.


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


# --------------------------------------------------------------------------------------------------------------- layers


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


# -------------------------------------------------------------------------------------------------------------- backend


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
