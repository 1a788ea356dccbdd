"""Batches of keyword arguments: padding them, taking rows, changing their type."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Batch = dict[str, Tensor]


def pad(
    batch: Batch,
    amount: int,
    side: Literal["left", "right"],
    values: Mapping[str, float],
    dim: int = 1,
    columns: Collection[str] = (),
) -> Batch:
    """The batch with `amount` more positions of padding in dimension `dim` of every tensor that has one.

    Padding on the left moves the tensors named in `columns`, which hold numbers of positions.
    """
    width = (amount, 0) if side == "left" else (0, amount)
    return {
        name: functional.pad(tensor, (0, 0) * (tensor.dim() - 1 - dim) + width, value=values[name])
        if tensor.dim() > dim
        else tensor + width[0]
        if name in columns
        else tensor
        for name, tensor in batch.items()
    }


def stack(batches: list[Batch]) -> Batch:
    """One batch of all the rows."""
    return {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}


def rows(batch: Batch) -> list[Batch]:
    """The examples one by one, as a data set that Trainer takes."""
    size = len(next(iter(batch.values())))
    return [{name: tensor[i] for name, tensor in batch.items()} for i in range(size)]


def row(batch: Batch, index: int) -> Batch:
    """A batch of one."""
    return {name: tensor[index : index + 1] for name, tensor in batch.items()}


def cast(batch: Batch, dtype: torch.dtype) -> Batch:
    """The batch with its floating-point tensors in another type."""
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in batch.items()}
