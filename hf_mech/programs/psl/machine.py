"""What all machines share: prompts, cells, runs, and their steps as text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import ne
from typing import Any, NamedTuple, Protocol

from hf_mech.programs.errors import ProgramsError, endless_repeat, too_many_words
from hf_mech.programs.psl.values import DEFAULT_LIMIT, END_OF_PROMPT, PARSING, Table

# ----------------------------------------------------------------------------------------------------------------------
# The cells that can be read at one place of a run, found by the values that are compared with those of the reader.


State = Mapping[str, str | None]
"""A cell's state structure (33b): register -> value, None for nil."""


class Sought(NamedTuple):
    """What a cell N compares with a cell n, or n's side of it: values to be equal, and values to differ one by one."""

    equal: tuple[Any, ...]
    different: tuple[Any, ...] = ()


class Readable:
    """Cells in their order, of which a reader finds the least, or the greatest, without looking at all.

    Of cells with the same values only one can be read. So a reader with one value that must differ looks at two cells
    at most; with more such values it looks at one cell for each combination of them.

    Args:
        rightmost: find the greatest n.
    """

    def __init__(self, rightmost: bool) -> None:
        self.rightmost = rightmost
        self.groups = 0  # the groups of cells whose cells are here
        self._found: dict[tuple[Any, ...], dict[tuple[Any, ...], State]] = {}

    def add(self, cell: State, key: Sought) -> None:
        """Adds the next cell."""
        same = self._found.setdefault(key.equal, {})
        if self.rightmost:
            same.pop(key.different, None)
        same.setdefault(key.different, cell)

    def find(self, query: Sought) -> State | None:
        """The state of the cell to be read."""
        same = self._found.get(query.equal, {})
        candidates = reversed(same.items()) if self.rightmost else same.items()
        matching = (cell for different, cell in candidates if all(map(ne, different, query.different)))
        return next(matching, None)


# ----------------------------------------------------------------------------------------------------------------------
# The common part of the symbolic machines: cells, layers, repeat blocks and generation (33)-(34), (62)-(63).
#
# A machine is a subclass. It says what each updated cell N seeks, which cells n it may find by that, and updates N.
#
# Cells are updated in groups: all prompt cells at once, then one new cell after another. A group reads the states of
# earlier groups at the input of the same layer. In a repeat block it reads the same repetition, or the last repetition
# of a group that left the block earlier; in nested blocks this holds level by level.


Cells = list[State]

Registers = Mapping[str, Sequence[str | None]]
"""The first values of registers, one for every word of a prompt."""

UNDEFINED: Any = object()
"""The result of a function without an image for a value: it equals nothing, not even nil."""


class Path(NamedTuple):
    """A layer of an unrolled run: `production` counts from 1 in the program's order, 0 is the input;
    `repetitions` has the repetition, from 1, of each enclosing repeat block, the outermost first."""

    production: int
    repetitions: tuple[int, ...] = ()


class Step(NamedTuple):
    """The states of the updated cells after a layer; with production 0, before the first layer."""

    path: Path
    cells: tuple[State, ...]


@dataclass(frozen=True)
class Run:
    """The result of a machine's run.

    Args:
        completion: the emitted words, without the stop word.
        trace: the steps of the prompt cells, then those of every new cell. The last word has no cell if
            `max_new_tokens` or a stop word ended the generation.
    """

    completion: list[str]
    trace: list[list[Step]]

    @property
    def final(self) -> list[State]:
        """Every cell's state after the last layer."""
        return [cell for steps in self.trace for cell in steps[-1].cells]


class Rule(Protocol):
    """A production in a machine's own form: its tests and assignments, and which of several matching cells is read."""

    @property
    def reads_itself(self) -> bool:
        """n is N, and a test of N is all there is."""

    @property
    def right_match(self) -> bool:
        """The greatest n instead of the least (61e)."""

    @property
    def causal_attn(self) -> bool:
        """Only n <= N (61d), (62c.v)."""


@dataclass(frozen=True)
class Layer:
    """A production, with its number."""

    production: int
    rule: Any

    @property
    def rules(self) -> tuple[Any, ...]:
        """That of the production: a layer of one head."""
        return (self.rule,)


@dataclass(frozen=True)
class Heads:
    """A layer of several productions, (90a). All of them read the layer's input; no two assign the same register of a
    cell. A path counts the layer once, as `production`."""

    production: int
    rules: tuple[Any, ...]


@dataclass(frozen=True)
class Loop:
    """A repeat block; `until` is a rule without assignments, or None for NO_CHANGE."""

    body: tuple[Layer | Heads | Loop, ...]
    until: Any
    bound: int
    line: int = 0


Block = tuple[Layer | Heads | Loop, ...]


class Machine(ABC):
    """A symbolic machine with a program.

    Args:
        registers: names of the state variables.
        system: the register of each role: `symbol`, `position`, `output`, and `parse` and `eop` if given.
        initial: the values of registers in every prompt cell at the first layer.
        prompt: the registers that a prompt may set in its cells.
        values: the only values of some registers.
        stop: output symbols that end the generation.
        block: the program.
    """

    def __init__(
        self,
        registers: Sequence[str],
        system: Mapping[str, str],
        initial: Mapping[str, str],
        prompt: Sequence[str],
        values: Mapping[str, Sequence[str]],
        stop: Sequence[str],
        block: Block,
    ) -> None:
        self.registers = tuple(registers)
        self.system = system
        self.initial = initial
        self.prompt = tuple(prompt)
        self.values = values
        self.stop = frozenset(stop)
        self.block = block

    @abstractmethod
    def tables(self, limit: int) -> Mapping[str, Table]:
        """The functions as tables, for positions up to `limit`."""

    @abstractmethod
    def query(self, rule: Any, of_N: State, functions: Mapping[str, Table]) -> Sought | None:
        """What a cell N seeks; None if no cell n can match."""

    @abstractmethod
    def key(self, rule: Any, of_n: State, functions: Mapping[str, Table]) -> Sought | None:
        """By what a cell n is found; None if it cannot match."""

    @abstractmethod
    def update(self, rule: Any, of_N: State, of_n: State, functions: Mapping[str, Table]) -> State:
        """The next state of a cell N matched with n, from both cells' states."""

    def run(
        self,
        words: str | Sequence[str],
        *,
        registers: Registers | None = None,
        max_new_tokens: int = 64,
        max_position_embeddings: int = DEFAULT_LIMIT,
    ) -> Run:
        """Reads a prompt and writes its completion.

        Args:
            words: the prompt's words, or a string that is split at white space.
            registers: first values of registers that the program lets a prompt set, one for every word; None leaves a
                cell's register as the program begins it.
            max_new_tokens: the maximum number of words, if neither a stop word nor nil ends the generation.
            max_position_embeddings: the greatest position, T.

        Raises:
            ProgramsError: there is no word, an element is not a word, or registers are set that cannot be; more than T
                cells are needed; a repeat block does not end within its bound.
        """
        prompt = words_of(words)
        execution = _Execution(self, max_position_embeddings)
        last = execution.run_group(self._prompt_cells(prompt, registers))[-1]
        completion: list[str] = []
        while len(completion) < max_new_tokens:
            word = last[self.system["output"]]
            if word is None or word in self.stop:
                break
            completion.append(word)
            if len(completion) < max_new_tokens:
                # (34a): the whole state except the position is carried forward; the symbol is the emitted word.
                position = str(len(prompt) + len(completion))
                new = {**last, self.system["position"]: position, self.system["symbol"]: word}
                (last,) = execution.run_group([new])
        return Run(completion, execution.trace)

    def _prompt_cells(self, words: list[str], registers: Registers | None) -> Cells:
        """The states at layer 1 (33c-ii), with the registers that the prompt sets (82)."""
        check_registers(registers or {}, len(words), self.prompt, self.values)
        start: dict[str, str | None] = dict.fromkeys(self.registers)
        if "parse" in self.system:
            start[self.system["parse"]] = PARSING
        start |= self.initial
        symbol, position = self.system["symbol"], self.system["position"]
        cells = [{**start, symbol: word, position: str(p)} for p, word in enumerate(words, start=1)]
        if "eop" in self.system:
            cells[-1][self.system["eop"]] = END_OF_PROMPT
        for register, own in (registers or {}).items():
            for cell, value in zip(cells, own, strict=True):
                cell[register] = cell[register] if value is None else value
        return list(cells)


@dataclass(frozen=True)
class _History:
    """The history of a group of cells in a block: the input of each layer, the repetitions of each repeat block, and
    the output."""

    entries: list[Any]  # of each statement, Cells or list[_History]; at the end Cells

    def at(self, place: _Place) -> Cells:
        """The group's cells at a place; of a repetition that it did not need those of its last one."""
        *blocks, index = place
        history = self
        for block, repetition in blocks:
            rounds = history.entries[block]
            history = rounds[min(repetition, len(rounds)) - 1]
        return history.entries[index]


_Place = tuple[Any, ...]
"""A statement of the program in a run: the indices of the enclosing repeat blocks, each with its repetition from 1, and
its own index; the end of a body comes after its last statement."""


class _Execution:
    """One run: the groups of cells so far, and the trace."""

    def __init__(self, machine: Machine, limit: int) -> None:
        self.machine = machine
        self.limit = limit
        self.functions = machine.tables(limit)
        self.groups: list[_History] = []
        self.readable: dict[tuple[_Place, int], Readable] = {}
        self.length = 0
        self.trace: list[list[Step]] = []

    def run_group(self, cells: Cells) -> Cells:
        """Runs new cells through all layers."""
        self.length += len(cells)
        if self.length > self.limit:
            raise too_many_words(self.length, self.limit)
        self.trace.append([Step(Path(0), tuple(cells))])
        self.groups.append(_History([]))
        return self._block(self.machine.block, cells, self.groups[-1], ())

    def _block(self, block: Block, cells: Cells, history: _History, blocks: _Place) -> Cells:
        """Runs a body and writes its history."""
        for index, statement in enumerate(block):
            if not isinstance(statement, Loop):
                history.entries.append(cells)
                cells = self._layer(statement.rules, cells, (*blocks, index))
                path = Path(statement.production, tuple(repetition for _, repetition in blocks))
                self.trace[-1].append(Step(path, tuple(cells)))
            else:
                history.entries.append([])
                cells = self._loop(statement, cells, history.entries[-1], (*blocks, index))
        history.entries.append(cells)
        return cells

    def _loop(self, loop: Loop, cells: Cells, rounds: list[_History], place: _Place) -> Cells:
        *blocks, index = place
        for repetition in range(1, loop.bound + 1):
            inner = (*blocks, (index, repetition))
            rounds.append(_History([]))
            before, cells = cells, self._block(loop.body, cells, rounds[-1], inner)
            if loop.until is None:
                ended = cells == before
            else:
                ended = any(n is not None for n in self._matches(loop.until, cells, (*inner, len(loop.body))))
            if ended:
                return cells
        raise endless_repeat(loop.line, loop.bound)

    def _layer(self, rules: Sequence[Any], cells: Cells, place: _Place) -> Cells:
        made = cells
        for head, rule in enumerate(rules):
            matches = self._matches(rule, cells, place, head)
            made = [
                of_N if of_n is None else self.machine.update(rule, of_N, of_n, self.functions)
                for of_N, of_n in zip(made, matches, strict=True)
            ]
        return made

    def _matches(self, rule: Rule, cells: Cells, place: _Place, head: int = 0) -> list[State | None]:  # [len(cells)]
        """For each updated cell N the state of the cell n that it reads: the least or greatest n that matches, with
        causal attention of those with n <= N."""
        queries = [self.machine.query(rule, cell, self.functions) for cell in cells]
        if rule.reads_itself:
            return [None if query is None else cell for cell, query in zip(cells, queries, strict=True)]
        if not any(queries):
            return [None] * len(cells)
        readable = self.readable.get((place, head)) or Readable(rule.right_match)
        if len(self.groups) > 1:  # a prompt's repetitions are rarely those of later cells: these begin their own
            self.readable[place, head] = readable
        for history in self.groups[readable.groups : -1]:
            self._add(rule, readable, history.at(place))
        readable.groups = len(self.groups)
        if not rule.causal_attn:
            self._add(rule, readable, cells)
        matches = []
        for cell, query in zip(cells, queries, strict=True):
            if rule.causal_attn:
                self._add(rule, readable, [cell])
            matches.append(None if query is None else readable.find(query))
        return matches

    def _add(self, rule: Rule, readable: Readable, cells: Cells) -> None:
        for cell in cells:
            key = self.machine.key(rule, cell, self.functions)
            if key is not None:
                readable.add(cell, key)


def words_of(words: Any) -> list[str]:
    """The prompt as a list of words.

    Raises:
        ProgramsError: there is none, or an element is not a word.
    """
    if not isinstance(words, Sequence):  # a string is a sequence, too
        raise ProgramsError(f"a prompt is a string or a list of words; got {words!r}")
    split = words.split() if isinstance(words, str) else list(words)
    if not split:
        raise ProgramsError("the prompt has no word; give at least one")
    for place, word in enumerate(split, start=1):
        if not isinstance(word, str) or not word:
            raise ProgramsError(
                f"word {place} of the prompt must be a string with at least one character; got {word!r}"
            )
    return split


def check_registers(
    registers: Registers, length: int, prompt: Sequence[str], values: Mapping[str, Sequence[str]]
) -> None:
    """Refuses first values that a prompt cannot set.

    Args:
        registers: the values, by register.
        length: the number of the prompt's words.
        prompt: the registers that a prompt may set.
        values: the only values of some registers.

    Raises:
        ProgramsError: another register, more or fewer values than words, or a value that the register cannot hold.
    """
    for register, own in registers.items():
        if register not in prompt:
            names = ", ".join(prompt) or "none"
            raise ProgramsError(
                f"a prompt of this program may set the registers {names}, got {register!r}; name it in `prompt: [...]`"
            )
        if isinstance(own, str) or len(own) != length:
            raise ProgramsError(
                f"{register!r} needs a list with a value or None for each of {length} words, got {own!r}"
            )
        for value in own:
            if value == "":
                raise ProgramsError(f"a value of {register!r} is a string with at least one character, or None; got ''")
            if value is not None and value not in values.get(register, (value,)):
                raise ProgramsError(f"{register!r} may hold {', '.join(values[register])}, got {value!r}")
