"""A program to run, from a PSL file, the package, or a checkpoint; and its run as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.check import did_you_mean
from hf_mech.programs.psl.compile import lower_program
from hf_mech.programs.psl.library import (
    load_program,
    program_heading,
    program_names,
    program_text,
    read_program,
    restore,
)
from hf_mech.programs.psl.machine import Path as RunPath
from hf_mech.programs.psl.machine import Run, State, Step
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.qkvl import QKVLProgram
from hf_mech.programs.psl.syntax import Program
from hf_mech.programs.psl.values import DEFAULT_LIMIT

if TYPE_CHECKING:
    from hf_mech.models.dat.modeling_dat import DATForCausalLM
    from hf_mech.models.dat.tokenization_dat import DATTokenizer


MachineName = Literal["psm", "qkvm", "dat"]


class OpenedProgram:
    """A program and its three machines, each made at its first use.

    Args:
        source: a checkpoint's folder, a file of PSL, or the name of one of the package's programs.
        config: further arguments of `DATConfig` for a program; a checkpoint has its own.

    Raises:
        ProgramsError: there is no such program or checkpoint, or `config` is given for a checkpoint.
        PSLError: the program cannot be compiled exactly.

    Example:

    ```python
    >>> OpenedProgram("pargen").run("Q x y A y x Q z y A", machine="psm").completion
    ['y', 'z']

    ```
    """

    def __init__(self, source: str, **config: Any) -> None:
        self.source = source
        self._config = config
        self._program: Program | None = None
        packaged = source in program_names() and not (Path(source) / "config.json").is_file()
        self.from_checkpoint = not packaged and restore(Path(source).resolve())  # should a compilation have been killed
        if self.from_checkpoint:
            if config:
                raise ProgramsError(
                    f"{source} is a checkpoint and has its own {' and '.join(config)}; compile the program again to "
                    "change them"
                )
            model, _ = self.network
            self.qkvl = QKVLProgram.from_json(model.config.qkvl)
            self.limit: int = model.config.max_position_embeddings
        else:
            self.limit = config.get("max_position_embeddings", DEFAULT_LIMIT)
            self._program = read_program(source)
            self.qkvl = lower_program(self._program, self.limit)

    @property
    def program(self) -> Program:
        """The program as it was written.

        Raises:
            ProgramsError: a checkpoint does not have it, or its program differs from its weights.
        """
        if self._program is None:
            from hf_mech.programs.psl.compile import PROGRAM_FILE

            path = Path(self.source) / PROGRAM_FILE
            if not path.is_file():
                raise ProgramsError(f"{self.source} has no {PROGRAM_FILE}; only the machines qkvm and dat run it")
            program = load_program(path.read_text("utf-8"), str(path))
            if lower_program(program, self.limit).to_json() != self.qkvl.to_json():
                raise ProgramsError(f"{path} is not the program of the checkpoint's config.json; compile it again")
            self._program = program
        return self._program

    @property
    def heading(self) -> str:
        """What the program's text says of itself first, its form of prompts among it; empty if there is no text."""
        if self.source in program_names() and not self.from_checkpoint:
            return program_heading(program_text(self.source))
        path = Path(self.source) / "program.psl" if self.from_checkpoint else Path(self.source)
        return program_heading(path.read_text("utf-8")) if path.is_file() else ""

    @cached_property
    def network(self) -> tuple[DATForCausalLM, DATTokenizer]:
        """The model and its tokenizer.

        Raises:
            ProgramsError: the folder holds no DAT that can be loaded.
        """
        if self.from_checkpoint:
            return _load(self.source)
        from hf_mech.programs.psl.compile import compile_program

        return compile_program(self.qkvl, **self._config)

    def run(self, words: str, *, machine: MachineName = "dat", max_new_tokens: int = 64) -> Run:
        """Runs the program on one prompt; see `Machine.run`."""
        return self._machine(machine)(words, max_new_tokens)

    def _machine(self, name: MachineName) -> Callable[[str, int], Run]:
        if name == "dat":
            from hf_mech.programs.psl.network import DAT

            return DAT(*self.network).run
        symbolic = PSM(self.program) if name == "psm" else QKVM(self.qkvl)
        return lambda words, most: symbolic.run(words, max_new_tokens=most, max_position_embeddings=self.limit)


def _load(folder: str) -> tuple[DATForCausalLM, DATTokenizer]:
    from transformers import AutoConfig

    from hf_mech.models.dat.configuration_dat import DATConfig
    from hf_mech.models.dat.dat_program import DATError
    from hf_mech.models.dat.modeling_dat import DATForCausalLM
    from hf_mech.models.dat.tokenization_dat import DATTokenizer

    if not (Path(folder) / "config.json").is_file():
        raise ProgramsError(f"{folder} is a folder without config.json; give a checkpoint, a file of PSL, or a name")
    try:
        config = AutoConfig.from_pretrained(folder)
        if not isinstance(config, DATConfig):
            raise ProgramsError(f"{folder} holds a model of type {config.model_type!r}; expected 'dat', which runs PSL")
        return DATForCausalLM.from_pretrained(folder).eval(), DATTokenizer.from_pretrained(folder)
    except (ProgramsError, DATError):
        raise
    except Exception as error:  # transformers, safetensors and json raise different errors for a damaged file
        raise ProgramsError(f"{folder} holds no checkpoint that can be loaded: {error}") from error


# ----------------------------------------------------------------------------------------------------------------------
# A run as tables: the states of every cell after every layer, and the parse at the end.


_NIL = "·"
_CHANGED, _KEPT, _FAINT = "bold reverse green", "", "dim"


@dataclass(frozen=True)
class TraceTables:
    """Makes the tables of one run.

    Args:
        run: the run.
        qkvl: its program.
        registers: names of the shown registers, in order.
        width: the number of characters in a line; longer rows of cells continue in another table.
        marks: whether to put a `*` before a changed value, for output without colours.
    """

    run: Run
    qkvl: QKVLProgram
    registers: Sequence[str]
    width: int = 120
    marks: bool = False

    def prompt_layers(self, layers: Sequence[int] = (), every: bool = False) -> Iterator[RenderableType]:
        """A table of the prompt's cells for each layer that changed a shown register.

        Layers that changed only other registers have a line of text.

        Args:
            layers: the requested productions, from 1; empty for all.
            every: whether to show tables of layers that changed nothing, too.
        """
        steps = self.run.trace[0]
        columns = self._headers(steps[0])
        widths = self._widths(columns, [step.cells for step in steps])
        yield Text("The prompt", "bold")
        for before, step in pairwise(steps):
            changed = _changed(before, step)
            if layers and step.path.production not in layers:
                continue
            if not every and not changed.keys() & set(self.registers):
                if changed:
                    yield self._line(step.path, changed)
                continue
            # Later repetitions of a block show only the changes; the column headers already show unchanged symbols.
            again = any(repetition > 1 for repetition in step.path.repetitions) and not every
            shown = [name for name in self.registers if name in changed or not (again or self._in_heads(name, step))]
            yield Text()
            yield self._title(step.path)
            rows = [
                (name, [self._value(c[name], N in changed.get(name, ())) for N, c in enumerate(step.cells)])
                for name in shown
            ]
            yield from self._grid(columns, rows, widths)

    def generated_layers(self, layers: Sequence[int] = (), every: bool = False) -> Iterator[RenderableType]:
        """A table for each generated cell: a row for each layer that changed something, a column for each register."""
        for steps in self.run.trace[1:]:
            (cell,) = steps[0].cells
            table = _table()
            table.add_column("layer", justify="right", no_wrap=True)
            for name in self.registers:
                table.add_column(Text(name), no_wrap=True)
            table.add_column("")
            table.add_row("", *(self._value(cell[name]) for name in self.registers), Text("before the first", _FAINT))
            for before, step in pairwise(steps):
                changed = _changed(before, step)
                if (layers and step.path.production not in layers) or not (changed or every):
                    continue
                (cell,) = step.cells
                hidden = [name for name in changed if name not in self.registers]
                comment = self._comment(step.path) + (f" (changed: {', '.join(hidden)})" if hidden else "")
                values = (self._value(cell[name], name in changed) for name in self.registers)
                table.add_row(str(step.path.production), *values, Text(comment))
            yield Text()
            yield Text.assemble(("Generated cell ", "bold"), " ".join(self._headers(steps[0])[0]))
            yield table

    def parse(self) -> Iterator[RenderableType]:
        """The state of every cell after the last layer: a row for each register, a column for each word."""
        columns = [header for steps in self.run.trace for header in self._headers(steps[0])]
        rows = [(name, [self._value(cell[name]) for cell in self.run.final]) for name in self.registers]
        yield Text()
        yield Text("The parse: every cell after the last layer", "bold")
        yield from self._grid(columns, rows, self._widths(columns, [self.run.final]))

    def _headers(self, first: Step) -> list[tuple[str, str]]:
        """The first position and symbol of each cell."""
        position, symbol = (self.qkvl.system_map[part] for part in ("position", "symbol"))
        return [(cell[position] or _NIL, cell[symbol] or _NIL) for cell in first.cells]

    def _in_heads(self, register: str, step: Step) -> bool:
        """Whether the column headers show the register's values."""
        parts = [part for part in ("position", "symbol") if self.qkvl.system_map[part] == register]
        now = [cell[register] for cell in step.cells]
        return bool(parts) and now == [cell[register] for cell in self.run.trace[0][0].cells]

    def _widths(self, columns: Sequence[tuple[str, str]], states: Sequence[Sequence[State]]) -> list[int]:
        """The width of each cell's column for all of these states: the tables of a trace have equal columns."""
        room = int(self.marks and len(states) > 1)
        return [
            max(
                *map(cell_len, header),
                *(cell_len(cells[N][r] or _NIL) + room for cells in states for r in self.registers),
            )
            for N, header in enumerate(columns)
        ]

    def _grid(
        self, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[str, list[Text]]], widths: Sequence[int]
    ) -> Iterator[Table]:
        """A column for each cell, in as many tables as the width requires."""
        label = max(map(cell_len, self.registers))
        start = 0
        while start < len(columns):
            end, used = start, label + 1
            while end < len(columns) and (end == start or used + widths[end] + 2 <= self.width):
                used += widths[end] + 2
                end += 1
            table = _table()
            table.add_column("", no_wrap=True, style="cyan", min_width=label)
            for (position, word), width in zip(columns[start:end], widths[start:end], strict=True):
                table.add_column(Text.assemble((position, _FAINT), "\n", word), min_width=width)
            for name, values in rows:
                table.add_row(Text(name), *values[start:end])
            yield table
            start = end

    def _value(self, value: str | None, changed: bool = False) -> Text:
        text = _NIL if value is None else value
        if changed:
            return Text(f"*{text}" if self.marks else text, _CHANGED)
        return Text(text, _FAINT if value is None else _KEPT)

    def _title(self, path: RunPath) -> Text:
        return Text.assemble((f"Layer {path.production}", "bold"), f"  {self._comment(path)}{_repetition(path)}")

    def _line(self, path: RunPath, changed: dict[str, list[int]]) -> Text:
        cells = len({N for places in changed.values() for N in places})
        what = f"changed {', '.join(changed)} in {cells} cell{'s' if cells > 1 else ''}"
        return Text(f"Layer {path.production}{_repetition(path)}: {what}", _FAINT, no_wrap=True, overflow="ellipsis")

    def _comment(self, path: RunPath) -> str:
        return list(self.qkvl.layers)[path.production - 1].layer_comment


def shown_registers(qkvl: QKVLProgram, wanted: Sequence[str]) -> list[str]:
    """Names of the registers to show, from names and short names; by default the watched ones, or all.

    Raises:
        ProgramsError: there is no such register.
    """
    names = list(qkvl.register_map)
    if not wanted:
        return list(qkvl.watch_list) or names
    by_short = {short: name for name, short in qkvl.register_map.items()}
    found = []
    for name in wanted:
        if name not in names and name not in by_short:
            known = did_you_mean(name, names, otherwise_all=False)
            raise ProgramsError(f"the program has no register {name!r}. {known}It has: {', '.join(names)}")
        found.append(name if name in names else by_short[name])
    return list(dict.fromkeys(found))


def wanted_layers(qkvl: QKVLProgram, wanted: Sequence[str]) -> list[int]:
    """Numbers of productions from 1, from numbers and beginnings of their comments, such as `P5b`.

    Raises:
        ProgramsError: there is no such layer.
    """
    comments = [layer.layer_comment for layer in qkvl.layers]
    found: list[int] = []
    for name in wanted:
        if name.isdecimal() and 0 < int(name) <= len(comments):
            found.append(int(name))
            continue
        exact = [i for i, comment in enumerate(comments, 1) if comment.partition(":")[0] == name]
        if not exact:
            raise ProgramsError(
                f"the program has no layer {name!r}: give a number from 1 to {len(comments)}, or what the comment of a "
                f"production begins with. {did_you_mean(name, [c.partition(':')[0] for c in comments if c])}".strip()
            )
        found += exact
    return found


def _changed(before: Step, after: Step) -> dict[str, list[int]]:
    """The registers that differ, and the cells."""
    changed: dict[str, list[int]] = {}
    pairs: Iterator[tuple[State, State]] = zip(before.cells, after.cells, strict=True)
    for N, (old, new) in enumerate(pairs):
        for name, value in new.items():
            if old[name] != value:
                changed.setdefault(name, []).append(N)
    return changed


def _repetition(path: RunPath) -> str:
    return f", repetition {'.'.join(map(str, path.repetitions))}" if path.repetitions else ""


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False, header_style="")
