"""The backend `gather`: registers as integers. What (70) computes with one-hot vectors, by comparing and picking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor

from .dat_history import Registers
from .dat_machine import Cells, Readable, _at
from .dat_program import DATProgram, Layer, Match, Operand
from .dat_values import FIRST_NUMBER

_CELLS_AT_ONCE = 1 << 24  # pairs of cells that are compared in one piece, so that memory does not follow the batch


class LayerPlan:
    """A layer's matches sorted by what they need to know.

    Args:
        position: the index of the position register, whose value says which cell it stands in.

    Attributes:
        updated: tests of the cell that is updated alone.
        read: tests of the cell that is read alone.
        pairs: tests of both.
        possible: False where a test of two constants fails, so that no cell ever fires.
        located: the match that names the cell to be read by its position; it is in none of the others.
    """

    def __init__(self, matches: Sequence[Match], position: int):
        self.updated: list[tuple[Operand, Operand]] = []
        self.read: list[tuple[Operand, Operand]] = []
        self.pairs: list[Match] = []
        self.located: Operand | None = None
        self.possible = True
        at_position = Operand(register=position)
        for match in matches:
            if match.key.register is None and match.query.register is None:
                self.possible = self.possible and _constants_match(match)
            elif match.key.register is None:
                self.updated.append((match.query, match.key))
            elif match.query.register is None:
                self.read.append((match.key, match.query))
            elif match.key == at_position and not match.query.negated and self.located is None:
                self.located = match.query
            else:
                self.pairs.append(match)
        self.itself = self.located == at_position  # the cell reads itself


class GatherBackend:
    """See `dat_machine.Backend`; a register is int32, [batch, cells]."""

    def __init__(self, program: DATProgram, tables: Mapping[str, Tensor], end: int | None):
        self.program, self.tables, self.end = program, tables, end
        self._plans: dict[int, LayerPlan] = {}  # by the identity of a program's matches, which live as long

    @cached_property
    def position(self) -> int:
        return self.program.parts["position"]

    def begin(self, symbols: Tensor, cells: Cells, ends: Tensor) -> Registers:
        nothing = torch.zeros_like(symbols, dtype=torch.int32)
        registers = [nothing] * len(self.program.registers)
        for index, value in self.program.initial.items():
            registers[index] = torch.full_like(nothing, value) * cells.exists
        if self.end is not None:
            eop = self.program.parts["eop"]
            registers[eop] = registers[eop].masked_fill(ends, self.end)
        return self._place(registers, symbols, cells)

    def carry(self, last: Registers, symbols: Tensor, cells: Cells) -> Registers:
        return self._place(list(last), symbols, cells)

    def _place(self, registers: list[Tensor], symbols: Tensor, cells: Cells) -> Registers:
        registers[self.position] = ((cells.positions + FIRST_NUMBER) * cells.exists).int()
        registers[self.program.parts["symbol"]] = (symbols * cells.exists).int()
        return tuple(registers)

    def changed(self, before: Tensor, after: Tensor) -> Tensor:
        return before != after

    def step(self, layer: Layer, registers: Registers, cells: Cells, readable: Readable) -> Registers:
        plan = self._plan(layer.matches)
        fires, columns = self._select(plan, registers, cells, readable, layer.right_match, layer.causal)
        if columns is None and not plan.itself:
            return registers
        made = list(registers)
        for target, source in layer.writes:
            if source.register is None:
                value = torch.full_like(registers[target], source.values[0])
            elif columns is None:
                value = registers[source.register]
            else:
                value = _at(readable.register(source.register), columns)
            made[target] = torch.where(fires, value, registers[target])
        return tuple(made)

    def holds(self, matches: tuple[Match, ...], registers: Registers, cells: Cells, readable: Readable) -> Tensor:
        fires, _ = self._select(self._plan(matches), registers, cells, readable, False, False)
        return fires.any(1)

    def _plan(self, matches: tuple[Match, ...]) -> LayerPlan:
        if id(matches) not in self._plans:
            self._plans[id(matches)] = LayerPlan(matches, self.position)
        return self._plans[id(matches)]

    # ---------------------------------------------------------------------------------------------- which cell is read

    def _select(
        self, plan: LayerPlan, registers: Registers, cells: Cells, readable: Readable, right: bool, causal: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Which cells fire, [batch, N], and the column that each reads; None where it reads itself, or none fires."""
        fires = cells.exists if plan.possible else torch.zeros_like(cells.exists)
        for operand, constants in plan.updated:
            fires = fires & self._among(self._value(operand, registers.__getitem__), constants, operand)
        if plan.itself:
            for operand, constants in plan.read:
                fires = fires & self._among(self._value(operand, registers.__getitem__), constants, operand)
            for match in plan.pairs:
                query, key = (self._value(side, registers.__getitem__) for side in (match.query, match.key))
                fires = fires & _compare(query, key, match)
            return fires, None
        if not bool(fires.any()):
            return fires, None
        if plan.located is not None:
            return self._by_position(plan, fires, registers, readable, causal)
        if plan.pairs:
            return self._by_pairs(plan, fires, registers, readable, right, causal)
        return self._by_read_cell(plan, fires, readable, right, causal)

    def _by_position(
        self, plan: LayerPlan, fires: Tensor, registers: Registers, readable: Readable, causal: bool
    ) -> tuple[Tensor, Tensor]:
        """The cell to be read is named by its position: nothing has to be looked for."""
        assert plan.located is not None
        wanted = self._value(plan.located, registers.__getitem__).long() - FIRST_NUMBER
        if readable.own == readable.exists.shape[1]:  # a prompt's cells stand in the order of their positions
            columns = (wanted - 1).clamp(0, readable.own - 1)
        else:
            columns = (readable.positions[:, None] == wanted[..., None]).int().argmax(-1)
        found = _at(readable.exists, columns) & (_at(readable.positions, columns) == wanted) & (wanted > 0)
        fires = fires & found
        for operand, constants in plan.read:
            value = self._value(operand, lambda index: _at(readable.register(index), columns))
            fires = fires & self._among(value, constants, operand)
        for match in plan.pairs:
            key = self._value(match.key, lambda index: _at(readable.register(index), columns))
            fires = fires & _compare(self._value(match.query, registers.__getitem__), key, match)
        if causal:
            fires = fires & (columns <= _own_columns(readable))
        return fires, columns

    def _by_read_cell(
        self, plan: LayerPlan, fires: Tensor, readable: Readable, right: bool, causal: bool
    ) -> tuple[Tensor, Tensor]:
        """No test compares the two cells: all that fire read the first (or last) cell that passes its own tests."""
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
        self, plan: LayerPlan, fires: Tensor, registers: Registers, readable: Readable, right: bool, causal: bool
    ) -> tuple[Tensor, Tensor]:
        """Every cell that fires is compared with every cell that may be read."""
        passes = self._passes(plan, readable)
        queries = [self._value(match.query, registers.__getitem__) for match in plan.pairs]
        keys = [self._value(match.key, readable.register) for match in plan.pairs]
        own = _own_columns(readable)
        pieces = []
        rows = max(1, _CELLS_AT_ONCE // max(1, fires.shape[1] * passes.shape[1]))
        for start in range(0, len(fires), rows):
            piece = slice(start, start + rows)
            matches = fires[piece, :, None] & passes[piece, None]
            for match, query, key in zip(plan.pairs, queries, keys, strict=True):
                matches &= _compare(query[piece, :, None], key[piece, None], match)
            if causal:
                matches &= torch.arange(passes.shape[1], device=own.device) <= own[:, None]
            pieces.append(_first(matches, right))
        columns = torch.cat(pieces)
        return fires & (columns >= 0), columns

    def _passes(self, plan: LayerPlan, readable: Readable) -> Tensor:
        passes = readable.exists
        for operand, constants in plan.read:
            passes = passes & self._among(self._value(operand, readable.register), constants, operand)
        return passes

    # ---------------------------------------------------------------------------------------------------- comparisons

    def _value(self, operand: Operand, register: object) -> Tensor:
        assert operand.register is not None
        assert callable(register)
        values = register(operand.register)
        return self.tables[operand.function][values.long()].int() if operand.function else values

    @staticmethod
    def _among(values: Tensor, constants: Operand, operand: Operand) -> Tensor:
        if len(constants.values) == 1:
            among = values == constants.values[0]
        else:
            among = torch.isin(values, torch.tensor(constants.values, dtype=values.dtype, device=values.device))
        if operand.negated:
            return ~among
        if constants.negated:  # what is undefined matches nothing, and nothing's negation either
            return ~among & (values >= 0) if operand.function else ~among
        return among


def _compare(query: Tensor, key: Tensor, match: Match) -> Tensor:
    """Equality, or its negation, (72e). An undefined value is negative; without a negation it matches nothing."""
    if match.query.negated or match.key.negated:
        plain, values = (match.key, key) if match.query.negated else (match.query, query)
        return (query != key) & (values >= 0) if plain.function else query != key
    return (query == key) & (query >= 0) if match.query.function and match.key.function else query == key


def _constants_match(match: Match) -> bool:
    """Whether two sides that are constants match."""
    among = bool(set(match.query.values) & set(match.key.values))
    return among != (match.query.negated or match.key.negated)


def _first(matches: Tensor, right: bool) -> Tensor:
    """The first (or last) column [batch, N] that holds in [batch, N, n]; -1 where none does."""
    if not right:
        found, column = matches.max(-1)
    else:
        found, column = matches.flip(-1).max(-1)
        column = matches.shape[-1] - 1 - column
    return torch.where(found, column, -1)


def _own_columns(readable: Readable) -> Tensor:
    """Which columns the cells being updated are, [N]."""
    size = readable.exists.shape[1]
    return torch.arange(size - readable.own, size, device=readable.exists.device)
