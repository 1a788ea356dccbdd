"""The vectors of values (fillers) and of registers (roles) that are not one-hot, (69), App. L.

They are functions of their number, their dimension and a seed, in closed form and integer arithmetic: the same on every
machine, so a checkpoint holds none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isqrt

import torch
from torch import Tensor

from .dat_program import DATProgram, Match

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


def fillers(number: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
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
    """The greatest product of two different vectors of `fillers`; 0 if they are orthonormal."""
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
