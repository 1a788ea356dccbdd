"""The possible values of each register of a program: a fixpoint over its assignments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from hf_mech.programs.psl.language.functions import DEFAULT_LIMIT, Table, function_tables, is_built_in, is_number
from hf_mech.programs.psl.language.syntax import Assignment, Constants, Production, Program, Reference

PARSING = "1"
"""The value of the parse register in every prompt cell at the first layer."""

END_OF_PROMPT = "EOP"
"""The value of the eop register in the last prompt cell at the first layer."""


@dataclass(frozen=True)
class ValueSet:
    """All values that a register can hold, in any cell, layer and prompt.

    Args:
        constants: single values.
        numbers: whether any position is possible, as a number.
        words: whether any word of a prompt is possible; the vocabulary is open.
        nil: whether nil is possible.
    """

    constants: frozenset[str] = frozenset()
    numbers: bool = False
    words: bool = False
    nil: bool = False

    def __or__(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            self.constants | other.constants,
            self.numbers or other.numbers,
            self.words or other.words,
            self.nil or other.nil,
        )

    def beyond(self, allowed: tuple[str, ...]) -> str:
        """The values that are not in a declared set, as text; empty if there are none. Nil is in every set."""
        found = [f"`{value}`" for value in sorted(self.constants - set(allowed))]
        found += ["any position"] * self.numbers + ["any word of the prompt"] * self.words
        return ", ".join(found)

    def __str__(self) -> str:
        """For documentation, such as `CQ | XA | nil` or `number | word`."""
        parts = sorted(self.constants) + ["number"] * self.numbers + ["word"] * self.words + ["nil"] * self.nil
        return " | ".join(parts)


def value_sets(program: Program, limit: int = DEFAULT_LIMIT) -> dict[str, ValueSet]:
    """The values that each register can hold, by the register's name; registered functions are known up to `limit`.

    The first layer gives each register its first values (33c-ii). A completion cell's symbol is the value of the output
    register (34a). Every assignment adds its constant, or the set of the copied register, restricted to the constants
    that the production's own tests require. A function maps these; the neighbour of a number is any number.
    """
    sets = {register: _first(program, register) for register in program.registers}
    symbol, output = program.system["symbol"], program.system["output"]
    while True:
        before = dict(sets)
        for assignment, written in assigned_values(program, sets, limit):
            sets[assignment.register] |= written
        emitted = sets[output]  # nil is never emitted: it ends the generation
        sets[symbol] |= ValueSet(emitted.constants, emitted.numbers, emitted.words)
        if sets == before:
            return sets


def assigned_values(
    program: Program, sets: Mapping[str, ValueSet], limit: int = DEFAULT_LIMIT
) -> Iterator[tuple[Assignment, ValueSet]]:
    """Every assignment, with the values that it can write if the registers hold those of `sets`."""
    tables = function_tables(program, limit) if _assigns_registered(program) else {}
    for production in program.productions:
        for assignment in production.assignments:
            yield assignment, _assigned(assignment, production, sets, tables)


def _first(program: Program, register: str) -> ValueSet:
    system = program.system
    if register == system["symbol"]:
        return ValueSet(words=True)
    if register == system["position"]:
        return ValueSet(numbers=True)
    if register == system.get("parse"):
        return ValueSet(frozenset([PARSING]))
    if register == system.get("eop"):
        return ValueSet(frozenset([END_OF_PROMPT]), nil=True)
    first = program.initial.get(register)
    usual = ValueSet(nil=True) if first is None else ValueSet(frozenset([first]))
    if register not in program.prompt:
        return usual
    if register in program.values:
        return usual | ValueSet(frozenset(program.values[register]))
    return usual | ValueSet(words=True)


def _assigns_registered(program: Program) -> bool:
    """Whether a production assigns an image under a registered function."""
    values = (item.value for production in program.productions for item in production.assignments)
    functions = (value.function for value in values if isinstance(value, Reference))
    return any(function is not None and not is_built_in(function) for function in functions)


def _assigned(
    assignment: Assignment, production: Production, sets: Mapping[str, ValueSet], tables: Mapping[str, Table]
) -> ValueSet:
    """The values that an assignment can write: the copied register's, restricted by the tests, or their images."""
    if isinstance(assignment.value, str):
        return ValueSet(frozenset([assignment.value]))
    copied = _copied(assignment.value, production, sets)
    function = assignment.value.function
    return copied if function is None else _image(copied, function, tables)


def _image(held: ValueSet, function: str, tables: Mapping[str, Table]) -> ValueSet:
    """The images of a set under a function; undefined ones are not assigned."""
    if is_built_in(function):
        return ValueSet(numbers=held.numbers or held.words or any(is_number(value) for value in held.constants))
    return ValueSet(
        frozenset(
            image
            for value, image in tables[function].items()
            if held.words or value in held.constants or (held.numbers and is_number(value))
        )
    )


def _copied(read: Reference, production: Production, sets: Mapping[str, ValueSet]) -> ValueSet:
    """The values of a register that is read, restricted by the production's tests."""
    copied = sets[read.register]
    demanded = [
        frozenset(test.right.values)
        for test in production.tests
        if isinstance(test.right, Constants) and not test.negated and _same(test.left, read)
    ]
    if not demanded:
        return copied
    allowed = reduce(frozenset.__and__, demanded)
    return ValueSet(allowed if copied.words or copied.numbers else allowed & copied.constants)


def _same(left: Reference, right: Reference) -> bool:
    return (left.register, left.cell) == (right.register, right.cell)
