"""A cell's state as vectors: values (fillers) and registers (roles), one-hot, (66), or dense, (69), App. L.

The state is the tensor product representation T = sum_i r_i (x) f_i: r_i is the vector of register i, its role, and f_i
that of its value, its filler. The roles are orthonormal, so the dual of a role is the role itself.

The dense vectors are functions of their number, their dimension and a seed, in closed form and integer arithmetic: the
same on every machine, so a checkpoint holds none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isqrt
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from .dat_program import DATProgram, Match

Registers = tuple[Tensor, ...]
"""A state by registers: values [batch, cells] or vectors [batch, cells, width] of each, or all of them superposed."""


# -------------------------------------------------------------------------------------------------------- dense vectors

MARGIN = 0.49
"""The deviation of a sum of products at which a match is still distinguished from a mismatch; the threshold is 1/2."""

_HASH = 0x045D9F3B


def orthonormal(size: int, seed: int) -> Tensor:
    """Dense orthonormal rows, float64 [size, size]: a cosine transform (DCT-IV) with signs. No component is zero.

    The transform needs no factorisation, so thousands of vectors are drawn in a second.
    """
    odd = 2 * torch.arange(size, device="cpu") + 1
    waves = torch.arange(8 * size, dtype=torch.float64, device="cpu").mul(torch.pi / (4 * size)).cos()
    return waves[(odd[:, None] * odd) % (8 * size)] * (2 / size) ** 0.5 * _signs(size, seed)


def _signs(size: int, seed: int) -> Tensor:
    """+1 and -1 from the bits of a hash, float64 [size]."""
    bits = torch.arange(size, device="cpu") + (seed * 0x9E3779B1 & 0xFFFFFFFF)
    for _ in range(3):
        bits = ((bits ^ (bits >> 16)) * _HASH) & 0xFFFFFFFF
    return 1.0 - 2.0 * ((bits >> 13) & 1).double()


def filler_vectors(number: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    """Unit vectors for values, float64 [number, width], and the vector `ones` [width] whose product with each is 1.

    With `width >= number` they are orthonormal. With fewer dimensions they are nearly orthogonal: the vector of value v
    has p blocks of p neurons, p a prime. Its block x is one-hot at Q(x), and Q is the polynomial over the integers
    modulo p whose coefficients are the digits of v. Two polynomials of degree r agree in at most r of p places, so the
    product of two vectors is between 0 and r / p, see `coherence`. An orthonormal matrix makes the vectors dense.
    Random vectors would need more dimensions for the same bound, and a check of all pairs.
    """
    basis = orthonormal(width, seed)
    if width >= number:
        vectors = basis[:number]
        return vectors, vectors.sum(0)
    p, degree = _field(number, width)
    places, values = torch.arange(p, device="cpu"), torch.arange(number, device="cpu")
    heights = torch.zeros(number, p, dtype=torch.long, device="cpu")
    for power in reversed(range(degree + 1)):  # Horner's rule
        heights = (heights * places + (values // p**power % p)[:, None]) % p
    sparse = torch.zeros(number, width, dtype=torch.float64, device="cpu")
    sparse.scatter_(1, places * p + heights, p**-0.5)
    return sparse @ basis, basis[: p * p].sum(0) * p**-0.5


def coherence(number: int, width: int) -> float:
    """The greatest product of two different vectors of `filler_vectors`; 0 if they are orthonormal."""
    if width >= number:
        return 0.0
    p, degree = _field(number, width)
    return min(1.0, degree / p)


def narrowest(number: int, most: float) -> int:
    """The least dimension at which `coherence` is below `most`; `number` if only orthonormal vectors are."""
    return min(number, next(p * p for p in _primes() if p * p >= number or coherence(number, p * p) < most))


def weakest_match(program: DATProgram) -> int:
    """By how many coherences the sum of products of a query and a key can deviate, the most over all layers.

    All products of fillers are between 0 and the coherence, so what lowers the sum of a match are the constants of
    negated targets, and what raises that of a mismatch are the further constants of the others and one mismatch.
    """
    conditions: list[Iterable[Match]] = [layer.matches for layer in program.productions]
    conditions += [block.until for block in program.blocks if block.until is not None]
    most = 1
    for matches in conditions:
        sizes = [(max(len(m.query.values), len(m.key.values), 1), m.query.negated or m.key.negated) for m in matches]
        lowered = sum(size for size, negated in sizes if negated)
        raised = 1 + sum(size - 1 for size, negated in sizes if not negated)
        most = max(most, lowered, raised)
    return most


def _field(number: int, width: int) -> tuple[int, int]:
    """The largest prime p with p² <= width, and the least degree for which there are enough polynomials."""
    p = isqrt(width)
    while not _is_prime(p):
        p -= 1
    degree = 1
    while p ** (degree + 1) < number:
        degree += 1
    return p, degree


def _primes() -> Iterator[int]:
    p = 2
    while True:
        if _is_prime(p):
            yield p
        p += 1


def _is_prime(p: int) -> bool:
    return p > 1 and all(p % q for q in range(2, isqrt(p) + 1))


# -------------------------------------------------------------------------------------------------------------- fillers


def dat_norm(vectors: Tensor) -> Tensor:
    """DATnorm, (70c-iii): a register [..., values] becomes one-hot at its largest neuron; a zero one stays zero."""
    largest = one_hot(vectors.argmax(-1), vectors.shape[-1]).to(vectors.dtype)
    return torch.where((vectors != 0).any(-1, keepdim=True), largest, vectors)


def soft_dat_norm(vectors: Tensor, temperature: float) -> Tensor:
    """Soft DATnorm: a softmax over log activity. Neurons at 0 stay at 0, so open places have no effect."""
    peak = vectors.amax(-1, keepdim=True).clamp(min=1e-6)
    powers = (vectors.clamp(min=0.0) / peak).clamp(min=1e-12) ** (1.0 / temperature)
    powers = torch.where(vectors > 0, powers, torch.zeros_like(powers))
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-12)


_NOTHING = 1e-3  # a vector without a larger component holds no value


class Fillers(Protocol):
    """The vectors of all values; `vectors` below is [..., width]."""

    size: int
    width: int
    dtype: torch.dtype

    @property
    def ones(self) -> Tensor:
        """The vector whose product with the vector of every value is 1: the paper's ones' vector, (72)."""

    def embed(self, values: Tensor) -> Tensor:
        """The vectors of values [...]."""

    def of(self, values: Sequence[int]) -> Tensor:
        """The sum of the vectors of these values, [width]."""

    def count(self, vectors: Tensor) -> Tensor:
        """How many values the vectors hold, [..., 1]: their products with `ones`."""

    def image(self, function: str | None, vectors: Tensor) -> Tensor:
        """Moves every value to its image under a function; values without an image are dropped."""

    def norm(self, vectors: Tensor) -> Tensor:
        """DATnorm: the vector of the nearest value; a zero vector stays zero, (70c-iii), footnote 27."""

    def values(self, vectors: Tensor) -> Tensor:
        """The nearest values, [...]."""

    def local(self, vectors: Tensor) -> Tensor:
        """The same in one-hot form, [..., values]."""

    def differ(self, before: Tensor, after: Tensor) -> Tensor:
        """Where the vectors hold other values, [...]."""


def in_one_hot(values: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """One-hot vectors [..., size] of values [...]."""
    vectors = torch.zeros(*values.shape, size, dtype=dtype, device=values.device)
    return vectors.scatter_(-1, values[..., None].long(), 1.0)


class LocalFillers:
    """One-hot vectors, (66b); see [`Fillers`].

    Args:
        size: d, the number of values.
        tables: the functions, see `ValueSpace.table`.
    """

    def __init__(self, size: int, tables: Mapping[str, Tensor], device: torch.device, dtype: torch.dtype):
        self.size = self.width = size
        self.tables, self.device, self.dtype = tables, device, dtype

    @property
    def ones(self) -> Tensor:
        return torch.ones(1, device=self.device, dtype=self.dtype)  # broadcast over the neurons

    def embed(self, values: Tensor) -> Tensor:
        return in_one_hot(values, self.size, self.dtype)

    def of(self, values: Sequence[int]) -> Tensor:
        places = torch.tensor(values, dtype=torch.long, device=self.device)
        return torch.zeros(self.size, device=self.device, dtype=self.dtype).index_fill(0, places, 1.0)

    def count(self, vectors: Tensor) -> Tensor:
        return vectors.sum(-1, keepdim=True)

    def image(self, function: str | None, vectors: Tensor) -> Tensor:
        if function is None:
            return vectors
        table = self.tables[function]
        defined = table >= 0
        return torch.zeros_like(vectors).index_add(-1, table[defined], vectors[..., defined])

    def norm(self, vectors: Tensor) -> Tensor:
        return dat_norm(vectors)

    def values(self, vectors: Tensor) -> Tensor:
        return vectors.argmax(-1)

    def local(self, vectors: Tensor) -> Tensor:
        return vectors

    def differ(self, before: Tensor, after: Tensor) -> Tensor:
        return before.argmax(-1) != after.argmax(-1)


class DenseFillers:
    """Dense unit vectors, (69), App. L; see [`Fillers`]. They are drawn at their first use.

    With fewer dimensions than values no matrix can map each vector to that of its value's image. There `image` first
    replaces products by 1 or 0, as DATnorm does; with orthonormal vectors it is the matrix that sums, over all values
    that have an image, the outer products of the value's vector and its image's.

    Args:
        size: d, the number of values.
        width: the dimension of the vectors.
        seed: of `filler_vectors`.
        tables: the functions, see `ValueSpace.table`.
    """

    def __init__(
        self,
        size: int,
        width: int,
        seed: int,
        tables: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
    ):
        self.size, self.width, self.seed, self.tables = size, width, seed, tables
        self.device, self.dtype = device, dtype
        self.linear = coherence(size, width) == 0

    @cached_property
    def _drawn(self) -> tuple[Tensor, Tensor]:
        vectors, ones = filler_vectors(self.size, self.width, self.seed)
        return vectors.to(self.device, self.dtype), ones.to(self.device, self.dtype)

    @property
    def vectors(self) -> Tensor:
        """[values, width]."""
        return self._drawn[0]

    @property
    def ones(self) -> Tensor:
        return self._drawn[1]

    def embed(self, values: Tensor) -> Tensor:
        return self.vectors[values.long()]

    def of(self, values: Sequence[int]) -> Tensor:
        return self.vectors[list(values)].sum(0)

    def count(self, vectors: Tensor) -> Tensor:
        return (vectors @ self.ones)[..., None]

    def image(self, function: str | None, vectors: Tensor) -> Tensor:
        if function is None:
            return vectors
        table = self.tables[function]
        defined = table >= 0
        present = vectors @ self.vectors[defined].T
        if not self.linear:
            present = (present > 0.5).to(vectors.dtype)
        return present @ self.vectors[table[defined]]

    def norm(self, vectors: Tensor) -> Tensor:
        return torch.where(_holds(vectors), self.embed(self.values(vectors)), 0.0)

    def values(self, vectors: Tensor) -> Tensor:
        return (vectors @ self.vectors.T).argmax(-1)  # the vectors have the same norm: nearest is largest product

    def local(self, vectors: Tensor) -> Tensor:
        return in_one_hot(self.values(vectors), self.size, vectors.dtype) * _holds(vectors)

    def differ(self, before: Tensor, after: Tensor) -> Tensor:
        # The squared distance of two fillers is 2 - 2 times their product, at least 1; the rest is rounding.
        return (before - after).square().sum(-1) > 0.5


def _holds(vectors: Tensor) -> Tensor:
    """Whether a vector is not zero, [..., 1]."""
    return vectors.abs().amax(-1, keepdim=True) > _NOTHING


# --------------------------------------------------------------------------------------------------------------- states


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
