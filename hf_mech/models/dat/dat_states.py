"""From the states of cells to outputs by token: registers, hidden states and attentions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .dat_history import AnyGroup, Group, History, Registers, choose
from .dat_machine import at_columns
from .dat_trace import first_input
from .dat_values import NIL


@dataclass
class Record:
    """The reads and the output of every layer, for one group of cells.

    A layer in a repeat block has those of the last repetition that a row needed.

    Args:
        reads: layer -> the weights of the read cells, [batch, N, n].
        outputs: layer -> the registers after it.
    """

    reads: dict[int, Tensor] = field(default_factory=dict)
    outputs: dict[int, Registers] = field(default_factory=dict)

    @classmethod
    def empty(cls, group: Group, layers: int) -> Record:
        """That of a call without a cell: nothing is read."""
        cells = group.exists.float()
        nothing = cells.new_zeros(*cells.shape, 1)
        return cls(dict.fromkeys(range(layers), nothing), dict.fromkeys(range(layers), group.final))

    def add(self, layer: int, reads: Tensor, outputs: Registers, rows: Tensor) -> None:
        """Keeps these for the rows [batch] that the layer updates now."""
        if layer in self.reads:
            reads, outputs = choose(rows, reads, self.reads[layer]), choose(rows, outputs, self.outputs[layer])
        self.reads[layer], self.outputs[layer] = reads, outputs


@dataclass(frozen=True)
class States:
    """The states of the cells that a call has read.

    Args:
        groups: the groups of these cells, in order.
        columns: for every token of the call its cell among theirs, or -1, [batch, length].
        keys: for every token so far its cell among all, or -1, [batch, tokens]. The end of the prompt has none here; in
            `columns` it has the prompt's last.
        history: all groups.
        records: for every group, if recorded.
    """

    groups: Sequence[AnyGroup]
    columns: Tensor
    keys: Tensor
    history: History[Any]
    records: Sequence[Record] = ()

    def final(self, index: int) -> Tensor:
        """A register of all cells of the call after the last layer."""
        own = [group.register(index) for group in self.groups]
        return own[0] if len(own) == 1 else torch.cat(own, 1)

    def register(self, index: int, size: int, dtype: torch.dtype) -> Tensor:
        """A register of every token as a vector, [batch, length, size]."""
        return self._vectors(self.final(index), size, dtype)

    def last_words(self, index: int, ends: Sequence[int]) -> Tensor:
        """The value of a register in every row's last token, [batch, 1], nil in place of `ends` and of padding."""
        columns = self.columns[:, -1:]
        words = at_columns(self.final(index), columns).long()
        for end in ends:
            words = words.masked_fill(words == end, NIL)
        return words.masked_fill(columns < 0, NIL)

    def said(self, index: int, stops: Sequence[int], size: int, dtype: torch.dtype) -> Tensor:
        """The same, with nil in place of stop words: they end a completion, too."""
        words = self.final(index)
        if not stops:
            return self._vectors(words, size, dtype)
        if words.dim() == 2:
            for stop in stops:
                words = words.masked_fill(words == stop, NIL)
            return self._vectors(words, size, dtype)
        vectors = self._vectors(words, size, dtype)
        places = torch.tensor(stops, device=vectors.device)
        ends = vectors.index_select(-1, places).sum(-1, keepdim=True)
        return vectors.index_fill(-1, places, 0.0).index_add(-1, places.new_tensor([NIL]), ends)

    def vectors(self, count: int, size: int, dtype: torch.dtype) -> Tensor:
        """All registers of every token, [batch, length, count * size]."""
        return torch.cat([self.register(index, size, dtype) for index in range(count)], -1)

    def values(self, count: int) -> Tensor:
        """The values of all registers, [batch, length, count]; nil for padding."""
        found = [at_columns(self.final(index), self.columns) for index in range(count)]
        found = [values.argmax(-1) if values.dim() == 3 else values.long() for values in found]
        return torch.stack(found, -1) * (self.columns >= 0).unsqueeze(-1)

    def hidden_states(self, count: int, size: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """Before the first layer and after each layer, [batch, length, count * size]."""
        layers = [[first_input(group) for group in self.groups]]
        layers += [[record.outputs[layer] for record in self.records] for layer in self.records[0].outputs]
        return tuple(
            torch.cat(
                [
                    self._vectors(torch.cat([registers[i] for registers in groups], 1), size, dtype)
                    for i in range(count)
                ],
                -1,
            )
            for groups in layers
        )

    def attentions(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """The weights of the read tokens in each layer, [batch, 1, length, tokens so far]; zeros if none is read."""
        cells = self.history.width
        return tuple(
            self._by_token(
                torch.cat(
                    [pad(record.reads[layer], (0, cells - record.reads[layer].shape[2])) for record in self.records], 1
                )
            ).to(dtype)
            for layer in self.records[0].reads
        )

    def _vectors(self, register: Tensor, size: int, dtype: torch.dtype) -> Tensor:
        found = at_columns(register, self.columns)
        real = (self.columns >= 0)[..., None]
        if found.dim() == 3:
            return found.to(dtype) * real
        vectors = torch.zeros(*found.shape, size, dtype=dtype, device=found.device)
        return vectors.scatter_(-1, found[..., None].long(), real.to(dtype))

    def _by_token(self, reads: Tensor) -> Tensor:
        """From cells [batch, N, n] to tokens [batch, 1, length, tokens so far]."""
        rows = at_columns(reads, self.columns) * (self.columns >= 0)[..., None]
        keys = self.keys[:, None].expand(-1, rows.shape[1], -1)
        return (rows.gather(2, keys.clamp(min=0)) * (keys >= 0))[:, None]


__all__ = ["Record", "States"]
