"""Vectors of values: one-hot, (66), or dense, (69), and what a layer does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from .dat_attention import dat_norm
from .dat_vectors import coherence, fillers

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
        seed: of `dat_vectors.fillers`.
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
        vectors, ones = fillers(self.size, self.width, self.seed)
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
