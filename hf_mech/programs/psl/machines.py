"""The symbolic machines: PSM runs the text of a program, QKVM its QKVL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hf_mech.programs.psl.machine import UNDEFINED, Block, Heads, Layer, Loop, Machine, Sought, State
from hf_mech.programs.psl.qkvl import JSONSource, QKVLBlock, QKVLHeads, QKVLProduction, QKVLProgram, Source
from hf_mech.programs.psl.syntax import Assignment, Production, Program, Reference, Repeat, Test
from hf_mech.programs.psl.values import Table, built_in_tables, function_tables

# ----------------------------------------------------------------------------------------------------------------------
# PSM, the Production System Machine: runs PSL directly by (33)-(34), and so defines its meaning.


Tables = Mapping[str, Table]


class PSM(Machine):
    """The machine of Sec. 5.1 with a program that has passed the checker.

    >>> from hf_mech.programs.psl.syntax import Assignment, Constants, Production, Program, Reference, Test
    >>> follows = Test(Reference("p", "n"), "==", Reference("p", "N", "pos_increment"))
    >>> shift = Production((follows,), (Assignment("next", Reference("s", "n")),))
    >>> names = {"s": "s", "p": "p", "next": "x"}
    >>> machine = PSM(Program(names, {}, {"symbol": "s", "position": "p", "output": "next"}, (shift,)))
    >>> [cell["next"] for cell in machine.run("a b c").final]
    ['b', 'c', None]
    """

    def __init__(self, program: Program) -> None:
        productions = iter(range(1, len(list(program.productions)) + 1))
        block = _block(program.statements, productions)
        super().__init__(
            list(program.registers),
            program.system,
            program.initial,
            program.prompt,
            program.values,
            program.stop,
            block,
        )
        self.program = program

    def tables(self, limit: int) -> Tables:
        """The functions as tables, for positions up to `limit`."""
        return {**built_in_tables(limit), **function_tables(self.program, limit)}

    def query(self, rule: _Rule, of_N: State, functions: Tables) -> Sought | None:
        """N's values in the tests of both cells, if the tests of N alone hold (33d-iv-3)."""
        return rule.sought(rule.of_N, 1, of_N, functions)

    def key(self, rule: _Rule, of_n: State, functions: Tables) -> Sought | None:
        """n's values in the tests of both cells, if the tests of n alone hold."""
        return rule.sought(rule.of_n, 0, of_n, functions)

    def update(self, rule: _Rule, of_N: State, of_n: State, functions: Tables) -> State:
        """The Action: assigned registers take their values from n, all others stay unchanged (33d-iv-1, 4).

        An undefined function value is not assigned.
        """
        values = {item.register: _assigned(item, of_n, of_N, functions) for item in rule.production.assignments}
        return {**of_N, **{register: value for register, value in values.items() if value is not UNDEFINED}}


@dataclass(frozen=True)
class _Rule:
    """A production with its tests sorted by the cells they name.

    Args:
        of_n, of_N: tests that name one cell.
        equal, different: pairs that must be equal, or differ: a register of n, a register of N.
    """

    production: Production
    of_n: tuple[Test, ...]
    of_N: tuple[Test, ...]
    equal: tuple[tuple[Reference, Reference], ...]
    different: tuple[tuple[Reference, Reference], ...]

    @classmethod
    def of(cls, production: Production) -> _Rule:
        sorted_tests: dict[frozenset[str], list[Test]] = {}
        for test in production.tests:
            sorted_tests.setdefault(frozenset(reference.cell for reference in test.references), []).append(test)
        both = sorted_tests.get(frozenset("nN"), [])
        return cls(
            production=production,
            of_n=tuple(sorted_tests.get(frozenset("n"), [])),
            of_N=tuple(sorted_tests.get(frozenset("N"), [])),
            equal=tuple(_n_first(test) for test in both if not test.negated),
            different=tuple(_n_first(test) for test in both if test.negated),
        )

    @property
    def reads_itself(self) -> bool:
        return not self.production.reads_n

    @property
    def right_match(self) -> bool:
        return self.production.right_match

    @property
    def causal_attn(self) -> bool:
        return self.production.causal

    def sought(self, tests: tuple[Test, ...], side: int, state: State, functions: Tables) -> Sought | None:
        """One side of the tests of both cells, if these tests of one cell hold."""
        for test in tests:
            if not _holds(test, state, functions):
                return None
        return Sought(
            tuple([_read(pair[side], state, functions) for pair in self.equal]),
            tuple([_read(pair[side], state, functions) for pair in self.different]),
        )


def _block(statements: tuple[Production | Repeat, ...], productions: Iterator[int]) -> Block:
    return tuple(
        Layer(next(productions), _Rule.of(statement))
        if isinstance(statement, Production)
        else Loop(
            _block(statement.body, productions),
            None if statement.until is None else _Rule.of(Production(statement.until, ())),
            statement.bound,
            statement.place.line,
        )
        for statement in statements
    )


def _n_first(test: Test) -> tuple[Reference, Reference]:
    left, right = test.references
    return (left, right) if left.cell == "n" else (right, left)


def _holds(test: Test, state: State, functions: Tables) -> bool:
    """A test of one cell; an undefined function value equals nothing."""
    left = _read(test.left, state, functions)
    if isinstance(test.right, Reference):
        return (left == _read(test.right, state, functions)) != test.negated
    return (left in test.right.values) != test.negated


def _read(reference: Reference, state: State, functions: Tables) -> str | None:
    value = state[reference.register]
    if reference.function is None:
        return value
    return UNDEFINED if value is None else functions[reference.function].get(value, UNDEFINED)


def _assigned(assignment: Assignment, of_n: State, of_N: State, functions: Tables) -> str | None:
    if isinstance(assignment.value, str):
        return assignment.value
    return _read(assignment.value, of_n if assignment.value.cell == "n" else of_N, functions)


# ----------------------------------------------------------------------------------------------------------------------
# QKVM, the Query-Key-Value Machine: runs QKVL by symbolic attention, (62)-(63).


Values = tuple[str | None, ...]


class QKVM(Machine):
    """The machine of Sec. 6.1 with a QKVL program.

    The program contains registered functions as tables, so T is the one of the lowering.

    >>> layer = QKVLProduction(q={"p`": "p@pos_increment"}, k={"p`": "p"}, v={"x": "s"})
    >>> names = {"symbol": "s", "position": "p", "next": "x"}
    >>> system = {"symbol": "symbol", "position": "position", "output": "next"}
    >>> [cell["next"] for cell in QKVM(QKVLProgram(names, {}, system, (layer,))).run("a b c").final]
    ['b', 'c', None]
    """

    def __init__(self, program: QKVLProgram) -> None:
        names = {short: name for name, short in program.register_map.items()}
        initial = {names[short]: value for short, value in program.initial.items()}
        layers = iter(range(1, len(list(program.layers)) + 1))
        block = tuple(_statement(block, names, layers) for block in program.weights)
        super().__init__(
            list(program.register_map),
            program.system_map,
            initial,
            [names[short] for short in program.prompt],
            {names[short]: values for short, values in program.values.items()},
            program.stop,
            block,
        )
        self.program = program

    def tables(self, limit: int) -> Tables:
        """The functions as tables, for positions up to `limit`."""
        return {**built_in_tables(limit), **self.program.functions}

    def query(self, rule: _Attention, of_N: State, functions: Tables) -> Sought | None:
        """N's query, without the entries whose key is the same in all cells: these must match (62c.iii-v)."""
        return rule.queries.sought(of_N, functions)

    def key(self, rule: _Attention, of_n: State, functions: Tables) -> Sought | None:
        """n's key, without the entries whose query is the same in all cells: these must match."""
        return rule.keys.sought(of_n, functions)

    def update(self, rule: _Attention, of_N: State, of_n: State, functions: Tables) -> State:
        """output[N] := value[n] ⇒ input[N]: registers set in value[n] are overwritten, also by nil (62c.i-ii).

        A register whose source is an undefined function value is not set.
        """
        values = {register: _value(source, of_n, functions) for register, source in rule.values}
        return {**of_N, **{register: value for register, value in values.items() if value is not UNDEFINED}}


@dataclass(frozen=True)
class _Attention:
    """A QKVL layer, decoded.

    Args:
        queries, keys: its query and its key.
        values: the registers to be set, and their sources.
    """

    queries: _Structure
    keys: _Structure
    values: tuple[tuple[str, Source], ...]
    causal_attn: bool
    right_match: bool
    reads_itself: ClassVar[bool] = False  # a query names each cell by its position

    @classmethod
    def of(cls, layer: QKVLProduction, names: Mapping[str, str]) -> _Attention:
        entries = [(_decoded(source, names), _decoded(layer.k[target], names)) for target, source in layer.q.items()]
        return cls(
            queries=_Structure.of(entries),
            keys=_Structure.of([(key, query) for query, key in entries]),
            values=tuple((names[target], _decoded(source, names)) for target, source in layer.v.items()),
            causal_attn=layer.causal_attn,
            right_match=layer.right_match,
        )


@dataclass(frozen=True)
class _Structure:
    """A query or a key, its entries sorted by those of the other.

    Args:
        tests: the entries whose other is made of constants, with these.
        equal: the entries to be equal to the others, which are registers, too.
        different: the entries to differ from the others, one of the two is negated (62d-iv).
    """

    tests: tuple[tuple[Source, Source], ...]
    equal: tuple[Source, ...]
    different: tuple[Source, ...]

    @classmethod
    def of(cls, entries: Sequence[tuple[Source, Source]]) -> _Structure:
        """From all entries, each with the other."""
        pairs = [entry for entry in entries if entry[0].register is not None and entry[1].register is not None]
        return cls(
            tests=tuple(entry for entry in entries if entry[1].register is None),
            equal=tuple(own for own, other in pairs if own.plain and other.plain),
            different=tuple(own for own, other in pairs if not (own.plain and other.plain)),
        )

    def sought(self, state: State, functions: Tables) -> Sought | None:
        """The values to be compared with those of the other cell; None if it cannot match."""
        for own, constants in self.tests:
            matches = (
                _satisfies(_value(own, state, functions), constants, state, functions)
                if own.plain
                else _satisfies(constants.constants[0], own, state, functions)
            )
            if not matches:
                return None
        equal = tuple([_value(source, state, functions) for source in self.equal])
        different = tuple([_value(source, state, functions) for source in self.different])
        if UNDEFINED in equal or any(
            value is UNDEFINED and source.plain for source, value in zip(self.different, different, strict=True)
        ):
            return None
        return Sought(equal, different)


def _statement(block: QKVLBlock, names: Mapping[str, str], layers: Iterator[int]) -> Layer | Heads | Loop:
    if isinstance(block, QKVLProduction):
        return Layer(next(layers), _Attention.of(block, names))
    if isinstance(block, QKVLHeads):
        return Heads(next(layers), tuple(_Attention.of(head, names) for head in block.heads))
    return Loop(
        tuple(_statement(inner, names, layers) for inner in block.weights),
        None if block.until is None else _Attention.of(block.until, names),
        block.bound,
    )


def _decoded(source: JSONSource, names: Mapping[str, str]) -> Source:
    """A source with the registers' names instead of their short names."""
    read = Source.from_json(source, names, "weights")
    register = None if read.register is None else names[read.register]
    return Source(register, read.function, read.constants, read.several, read.negated)


def _value(source: Source, state: State, functions: Tables) -> str | None:
    """The value that a register of a structure is set to (64)."""
    if source.register is None:
        return source.constants[0]
    value = state[source.register]
    if source.function is None:
        return value
    return UNDEFINED if value is None else functions[source.function].get(value, UNDEFINED)


def _satisfies(value: str | None, condition: Source, state: State, functions: Tables) -> bool:
    """Whether a condition matches a value; an undefined function value never matches."""
    if value is UNDEFINED:
        return False
    members: Values = condition.constants if condition.register is None else (_value(condition, state, functions),)
    return (value in members) != condition.negated
