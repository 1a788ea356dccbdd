"""Turing machines, Sec. 8: compiled into a program (73)-(81), or read from the prompt of the universal one (82)-(84).

The tape is the prompt, a symbol a cell. The registers `head` (74b) and `state` (74c) begin as the prompt says. All
instructions share the productions that move the head (76)-(79), so that one repetition of the block is one step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.library import load_program, program_text
from hf_mech.programs.psl.machine import Registers, Run
from hf_mech.programs.psl.machines import PSM
from hf_mech.programs.psl.syntax import Program

MOST_STEPS = 10_000
"""The default bound of a machine's steps, and that of `universal.psl`."""

_INSTRUCTION = "instruction"
"""The word of the universal machine's cells that hold an instruction."""


class Instruction(NamedTuple):
    """(73b): what a state does at a symbol."""

    state: str
    symbol: str
    move: Literal["L", "R"]


@dataclass(frozen=True)
class TuringMachine:
    """A table (73), its first state, and the symbol of an empty cell.

    Args:
        table: (state, symbol) -> what to do; the machine halts where there is no entry.
        start: the first state.
        blank: the symbol of an empty cell.

    Raises:
        ProgramsError: an empty table, a name with white space or of no character, a move other than L and R.

    Example:

    ```python
    >>> from hf_mech.programs.psl.turing import TuringMachine, run_turing

    >>> increment = TuringMachine.parse('''
    ... start: right
    ... right 0 -> right 0 R
    ... right 1 -> right 1 R
    ... right _ -> carry _ L
    ... carry 1 -> carry 0 L
    ... carry 0 -> done 1 L
    ... carry _ -> done 1 L
    ... ''')
    >>> ended = run_turing(increment, "1 0 1 1")
    >>> ended.written, ended.state, ended.steps
    (['1', '1', '0', '0'], 'done', 8)

    ```
    """

    table: Mapping[tuple[str, str], Instruction]
    start: str
    blank: str = "_"

    def __post_init__(self) -> None:
        entries = {key: Instruction(*entry) for key, entry in self.table.items()}
        object.__setattr__(self, "table", entries)
        if not entries:
            raise ProgramsError("a Turing machine needs an instruction: `state symbol -> state symbol L`")
        names = {self.start, self.blank, *(name for key in entries for name in key)}
        names |= {name for entry in entries.values() for name in entry[:2]}
        for name in sorted(names):
            if not name or name.split() != [name]:
                raise ProgramsError(f"a state or symbol is text without white space, got {name!r}")
        for key, entry in entries.items():
            if entry.move not in ("L", "R"):
                raise ProgramsError(f"the move of {key} must be L or R, got {entry.move!r}")

    @classmethod
    def parse(cls, text: str) -> TuringMachine:
        """Reads a table: lines `state symbol -> state symbol L` (or R), `start: state`, `blank: symbol`. Lines that
        begin with `#` are comments. By default the machine starts in the first line's state, and `_` is blank.

        Raises:
            ProgramsError: names the line, what it has and what a line looks like.
        """
        table: dict[tuple[str, str], Instruction] = {}
        options: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            words = [] if line.lstrip().startswith("#") else line.split()
            match words:
                case []:
                    continue
                case [("start:" | "blank:") as option, value] if option not in options:
                    options[option] = value
                case [state, symbol, "->", following, written, ("L" | "R") as move]:
                    if (state, symbol) in table:
                        raise ProgramsError(f"line {number}: there is an instruction for {state} {symbol} already")
                    table[state, symbol] = Instruction(following, written, move)
                case _:
                    raise ProgramsError(
                        f"line {number}: expected `state symbol -> state symbol L` (or R), or once `start: state` or "
                        f"`blank: symbol`, got {line.strip()!r}"
                    )
        first = next(iter(table), ("", ""))[0]
        return cls(table, options.get("start:", first), options.get("blank:", "_"))

    @classmethod
    def read(cls, file: str | Path) -> TuringMachine:
        """The machine of a file, see `parse`. Raises ProgramsError: it cannot be read."""
        try:
            return cls.parse(Path(file).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ProgramsError(f"cannot read the table {str(file)!r} ({error})") from error

    @property
    def symbols(self) -> set[str]:
        """All symbols of the table, and the blank."""
        return {self.blank, *(key[1] for key in self.table), *(entry.symbol for entry in self.table.values())}

    def to_psl(self, max_steps: int = MOST_STEPS) -> str:
        """The program (75)-(79): a prompt is a tape, and sets `head` to 1 where the head begins.

        Args:
            max_steps: the bound of its repeat block.
        """
        quoted = {name: json.dumps(name, ensure_ascii=False) for key in self.table for name in key}
        quoted |= {name: json.dumps(name, ensure_ascii=False) for entry in self.table.values() for name in entry[:2]}
        rules = "".join(
            f"    // P1 (75): {state} {symbol} -> {' '.join(entry)}\n"
            f"    where head[N] == 1 and state[N] == {quoted[state]} and symbol[N] == {quoted[symbol]}:\n"
            f"        head[N] = {entry.move}\n"
            f"        state[N] = {quoted[entry.state]}\n"
            f"        symbol[N] = {quoted[entry.symbol]}\n"
            for (state, symbol), entry in self.table.items()
        )
        moves = program_text("universal").partition("    // P2 (76)")
        return (
            f"{_HEAD}initial: {{head: '0', state: {json.dumps(self.start, ensure_ascii=False)}}}\n\n"
            f"repeat {max_steps + 1}:\n{rules}{moves[1]}{moves[2]}"
        )

    def to_program(self, max_steps: int = MOST_STEPS) -> Program:
        """The same, parsed and checked."""
        return load_program(self.to_psl(max_steps), "turing machine")


_HEAD = """registers: {symbol: 's', position: 'p', head: 'c', state: 'q'}
constants: {L, R}
system: {symbol: symbol, position: position, output: symbol}
watch: [symbol, head, state]
prompt: [head]
"""


@dataclass(frozen=True)
class Tape:
    """The end of a run.

    Attributes:
        symbols: of all cells of the tape, with the blanks that were given on both sides.
        head: the cell of `symbols` where the head stands.
        state: the last state.
        steps: how many instructions were carried out.
        blank: the symbol of an empty cell.
        run: the run, with the states of all cells after all layers.
    """

    symbols: list[str]
    head: int
    state: str
    steps: int
    blank: str
    run: Run = field(repr=False)

    def history(self) -> Iterator[str]:
        """The tape before the first step and after each: a line a step, the state, and the head in brackets."""
        before = len(self.run.final) - len(self.symbols)
        shown = 0
        for step in self.run.trace[0]:
            ends = step.path.production == 0 or step.path.production == self._last_production
            cells = step.cells[before:]
            if ends and shown <= self.steps:
                shown += 1
                marked = (f"[{cell['symbol']}]" if cell["head"] == "1" else f" {cell['symbol']} " for cell in cells)
                yield f"{next(c['state'] for c in cells)}: {''.join(marked)}"

    @property
    def _last_production(self) -> int:
        return max(step.path.production for step in self.run.trace[0])

    @property
    def written(self) -> list[str]:
        """The symbols without the blanks at both ends."""
        filled = [place for place, symbol in enumerate(self.symbols) if symbol != self.blank]
        return self.symbols[filled[0] : filled[-1] + 1] if filled else []


class Runner(Protocol):
    """`PSM`, `QKVM` or `DAT` with a program."""

    def run(self, words: Sequence[str], *, registers: Registers, max_new_tokens: int) -> Run:
        """See `Machine.run`."""


def run_turing(
    machine: TuringMachine,
    tape: str | Sequence[str],
    *,
    head: int = 0,
    left: int = 16,
    right: int = 16,
    max_steps: int = MOST_STEPS,
    universal: bool = False,
    runner: Callable[[Program], Any] = PSM,
) -> Tape:
    """Runs a machine on a tape until it halts.

    Args:
        machine: the machine.
        tape: the symbols, or a string that is split at white space.
        head: the cell of `tape` where the head begins.
        left, right: blanks before and behind the tape, by which it can grow.
        max_steps: of the compiled program; the universal one has 10,000.
        universal: the machine stands in the prompt of `universal.psl`, not in the program.
        runner: makes the machine that runs the program: `PSM`, or for example
            `lambda program: DAT(*compile_program(program))`.

    Raises:
        ProgramsError: no tape, a head beside it, a word that is the universal machine's own, or a head that leaves the
            tape with its blanks; more steps than that.
    """
    given = tape.split() if isinstance(tape, str) else list(tape)
    if not given or not 0 <= head < len(given):
        raise ProgramsError(f"the head begins on the tape, at 0 to {len(given) - 1}, got {head}; a tape has a symbol")
    if left < 0 or right < 0:
        raise ProgramsError(f"left and right are numbers of blanks, 0 or more, got {left} and {right}")
    cells = [*[machine.blank] * left, *given, *[machine.blank] * right]
    begins = ["1" if place == left + head else None for place in range(len(cells))]
    if universal:
        if _INSTRUCTION in {*cells, *machine.symbols}:
            raise ProgramsError(
                f"the universal machine's cells of instructions hold {_INSTRUCTION!r}; take another symbol"
            )
        before, registers = len(machine.table), _in_prompt(machine, begins)
        program = load_program(program_text("universal"), "universal")
    else:
        before, registers, program = 0, {"head": begins}, machine.to_program(max_steps)
    run = runner(program).run([*[_INSTRUCTION] * before, *cells], registers=registers, max_new_tokens=0)
    return _read(machine, run, before)


def _in_prompt(machine: TuringMachine, begins: Sequence[str | None]) -> dict[str, list[str | None]]:
    """(82): the registers of the instructions' cells, and of the tape's."""
    entries = [(*key, *entry) for key, entry in machine.table.items()]
    names = ("from_state", "from_symbol", "to_state", "to_symbol", "move")
    columns: list[list[str | None]] = [[entry[place] for entry in entries] for place in range(len(names))]
    registers = {name: [*own, *[None] * len(begins)] for name, own in zip(names, columns, strict=True)}
    head: list[str | None] = [*[None] * len(entries), *begins]
    return registers | {"head": head, "state": [machine.start] * len(head)}


def _read(machine: TuringMachine, run: Run, before: int) -> Tape:
    """The tape after the last layer.

    Raises:
        ProgramsError: the head is no longer on it.
    """
    cells = run.final[before:]
    heads = [place for place, cell in enumerate(cells) if cell["head"] == "1"]
    steps = max((step.path.repetitions[0] for step in run.trace[0] if step.path.repetitions), default=1) - 1
    if not heads:
        raise ProgramsError(
            f"the head left the tape after {steps} steps: it has {len(cells)} cells; give more blanks, left and right"
        )
    symbols = [str(cell["symbol"]) for cell in cells]
    return Tape(symbols, heads[0], str(cells[heads[0]]["state"]), steps, machine.blank, run)
