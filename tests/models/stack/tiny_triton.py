"""Runs the Triton kernel's code with NumPy: an interpreter of the few parts of Triton's language that it uses.

Where Triton itself is missing, its kernels are plain Python functions. A pointer is a flat array and an array of
offsets. Loads and stores touch only the places that the mask leaves; such a place outside of the array is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch


@dataclass
class Pointer:
    """The address of an element of `data`, or of several."""

    data: np.ndarray
    offset: Any

    def __add__(self, other: Any) -> Pointer:
        return Pointer(self.data, self.offset + other)

    def __sub__(self, other: Any) -> Pointer:
        return Pointer(self.data, self.offset - other)


def _places(pointer: Pointer, mask: Any) -> tuple[np.ndarray, np.ndarray]:
    offset, mask = np.broadcast_arrays(pointer.offset, mask)
    used = offset[mask]
    if len(used) and not (used.min() >= 0 and used.max() < len(pointer.data)):
        raise IndexError(f"an address outside of the tensor: {used.min()} to {used.max()} of {len(pointer.data)}")
    return offset, mask


def _load(pointer: Pointer, mask: Any = True, other: Any = 0) -> Any:
    offset, mask = _places(pointer, mask)
    return np.where(mask, pointer.data[np.where(mask, offset, 0)], np.asarray(other, pointer.data.dtype))


def _store(pointer: Pointer, value: Any, mask: Any = True) -> None:
    offset, mask = _places(pointer, mask)
    pointer.data[offset[mask]] = np.broadcast_to(value, offset.shape)[mask]


class _Launcher:
    """`kernel[grid](*arguments)`, one program after the other."""

    def __init__(self, kernel: Any, language: SimpleNamespace) -> None:
        self.kernel, self.language = kernel, language

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*given: Any, num_warps: int, **constants: Any) -> None:
            flat = [Pointer(x.view(-1).numpy(), np.int64(0)) if isinstance(x, torch.Tensor) else x for x in given]
            for self.language.program in product(*map(range, grid)):
                self.kernel(*flat, **constants)

        return launch


def interpreted(kernels: Any, patch: pytest.MonkeyPatch) -> None:
    """Lets `forward` and `backward` of the module of kernels run on the CPU."""
    language = SimpleNamespace(
        program=(),
        program_id=lambda axis: np.int64(language.program[axis]) if axis else _Id(language.program[axis]),
        arange=lambda low, high: np.arange(low, high),
        load=_load,
        store=_store,
        where=np.where,
        sum=np.sum,
        min=np.min,
        maximum=np.maximum,
        minimum=np.minimum,
        static_range=range,
        debug_barrier=lambda: None,
        int64=np.int64,
    )
    patch.setattr(kernels, "tl", language, raising=False)
    patch.setattr(
        kernels, "triton", SimpleNamespace(next_power_of_2=lambda n: 1 << (n - 1).bit_length()), raising=False
    )
    for name in ("_forward", "_backward"):
        kernel = getattr(kernels, name)
        patch.setattr(kernels, name, _Launcher(getattr(kernel, "fn", kernel), language))


class _Id(int):
    def to(self, kind: Any) -> Any:
        return kind(self)
