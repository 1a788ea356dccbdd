"""From the states of cells to outputs by token: registers, hidden states and attentions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .dat_embedding import Embedding
from .dat_history import AnyGroup, Group, History, Registers, choose
from .dat_machine import at_columns
from .dat_program import Heads, Layer
from .dat_trace import first_input
from .dat_values import NIL


@dataclass
class Record:
    """The reads and the output of every layer, for one group of cells.

    A layer in a repeat block has those of the last repetition that a row needed.

    Args:
        reads: layer -> the weights of the read cells, [batch, heads, N, n].
        outputs: layer -> the registers after it.
    """

    reads: dict[int, Tensor] = field(default_factory=dict)
    outputs: dict[int, Registers] = field(default_factory=dict)

    @classmethod
    def empty(cls, group: Group, layers: Sequence[Layer | Heads]) -> Record:
        """That of a call without a cell: nothing is read."""
        nothing = group.exists.float()[:, None, :, None]
        return cls(
            {layer.index: nothing.new_zeros(nothing.shape).expand(-1, len(layer.heads), -1, -1) for layer in layers},
            {layer.index: group.final for layer in layers},
        )

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
        embedding: the vectors of registers and values.
        records: for every group that of the recorder, if there is one; [`Record`] for outputs by token.
    """

    groups: Sequence[AnyGroup]
    columns: Tensor
    keys: Tensor
    history: History[Any]
    embedding: Embedding
    records: Sequence[Any] = ()

    def register(self, index: int, dtype: torch.dtype) -> Tensor:
        """A register of every token after the last layer in one-hot form, [batch, length, values]; padding is zero."""
        return self.embedding.local(self._final(), index).to(dtype) * self._real

    def vectors(self, dtype: torch.dtype) -> Tensor:
        """The state of every token after the last layer, [batch, length, hidden_size]; padding is zero."""
        return self._stream(self._final(), dtype)

    def values(self) -> Tensor:
        """The values of all registers, [batch, length, registers]; nil for padding."""
        return self.embedding.every_value(self._final()) * self._real

    def last_words(self, index: int, ends: Sequence[int]) -> Tensor:
        """The value of a register in every row's last token, [batch, 1], nil in place of `ends` and of padding.

        Only of the backend `gather`, whose registers are values.
        """
        columns = self.columns[:, -1:]
        own = [group.register(index) for group in self.groups]
        words = at_columns(own[0] if len(own) == 1 else torch.cat(own, 1), columns).long()
        for end in ends:
            words = words.masked_fill(words == end, NIL)
        return words.masked_fill(columns < 0, NIL)

    def hidden_states(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """Before the first layer and after each layer, [batch, length, hidden_size]."""
        layers = [[first_input(group) for group in self.groups]]
        layers += [[record.outputs[layer] for record in self.records] for layer in self.records[0].outputs]
        return tuple(self._stream(self._by_column(groups), dtype) for groups in layers)

    def attentions(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """The weights of the read tokens in each layer, [batch, heads, length, tokens so far]; zeros if none is read.

        The number of heads is that of the layer.
        """
        cells = self.history.width
        return tuple(
            self._by_token(
                torch.cat(
                    [pad(record.reads[layer], (0, cells - record.reads[layer].shape[3])) for record in self.records], 2
                )
            ).to(dtype)
            for layer in self.records[0].reads
        )

    @property
    def _real(self) -> Tensor:
        """Whether a token has a cell, [batch, length, 1]."""
        return (self.columns >= 0)[..., None]

    def _final(self) -> Registers:
        return self._by_column([group.final for group in self.groups])

    def _by_column(self, groups: Sequence[Registers]) -> Registers:
        """The registers of every token, from those of the cells of all groups."""
        return tuple(at_columns(torch.cat(parts, 1), self.columns) for parts in zip(*groups, strict=True))

    def _stream(self, registers: Registers, dtype: torch.dtype) -> Tensor:
        return self.embedding.stream(registers).to(dtype) * self._real

    def _by_token(self, reads: Tensor) -> Tensor:
        """From cells [batch, heads, N, n] to tokens [batch, heads, length, tokens so far]."""
        heads, length = reads.shape[1], self.columns.shape[1]
        columns = self.columns.clamp(min=0)[:, None, :, None].expand(-1, heads, -1, reads.shape[3])
        rows = reads.gather(2, columns) * self._real[:, None]
        keys = self.keys[:, None, None].expand(-1, heads, length, -1)
        return rows.gather(3, keys.clamp(min=0)) * (keys >= 0)
