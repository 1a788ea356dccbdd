"""The backend `gather`: registers are integers, and (70) is computed by comparison and indexing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .dat_embedding import Registers
from .dat_machine import Cells, Readable, at_columns
from .dat_program import FIRST_NUMBER, UNSET, DATProgram, Heads, Layer, Match, Operand


@dataclass(frozen=True)
class Source:
    """A side of a match that reads a register, perhaps through a function, perhaps negated."""

    register: int
    function: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class Pair:
    """A register of the cell that is updated against one of the cell that is read."""

    query: Source
    key: Source


class MatchPlan:
    """The matches of a production, or of the condition that ends a repeat block, sorted by the cells they read.

    Args:
        matches: all of them.
        position: the index of the position register, whose value identifies the cell.

    Attributes:
        updated: tests of only the cell that is updated, a register against constants.
        read: tests of only the cell that is read.
        pairs: tests of both cells.
        possible: False if a test of two constants fails, so that no cell ever fires.
        located: the side that gives the position of the cell to be read; its match is not in the other attributes.
        itself: the cell reads itself.
    """

    def __init__(self, matches: Sequence[Match], position: int):
        self.updated: list[tuple[Source, Operand]] = []
        self.read: list[tuple[Source, Operand]] = []
        self.pairs: list[Pair] = []
        self.located: Source | None = None
        self.possible = True
        at_position = Source(position)
        for match in matches:
            query, key = _source(match.query), _source(match.key)
            if query is None:
                if key is None:
                    self.possible = self.possible and _constants_match(match)
                else:
                    self.read.append((key, match.query))
            elif key is None:
                self.updated.append((query, match.key))
            elif key == at_position and not query.negated and self.located is None:
                self.located = query
            else:
                self.pairs.append(Pair(query, key))
        self.itself = self.located == at_position


def _source(operand: Operand) -> Source | None:
    """The side as a register; None for constants."""
    return None if operand.register is None else Source(operand.register, operand.function, operand.negated)


def _constants_match(match: Match) -> bool:
    """Whether two sides that are constants match."""
    among = bool(set(match.query.values) & set(match.key.values))
    return among != (match.query.negated or match.key.negated)


_CELLS_AT_ONCE = 1 << 24  # pairs of cells compared at once, so that memory does not grow with the batch


Reads = list[tuple[Tensor, Tensor | None]]  # of each head the cells that fire, [batch, N], and the columns they read


class GatherBackend:
    """See `dat_machine.Backend`; a register is int32, [batch, cells].

    It does not depend on the prompt, so a model makes it once for every device.

    Args:
        program: the program.
        tables: its functions on the device, see `ValueSpace.table`.
        end: the value that marks the end of the prompt, for programs with the register `eop`.

    Attributes:
        plans: the tests of every layer.
        conditions: the tests that end repeat blocks, by their matches.
    """

    def __init__(self, program: DATProgram, tables: Mapping[str, Tensor], end: int | None):
        self.program, self.tables, self.end = program, tables, end
        self.position = program.parts["position"]
        self.plans = [[MatchPlan(head.matches, self.position) for head in layer.heads] for layer in program.layers]
        conditions = [block.until for block in program.blocks if block.until is not None]
        self.conditions = {matches: MatchPlan(matches, self.position) for matches in conditions}

    def begin(self, symbols: Tensor, cells: Cells, ends: Tensor, given: Mapping[int, Tensor]) -> Registers:
        nothing = torch.zeros_like(symbols, dtype=torch.int32)
        registers = [nothing] * len(self.program.registers)
        for index, value in self.program.initial.items():
            registers[index] = torch.full_like(nothing, value) * cells.exists
        if self.end is not None:
            eop = self.program.parts["eop"]
            registers[eop] = registers[eop].masked_fill(ends, self.end)
        for index, own in given.items():
            registers[index] = torch.where(own == UNSET, registers[index], own.int()) * cells.exists
        return self._place(registers, symbols, cells)

    def carry(self, last: Registers, symbols: Tensor, cells: Cells) -> Registers:
        return self._place(list(last), symbols, cells)

    def _place(self, registers: list[Tensor], symbols: Tensor, cells: Cells) -> Registers:
        registers[self.position] = ((cells.positions + FIRST_NUMBER) * cells.exists).int()
        registers[self.program.parts["symbol"]] = (symbols * cells.exists).int()
        return tuple(registers)

    def changed(self, before: Tensor, after: Tensor) -> Tensor:
        return before != after

    def step(
        self, layer: Layer | Heads, registers: Registers, cells: Cells, readable: Readable
    ) -> tuple[Registers, Reads]:
        made, reads = list(registers), []
        for head, plan in zip(layer.heads, self.plans[layer.index], strict=True):
            fires, columns = self._select(plan, registers, cells, readable, head.right_match, head.causal)
            reads.append((fires, columns))
            if columns is not None or plan.itself:
                self._write(head, fires, columns, registers, readable, made)
        return tuple(made), reads

    def _write(
        self,
        layer: Layer,
        fires: Tensor,
        columns: Tensor | None,
        registers: Registers,
        readable: Readable,
        made: list[Tensor],
    ) -> None:
        """The values of the cells that were read go to `made`, the registers after the layer."""
        for target, source in layer.writes:
            written = fires
            if source.register is None:
                value = torch.full_like(registers[target], source.values[0])
            elif columns is None:
                value = registers[source.register]
            else:
                value = at_columns(readable.register(source.register), columns)
            if source.function is not None:  # an undefined value is zero as a vector: the register stays
                value = self.tables[source.function][value.long()].int()
                written = fires & (value >= 0)
            made[target] = torch.where(written, value, made[target])

    def weights(self, reads: Reads, readable: Readable) -> Tensor:
        return torch.stack([self._weights(fires, columns, readable) for fires, columns in reads], 1)

    @staticmethod
    def _weights(fires: Tensor, columns: Tensor | None, readable: Readable) -> Tensor:
        if columns is None:  # each that fires reads itself
            columns = _own_columns(readable).expand_as(fires)
        weights = torch.zeros(*fires.shape, readable.exists.shape[1], device=fires.device)
        return weights.scatter_(2, columns.clamp(min=0)[..., None].long(), fires[..., None].to(weights.dtype))

    def holds(self, matches: tuple[Match, ...], registers: Registers, cells: Cells, readable: Readable) -> Tensor:
        fires, _ = self._select(self.conditions[matches], registers, cells, readable, False, False)
        return fires.any(1)

    # ---------------------------------------------------------------------------------------------- which cell is read

    def _select(
        self, plan: MatchPlan, registers: Registers, cells: Cells, readable: Readable, right: bool, causal: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The cells that fire, [batch, N], and the column that each reads; None if each reads itself or none fires."""
        fires = cells.exists if plan.possible else torch.zeros_like(cells.exists)
        for source, constants in plan.updated:
            fires = fires & self._among(self._value(source, registers.__getitem__), constants, source)
        if plan.itself:
            for source, constants in plan.read:
                fires = fires & self._among(self._value(source, registers.__getitem__), constants, source)
            for pair in plan.pairs:
                query, key = (self._value(side, registers.__getitem__) for side in (pair.query, pair.key))
                fires = fires & _compare(query, key, pair)
            return fires, None
        if not bool(fires.any()):
            return fires, None
        if plan.located is not None:
            return self._by_position(plan, plan.located, fires, registers, readable, causal)
        if plan.pairs:
            return self._by_pairs(plan, fires, registers, readable, right, causal)
        return self._by_read_cell(plan, fires, readable, right, causal)

    def _by_position(
        self, plan: MatchPlan, located: Source, fires: Tensor, registers: Registers, readable: Readable, causal: bool
    ) -> tuple[Tensor, Tensor]:
        """A position names the cell to be read: no search is needed."""
        wanted = self._value(located, registers.__getitem__).long() - FIRST_NUMBER
        if readable.own == readable.exists.shape[1]:  # a prompt's cells are in the order of their positions
            columns = (wanted - 1).clamp(0, readable.own - 1)
        else:
            columns = (readable.positions[:, None] == wanted[..., None]).int().argmax(-1)
        found = (
            at_columns(readable.exists, columns) & (at_columns(readable.positions, columns) == wanted) & (wanted > 0)
        )
        fires = fires & found
        for source, constants in plan.read:
            value = self._value(source, lambda index: at_columns(readable.register(index), columns))
            fires = fires & self._among(value, constants, source)
        for pair in plan.pairs:
            key = self._value(pair.key, lambda index: at_columns(readable.register(index), columns))
            fires = fires & _compare(self._value(pair.query, registers.__getitem__), key, pair)
        if causal:
            fires = fires & (columns <= _own_columns(readable))
        return fires, columns

    def _by_read_cell(
        self, plan: MatchPlan, fires: Tensor, readable: Readable, right: bool, causal: bool
    ) -> tuple[Tensor, Tensor]:
        """No test compares the two cells: all that fire read the first (or last) cell that passes the tests of n."""
        passes = self._passes(plan, readable)
        own = _own_columns(readable)
        order = torch.arange(passes.shape[1], device=passes.device)
        if causal and right:  # the last one up to the cell itself
            columns = torch.where(passes, order, -1).cummax(1).values[:, -readable.own :]
        elif right:
            columns = torch.where(passes, order, -1).amax(1, keepdim=True).expand(-1, readable.own)
        else:
            columns = torch.where(passes.any(1), passes.int().argmax(1), -1)[:, None].expand(-1, readable.own)
        fires = fires & (columns >= 0)
        if causal:
            fires = fires & (columns <= own)
        return fires, columns

    def _by_pairs(
        self, plan: MatchPlan, fires: Tensor, registers: Registers, readable: Readable, right: bool, causal: bool
    ) -> tuple[Tensor, Tensor]:
        """Compares every cell that fires with every cell that may be read."""
        passes = self._passes(plan, readable)
        queries = [self._value(pair.query, registers.__getitem__) for pair in plan.pairs]
        keys = [self._value(pair.key, readable.register) for pair in plan.pairs]
        own = _own_columns(readable)
        pieces = []
        rows = max(1, _CELLS_AT_ONCE // max(1, fires.shape[1] * passes.shape[1]))
        for start in range(0, len(fires), rows):
            piece = slice(start, start + rows)
            matches = fires[piece, :, None] & passes[piece, None]
            for pair, query, key in zip(plan.pairs, queries, keys, strict=True):
                matches &= _compare(query[piece, :, None], key[piece, None], pair)
            if causal:
                matches &= torch.arange(passes.shape[1], device=own.device) <= own[:, None]
            pieces.append(_first(matches, right))
        columns = torch.cat(pieces)
        return fires & (columns >= 0), columns

    def _passes(self, plan: MatchPlan, readable: Readable) -> Tensor:
        passes = readable.exists
        for source, constants in plan.read:
            passes = passes & self._among(self._value(source, readable.register), constants, source)
        return passes

    # ---------------------------------------------------------------------------------------------------- comparisons

    def _value(self, source: Source, register: Callable[[int], Tensor]) -> Tensor:
        """The values of one side of a match; `register` gives a register of the cells that it reads."""
        values = register(source.register)
        return self.tables[source.function][values.long()].int() if source.function else values

    @staticmethod
    def _among(values: Tensor, constants: Operand, source: Source) -> Tensor:
        """Where the values of one side are among the constants of the other (not among them, if either is negated)."""
        if len(constants.values) == 1:
            among = values == constants.values[0]
        else:
            among = torch.isin(values, torch.tensor(constants.values, dtype=values.dtype, device=values.device))
        if source.negated:
            return ~among
        if constants.negated:  # an undefined value matches neither a constant nor a negation
            return ~among & (values >= 0) if source.function else ~among
        return among


def _compare(query: Tensor, key: Tensor, pair: Pair) -> Tensor:
    """Equality, or its negation, (72e). An undefined value is negative; without a negation it matches nothing."""
    if pair.query.negated or pair.key.negated:
        plain, values = (pair.key, key) if pair.query.negated else (pair.query, query)
        return (query != key) & (values >= 0) if plain.function else query != key
    return (query == key) & (query >= 0) if pair.query.function and pair.key.function else query == key


def _first(matches: Tensor, right: bool) -> Tensor:
    """The first (or last) True column [batch, N] of [batch, N, n]; -1 if there is none."""
    if not right:
        found, column = matches.max(-1)
    else:
        found, column = matches.flip(-1).max(-1)
        column = matches.shape[-1] - 1 - column
    return torch.where(found, column, -1)


def _own_columns(readable: Readable) -> Tensor:
    """The columns of the cells being updated, [N]."""
    size = readable.exists.shape[1]
    return torch.arange(size - readable.own, size, device=readable.exists.device)
