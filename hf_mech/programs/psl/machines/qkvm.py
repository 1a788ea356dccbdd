"""QKVM, the Query-Key-Value Machine: runs QKVL by symbolic attention, (62)-(63)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hf_mech.programs.psl.language.values import Table, built_in_tables
from hf_mech.programs.psl.machines.machine import UNDEFINED, Heads, Layer, Loop, Machine, Sought, State
from hf_mech.programs.psl.qkvl import JSONSource, QKVLBlock, QKVLHeads, QKVLProduction, QKVLProgram, Source

Tables = Mapping[str, Table]
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
