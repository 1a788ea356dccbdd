"""QKVM, the Query-Key-Value Machine: runs QKVL by symbolic attention, (62)-(63)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..language.functions import Table, built_in_tables
from ..qkvl import JSONSource, QKVLBlock, QKVLHeads, QKVLProduction, QKVLProgram, Source
from .machine import UNDEFINED, Cells, Heads, Layer, Loop, Machine, State

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

    def match(self, rule: _Attention, cells: Cells, updated: range, functions: Tables) -> list[int | None]:
        """The least n, or with `right_match` the greatest, whose key matches N's query (62c.iii-v).

        Keys with the same single values are found together by an index; then the entries with a condition are tested.
        """
        keys: dict[Values, list[int]] = {}
        for n in range(len(cells) - 1, -1, -1) if rule.right_match else range(len(cells)):
            key = tuple(_value(key, cells[n], functions) for _, key in rule.single)
            if UNDEFINED not in key:
                keys.setdefault(key, []).append(n)
        matches: list[int | None] = []
        for N in updated:
            query = tuple(_value(query, cells[N], functions) for query, _ in rule.single)
            candidates = keys.get(query, ()) if UNDEFINED not in query else ()
            matching = (
                n
                for n in candidates
                if (n <= N or not rule.causal_attn) and rule.conditions_hold(cells[N], cells[n], functions)
            )
            matches.append(next(matching, None))
        return matches

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
        single: query and key sources of the entries in which both are one value.
        conditions: the entries in which one of them is a condition, `!=`, `in` or `not in`.
        values: the registers to be set, and their sources.
    """

    single: tuple[tuple[Source, Source], ...]
    conditions: tuple[tuple[Source, Source], ...]
    values: tuple[tuple[str, Source], ...]
    causal_attn: bool
    right_match: bool

    @classmethod
    def of(cls, layer: QKVLProduction, names: Mapping[str, str]) -> _Attention:
        entries = [(_decoded(source, names), _decoded(layer.k[target], names)) for target, source in layer.q.items()]
        return cls(
            single=tuple(entry for entry in entries if entry[0].plain and entry[1].plain),
            conditions=tuple(entry for entry in entries if not (entry[0].plain and entry[1].plain)),
            values=tuple((names[target], _decoded(source, names)) for target, source in layer.v.items()),
            causal_attn=layer.causal_attn,
            right_match=layer.right_match,
        )

    def conditions_hold(self, of_N: State, of_n: State, functions: Tables) -> bool:
        """Whether the entries of query[N] and key[n] with a condition match (62d-iv)."""
        return all(
            _satisfies(_value(query, of_N, functions), key, of_n, functions)
            if query.plain
            else _satisfies(_value(key, of_n, functions), query, of_N, functions)
            for query, key in self.conditions
        )


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
