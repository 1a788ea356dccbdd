"""Runs a program over cells: prompts in parallel, (70), then cell by cell, (71). A backend computes each layer.

Later cells read the states of earlier ones at every layer, (34), (63), (71). The states of a group of cells that were
updated together form a tree: the input of each layer, one subtree for each repetition of a repeat block, and the output
at the end. A later cell reads the same layer of the same repetition; if a group ended a block earlier, its last
repetition replaces those that it did not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from .dat_embedding import Registers
from .dat_program import Block, DATProgram, DATRepeatError, Heads, Layer, Match, Statement

# --------------------------------------------------------------------------------------------------------------- states

Tree = list[Any]  # Registers for a layer, list[Tree] for a repeat block


@dataclass
class Group:
    """Cells that were updated together.

    Args:
        tree: the inputs of every layer.
        final: the registers after the last layer.
        exists: True at columns that are cells, [batch, cells].
        positions: their positions from 1, [batch, cells].
        last: the final registers of each row's last cell so far, [batch, 1] or [batch, 1, values].
        count: the number of cells in each row so far, [batch].
    """

    tree: Tree
    final: Registers
    exists: Tensor
    positions: Tensor
    last: Registers
    count: Tensor

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.exists.shape[1]

    @property
    def tensors(self) -> Group:
        return self

    def register(self, index: int) -> Tensor:
        return self.final[index]

    def select(self, rows: Tensor) -> Group:
        return self.map(lambda tensor: tensor.index_select(0, rows.to(tensor.device)))

    def memory(self) -> dict[int, int]:
        found: dict[int, int] = {}

        def count(tensor: Tensor) -> Tensor:
            found[id(tensor)] = tensor.numel() * tensor.element_size()
            return tensor

        self.map(count)
        return found

    def map(self, function: Callable[[Tensor], Tensor]) -> Group:
        """The group with another batch dimension; tensors that layers share are still shared."""
        done: dict[int, Tensor] = {}

        def once(tensor: Tensor) -> Tensor:
            if id(tensor) not in done:
                done[id(tensor)] = function(tensor)
            return done[id(tensor)]

        def walk(node: Any) -> Any:
            return once(node) if isinstance(node, Tensor) else type(node)(walk(child) for child in node)

        return Group(
            walk(self.tree),
            walk(self.final),
            once(self.exists),
            once(self.positions),
            walk(self.last),
            once(self.count),
        )


class AnyGroup(Protocol):
    """A group, in the form of the machine that computes it: [`Group`], or `dat_rows.RowGroup`."""

    @property
    def count(self) -> Tensor:
        """The number of cells in each row so far, [batch]."""

    @property
    def width(self) -> int:
        """The number of columns."""

    @property
    def tensors(self) -> Group:
        """The same states as tensors."""

    @property
    def final(self) -> Registers:
        """The registers after the last layer."""

    def register(self, index: int) -> Tensor:
        """A register after the last layer, [batch, cells] or [batch, cells, values]."""

    def select(self, rows: Tensor) -> AnyGroup:
        """The group with these rows of the batch, in this order."""

    def memory(self) -> dict[int, int]:
        """The bytes of every object that holds states, by its id."""


G = TypeVar("G", bound=AnyGroup)


@dataclass
class History(Generic[G]):
    """All groups so far, in order: the prompt's cells, then one cell a row each."""

    groups: list[G] = field(default_factory=list)

    @property
    def width(self) -> int:
        """The number of columns of all groups."""
        return self.groups[0].width + len(self.groups) - 1

    @property
    def tensors(self) -> History[Group]:
        """The same states as tensors."""
        return History([group.tensors for group in self.groups])

    @property
    def exists(self) -> Tensor:
        """[batch, cells of all groups]."""
        return torch.cat([group.tensors.exists for group in self.groups], 1)

    @property
    def positions(self) -> Tensor:
        """[batch, cells of all groups]."""
        return torch.cat([group.tensors.positions for group in self.groups], 1)

    def trees(self) -> list[Tree]:
        return [group.tensors.tree for group in self.groups]


def enter(trees: Sequence[Tree], statement: int, repetition: int) -> list[Tree]:
    """The trees of one repetition of a block; a group that ended the block earlier replays its last repetition."""
    blocks = [tree[statement] for tree in trees]
    return [block[min(repetition, len(block) - 1)] for block in blocks]


def choose(rows: Tensor, new: Any, old: Any) -> Any:
    """Trees, registers or tensors: from `new` where `rows` [batch] is True, else from `old`."""
    if new is old:
        return new
    if isinstance(new, Tensor):
        return torch.where(rows.view(-1, *[1] * (new.dim() - 1)), new, old)
    if isinstance(new, tuple) or not new:
        return type(new)(choose(rows, a, b) for a, b in zip(new, old, strict=True))
    # A nested block may differ in its number of repetitions: the shorter one replays its last.
    longest = max(len(new), len(old))
    return [choose(rows, new[min(i, len(new) - 1)], old[min(i, len(old) - 1)]) for i in range(longest)]


# -------------------------------------------------------------------------------------------------------------- machine


@dataclass(frozen=True)
class Cells:
    """The cells that are being updated: `exists` [batch, N] and `positions` [batch, N]."""

    exists: Tensor
    positions: Tensor


@dataclass(frozen=True)
class Readable:
    """The cells that may be read: those of earlier groups and, behind them, the ones being updated.

    Args:
        exists, positions: [batch, n].
        register: gives a register of all of them, [batch, n] or [batch, n, values].
        own: the number of cells being updated; they are the last of the n.
    """

    exists: Tensor
    positions: Tensor
    register: Callable[[int], Tensor]
    own: int


class Backend(Protocol):
    """Keeps the registers in its own form and computes one layer on them."""

    def begin(self, symbols: Tensor, cells: Cells, ends: Tensor, given: Mapping[int, Tensor]) -> Registers:
        """The registers of prompt cells at the first layer, (70b): `symbols` and `ends` (of the prompt) [batch, N]; of
        some registers first values, [batch, N], `UNSET` where there is none."""

    def carry(self, last: Registers, symbols: Tensor, cells: Cells) -> Registers:
        """The registers of the next cell: those of the last cell, except position and symbol, (71a)."""

    def step(
        self, layer: Layer | Heads, registers: Registers, cells: Cells, readable: Readable
    ) -> tuple[Registers, Any]:
        """One layer: the new registers, and in a form of its own the cells that were read."""

    def weights(self, reads: Any, readable: Readable) -> Tensor:
        """The weights of the read cells of each head, [batch, heads, N, n]: one-hot rows (or soft ones), zeros where
        none was read."""

    def holds(self, matches: tuple[Match, ...], registers: Registers, cells: Cells, readable: Readable) -> Tensor:
        """Whether some cell being updated matches some readable cell, [batch]."""

    def changed(self, before: Tensor, after: Tensor) -> Tensor:
        """Where a register has another value, [batch, N]."""


class Recorder(Protocol):
    """Keeps what the layers read and put out, for one group of cells."""

    def add(self, layer: int, reads: Tensor, outputs: Registers, rows: Tensor) -> None:
        """Of a layer: the weights [batch, heads, N, n], the registers, and the rows [batch] that it updates."""


class Machine:
    """A program with the backend that runs it.

    Args:
        program: the program.
        backend: it computes the layers.
        recorder: makes a recorder for each group of cells; they are added to `records`.
    """

    def __init__(self, program: DATProgram, backend: Backend, recorder: Callable[[], Recorder] | None = None):
        self.program, self.backend, self.recorder = program, backend, recorder
        self.records: list[Any] = []

    def read_prompt(self, symbols: Tensor, exists: Tensor, given: Mapping[int, Tensor]) -> Group:
        """Processes prompts in parallel, (70).

        Args:
            symbols: values [batch, P]; every row begins with its words.
            exists: True where there is a word.
            given: first values of registers that the prompt sets, [batch, P], `UNSET` where there is none.
        """
        count = exists.sum(1)
        positions = torch.arange(1, symbols.shape[1] + 1, device=symbols.device).expand_as(symbols) * exists
        cells = Cells(exists, positions)
        registers = self.backend.begin(symbols, cells, positions == count[:, None], given)
        tree, final = self._run_all(registers, cells, History())
        last = tuple(at_columns(register, (count - 1)[:, None]) for register in final)
        return Group(tree, final, exists, positions, last, count)

    def read_word(self, symbols: Tensor, exists: Tensor, history: History) -> Group:
        """Processes one further cell a row, (71): `symbols` and `exists` are [batch, 1]."""
        before = history.groups[-1]
        count = before.count + exists[:, 0]
        cells = Cells(exists, count[:, None] * exists)
        registers = self.backend.carry(before.last, symbols, cells)
        tree, final = self._run_all(registers, cells, history)
        last = choose(exists[:, 0], final, before.last)
        return Group(tree, final, exists, cells.positions, last, count)

    def _run_all(self, registers: Registers, cells: Cells, history: History) -> tuple[Tree, Registers]:
        if self.recorder is not None:
            self.records.append(self.recorder())
        run = _Run(self.backend, cells, history, self.records[-1] if self.records else None)
        return run.statements(self.program.statements, registers, history.trees(), cells)


class _Run:
    """One pass of a group of cells through all layers."""

    def __init__(self, backend: Backend, cells: Cells, history: History, record: Recorder | None):
        self.backend, self.record = backend, record
        self.exists, self.positions = cells.exists, cells.positions
        if history.groups:
            self.exists = torch.cat([history.exists, cells.exists], 1)
            self.positions = torch.cat([history.positions, cells.positions], 1)

    def statements(
        self, statements: Sequence[Statement], registers: Registers, past: list[Tree], cells: Cells
    ) -> tuple[Tree, Registers]:
        """Runs a body; `past` holds its trees of the earlier groups. A tree ends with the body's output registers."""
        tree: Tree = []
        for i, statement in enumerate(statements):
            if not isinstance(statement, Block):
                tree.append(registers)
                readable = self._readable(registers, [body[i] for body in past], cells)
                registers, reads = self.backend.step(statement, registers, cells, readable)
                if self.record is not None:
                    weights = self.backend.weights(reads, readable)
                    self.record.add(statement.index, weights, registers, cells.exists.any(1))
            else:
                repetitions, registers = self._block(i, statement, registers, past, cells)
                tree.append(repetitions)
        return [*tree, registers], registers

    def _block(
        self, index: int, block: Block, registers: Registers, past: list[Tree], cells: Cells
    ) -> tuple[list[Tree], Registers]:
        repetitions: list[Tree] = []
        running = cells.exists.any(1)
        while True:
            repetition = len(repetitions)
            inner = Cells(cells.exists & running[:, None], cells.positions)
            bodies = enter(past, index, repetition)
            tree, after = self.statements(block.body, registers, bodies, inner)
            if repetitions and not bool(running.all()):
                tree = choose(running, tree, repetitions[-1])  # rows that have ended replay their last repetition
            repetitions.append(tree)
            running = running & ~self._ended(block, registers, after, bodies, inner)
            registers = after
            if not bool(running.any()):
                return repetitions, registers
            if len(repetitions) == block.bound:
                raise DATRepeatError(block.comment, block.bound)

    def _ended(self, block: Block, before: Registers, after: Registers, bodies: list[Tree], cells: Cells) -> Tensor:
        if block.until is None:
            moved = torch.zeros(len(cells.exists), dtype=torch.bool, device=cells.exists.device)
            for old, new in zip(before, after, strict=True):
                if old is not new:
                    moved = moved | (self.backend.changed(old, new) & cells.exists).any(1)
            return ~moved
        return self.backend.holds(
            block.until, after, cells, self._readable(after, [body[-1] for body in bodies], cells)
        )

    def _readable(self, registers: Registers, past: list[Registers], cells: Cells) -> Readable:
        def register(index: int) -> Tensor:
            own = registers[index]
            return torch.cat([*(earlier[index] for earlier in past), own], 1) if past else own

        return Readable(self.exists, self.positions, register, cells.exists.shape[1])


def at_columns(register: Tensor, columns: Tensor) -> Tensor:
    """A register at these columns [batch, N]."""
    index = columns.clamp(min=0)
    if register.dim() == 3:
        return register.gather(1, index[..., None].expand(-1, -1, register.shape[2]))
    return register.gather(1, index)
