"""From token ids to cells, and from the cells' states to outputs by token.

A token is a place in `input_ids`. A word makes a cell; padding (nil) and the end of the prompt make none. Cells are
updated in groups: first the prompts of all rows together, then one further cell a row. The states of a group are
registers before the first layer and after every layer. `Registers` are a tuple of tensors. From the backend `gather`
each register is its values, [batch, cells]; from the others it is vectors, [batch, cells, width]. An `Embedding` gives
values and vectors of either.

For example, one token of padding, the prompt `a b`, its end, and the word `c` behind it:

    token     nil   a   b  eop   c
    columns    -1   0   1    1   2    the cell whose state the token has: the end of the prompt has the last word's
    keys       -1   0   1   -1   2    the cell that others read at the token: nobody reads the end of the prompt
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .dat_embedding import Embedding, Registers
from .dat_machine import AnyGroup, Group, History, Tree, at_columns, choose
from .dat_program import (
    END_OF_PROMPT,
    NIL,
    UNSET,
    Block,
    DATError,
    DATLengthError,
    DATProgram,
    Heads,
    Layer,
    Statement,
)

# ------------------------------------------------------------------------------------------------- from tokens to cells


@dataclass(frozen=True)
class Words:
    """The words of one part of every row, moved together to the left.

    Args:
        symbols: [batch, most words].
        exists: True where there is a word, [batch, most words].
        rank: for every token its index among the words, or -1, [batch, length].
    """

    symbols: Tensor
    exists: Tensor
    rank: Tensor


def check_ids(ids: Tensor, size: int) -> None:
    """Refuses ids that are not values.

    Raises:
        DATError: not [batch, length] of integers, or out of range.
    """
    if ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32):
        raise DATError(f"input_ids must be integers [batch, length], got {ids.dtype} {tuple(ids.shape)}.")
    if ids.numel() and (int(ids.max()) >= size or int(ids.min()) < 0):
        raise DATError(
            f"input_ids must lie between 0 and {size - 1}, got {int(ids.min())} to {int(ids.max())}; use the "
            "checkpoint's own tokenizer, or compile the program with more num_open_values."
        )


def read_mask(mask: Tensor | None, ids: Tensor) -> Tensor:
    """True at tokens that are not padding, [batch, length]: the last columns of the mask; all True without a mask.

    Raises:
        DATError: the mask is not [batch, at least length].
    """
    if mask is None:
        return torch.ones_like(ids, dtype=torch.bool)
    if mask.dim() != 2 or len(mask) != len(ids) or mask.shape[1] < ids.shape[1]:
        raise DATError(
            f"attention_mask must have a row for each of input_ids' and at least as many columns, got "
            f"{tuple(mask.shape)} for {tuple(ids.shape)}."
        )
    return mask[:, mask.shape[1] - ids.shape[1] :].bool()


def collect(ids: Tensor, chosen: Tensor) -> Words:
    """Moves the chosen tokens of every row to the left, in their order."""
    if len(ids) and bool(chosen.all()):
        return Words(ids, chosen, torch.arange(ids.shape[1], device=ids.device).expand_as(ids))
    count = chosen.sum(1)
    most = int(count.max()) if len(ids) else 0
    rank = torch.where(chosen, chosen.cumsum(1) - 1, -1)
    if not most:
        return Words(ids[:, :0], chosen[:, :0], rank)
    order = (~chosen).int().argsort(dim=1, stable=True)[:, :most]
    exists = torch.arange(most, device=ids.device) < count[:, None]
    return Words(ids.gather(1, order) * exists, exists, rank)


def split(ids: Tensor, mask: Tensor) -> tuple[Words, Words, Tensor]:
    """The prompts, the words after them, and the places of their ends, a boolean [batch, length].

    Padding makes no cell, and neither does the mark of the end.

    Raises:
        DATError: a row with no end of the prompt, with two, or with no word before it.
    """
    ends = mask & (ids == END_OF_PROMPT)
    words = mask & (ids != END_OF_PROMPT) & (ids != NIL)
    odd = (ends.sum(1) != 1).nonzero().flatten().tolist()
    if odd:
        raise DATError(
            f"A prompt ends with the token {END_OF_PROMPT}, once; rows {odd[:8]} have "
            f"{ends.sum(1)[odd[:8]].tolist()} of them. The tokenizer adds it unless add_special_tokens=False."
        )
    behind = ends.long().cumsum(1) > 0
    prompt = words & ~behind
    empty = (~prompt.any(1)).nonzero().flatten().tolist()
    if empty:
        raise DATError(f"A prompt needs a word; rows {empty[:8]} have none.")
    return collect(ids, prompt), collect(ids, words & behind), ends


def read_registers(
    values: Tensor | None, ids: Tensor, prompt: Words, registers: Sequence[str], allowed: Sequence[int], size: int
) -> dict[int, Tensor]:
    """The first values of registers that the prompt sets, by cell.

    Args:
        values: [batch, columns, registers], `UNSET` where the program decides; those of the first columns of `ids`.
        ids: [batch, length].
        prompt: the prompts' words.
        registers: the names of all registers.
        allowed: those that a prompt may set.
        size: the number of values.

    Returns:
        register -> [batch, most words], for the registers that any cell sets.

    Raises:
        DATError: another shape, a value out of range, or set at a token that is no word of a prompt or in a
            register that the program does not let a prompt set.
    """
    if values is None:
        return {}
    shape = (len(ids), ids.shape[1], len(registers))
    fits = values.dim() == 3 and (len(values), values.shape[2]) == (shape[0], shape[2]) and values.shape[1] <= shape[1]
    if not fits or values.dtype not in (torch.int64, torch.int32):
        raise DATError(
            f"register_values must be integers {shape}, or of fewer columns, got {values.dtype} {tuple(values.shape)}."
        )
    own = values != UNSET
    if own.any() and (int(values[own].max()) >= size or int(values[own].min()) < 0):
        raise DATError(
            f"register_values must lie between 0 and {size - 1}, or be {UNSET}, got {int(values[own].min())} to "
            f"{int(values[own].max())}."
        )
    asked = own.flatten(0, 1).any(0).nonzero().flatten().tolist()
    if wrong := [registers[index] for index in asked if index not in allowed]:
        names = ", ".join(registers[index] for index in allowed) or "none"
        raise DATError(
            f"A prompt of this program may set the registers {names}, got values of {', '.join(wrong)}; name them in "
            "the program's `prompt: [...]`."
        )
    rank = prompt.rank[:, : values.shape[1]]
    if bool((own.any(2) & (rank < 0)).any()):
        raise DATError("register_values are set at a token that is no word of the prompt; leave them at -100 there.")
    found = {}
    for index in asked:
        cells = torch.full((len(ids), prompt.symbols.shape[1] + 1), UNSET, dtype=torch.int64, device=ids.device)
        places = torch.where(rank >= 0, rank, prompt.symbols.shape[1])  # what is no word goes behind, and away
        found[index] = cells.scatter(1, places, values[:, :, index].long())[:, :-1]
    return found


def check_length(longest: int, limit: int) -> None:
    """Refuses more cells than there are positions.

    Raises:
        DATLengthError: says the limit and how to raise it.
    """
    if longest > limit:
        raise DATLengthError(
            f"A prompt and what follows it may have {limit} words, got {longest}. Compile the program with a larger "
            "max_position_embeddings, or ask for fewer max_new_tokens."
        )


# ------------------------------------------------------------------------------------------------- from cells to tokens


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
        """The record of a call without a cell, padding alone: nothing is read."""
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
    """The states of the cells that one call of the model has read, and outputs by token made of them.

    Args:
        groups: the call's groups of cells, in order.
        columns: for every token of the call its cell among those of `groups`, or -1, [batch, length].
        keys: for every token of this and earlier calls its cell among those of `history`, or -1, [batch, tokens].
        history: the groups of this and earlier calls.
        embedding: the vectors of registers and values.
        records: what the recorder kept of every group of the call, if there is one. Hidden states and attentions need
            a [`Record`] of each.
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
        return tuple(self._stream(self._at_tokens(groups), dtype) for groups in layers)

    def attentions(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """The weights of the read tokens in each layer, [batch, heads, length, tokens so far]; zeros if none is read.

        The number of heads is that of the layer.
        """
        return tuple(self._by_token(self._reads(layer)).to(dtype) for layer in self.records[0].reads)

    @property
    def _real(self) -> Tensor:
        """Whether a token has a cell, [batch, length, 1]."""
        return (self.columns >= 0)[..., None]

    def _final(self) -> Registers:
        """The registers of every token after the last layer."""
        return self._at_tokens([group.final for group in self.groups])

    def _at_tokens(self, groups: Sequence[Registers]) -> Registers:
        """The registers of every token, from those of each group's cells. Padding has those of some cell."""
        return tuple(at_columns(torch.cat(parts, 1), self.columns) for parts in zip(*groups, strict=True))

    def _stream(self, registers: Registers, dtype: torch.dtype) -> Tensor:
        return self.embedding.stream(registers).to(dtype) * self._real

    def _reads(self, layer: int) -> Tensor:
        """The weights of the cells that the call's cells read in a layer, [batch, heads, N, cells so far].

        A group read no cell of a later group, so these have weight 0.
        """
        reads = [record.reads[layer] for record in self.records]
        return torch.cat([pad(own, (0, self.history.width - own.shape[3])) for own in reads], 2)

    def _by_token(self, reads: Tensor) -> Tensor:
        """From cells [batch, heads, N, n] to tokens [batch, heads, length, tokens so far]."""
        heads, length = reads.shape[1], self.columns.shape[1]
        columns = self.columns.clamp(min=0)[:, None, :, None].expand(-1, heads, -1, reads.shape[3])
        rows = reads.gather(2, columns) * self._real[:, None]
        keys = self.keys[:, None, None].expand(-1, heads, length, -1)
        return rows.gather(3, keys.clamp(min=0)) * (keys >= 0)


# --------------------------------------------------------------------------------------------------------------- traces


@dataclass(frozen=True)
class LayerState:
    """The cells of one group after one layer.

    Args:
        layer: the layer, counted in the order of the program; None before the first.
        repetitions: the repetition of each enclosing block, the outermost first, counted from 0.
        values: the registers' values, [batch, cells, registers].
        reads: if asked for, the weights of the cells that were read, [batch, heads, cells, cells so far]: a one-hot
            row, or zeros if no cell matches; None before the first layer.
    """

    layer: int | None
    repetitions: tuple[int, ...]
    values: Tensor
    reads: Tensor | None = None


class Reads(list[Tensor]):
    """A recorder, see `dat_machine.Recorder`: the weights of the read cells for every layer that ran, in order."""

    def add(self, layer: int, reads: Tensor, outputs: Registers, rows: Tensor) -> None:
        """Keeps the weights alone."""
        self.append(reads)


def trace_of(
    program: DATProgram, group: AnyGroup, embedding: Embedding, reads: Sequence[Tensor] | None = None
) -> list[LayerState]:
    """The states before the first layer and after each layer that ran. Rows that ended a block replay it.

    Args:
        program: the program.
        group: the cells.
        embedding: the vectors of registers and values.
        reads: the weights of the read cells for every layer that ran, of a batch of one row.
    """
    first = LayerState(None, (), embedding.every_value(first_input(group)))
    outputs = list(_outputs(program.statements, group.tensors.tree, (), embedding))
    if reads is not None:
        outputs = [replace(state, reads=own) for state, own in zip(outputs, reads, strict=True)]
    return [first, *outputs]


def first_input(group: AnyGroup) -> Registers:
    """The registers of a group of cells before the first layer."""
    return _first(group.tensors.tree)


def _outputs(
    statements: tuple[Statement, ...], tree: Tree, repetitions: tuple[int, ...], embedding: Embedding
) -> Iterator[LayerState]:
    for i, statement in enumerate(statements):
        if not isinstance(statement, Block):
            yield LayerState(statement.index, repetitions, embedding.every_value(_first(tree[i + 1])))
        else:
            for j, body in enumerate(tree[i]):
                yield from _outputs(statement.body, body, (*repetitions, j), embedding)


def _first(node: Any) -> Registers:
    """The registers with which a node of the tree begins: a layer's input, that of a block's first layer, an output."""
    while isinstance(node, list):
        node = node[0]
    return node
