"""The values that registers take, and the functions on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.syntax import Assignment, Constants, Production, Program, Reference, Repeat, Test

# ----------------------------------------------------------------------------------------------------------------------
# Functions of a register's value, `x[n] == y[N]@function` (61b), `x[N] = y[n]@function`: built in, or registered.
#
# Every function is used as a table. A value that is not in the table, such as nil, has no image. A missing image equals
# nothing: `==` fails and `!=` holds. It is not assigned either: the register keeps its value.


DEFAULT_LIMIT = 512
"""The default of T, the greatest position."""

Function = Callable[[str], str | None]
Table = Mapping[str, str]

_STEPS = {"pos_increment": 1, "pos_decrement": -1}
_REGISTERED: dict[str, Function] = {}


def pos_increment(value: str | None, limit: int = DEFAULT_LIMIT) -> str | None:
    """k + 1 for a number k; None outside 0..limit, for nil, and for other texts, such as `007`.

    >>> pos_increment("9"), pos_increment("512"), pos_increment("B")
    ('10', None, None)
    """
    return None if value is None else _table("pos_increment", limit).get(value)


def pos_decrement(value: str | None, limit: int = DEFAULT_LIMIT) -> str | None:
    """k - 1 for a number k; None outside 0..limit, for nil, and for other texts, such as `007`.

    >>> pos_decrement("1"), pos_decrement("0"), pos_decrement("01")
    ('0', None, None)
    """
    return None if value is None else _table("pos_decrement", limit).get(value)


def register_function(name: str, function: Function) -> None:
    """Makes `function` available to programs as `@name`.

    It is called once for every number 0..T and every constant of the program that uses it; it returns a value, or None
    if undefined. A checkpoint stores the table, so loading it needs no registration.

    Raises:
        ProgramsError: the name is not an identifier, or is taken by another function.
    """
    if not name.isidentifier():
        raise ProgramsError(f"a function's name must be an identifier such as `swap_case`; got {name!r}")
    if not callable(function):
        raise ProgramsError(f"the function `{name}` must be callable with one string; got {function!r}")
    if name in _STEPS or _REGISTERED.get(name, function) is not function:
        raise ProgramsError(
            f"there already is a function `{name}`; choose another name"
            + ("" if name in _STEPS else f", or call unregister_function({name!r}) first")
        )
    _REGISTERED[name] = function


def unregister_function(name: str) -> None:
    """Removes a registered function.

    Raises:
        ProgramsError: no function of that name is registered.
    """
    if name not in _REGISTERED:
        raise ProgramsError(f"no registered function `{name}`; registered: {sorted(_REGISTERED) or 'none'}")
    del _REGISTERED[name]


def function_names() -> tuple[str, ...]:
    """The names of all functions, the built-in ones first."""
    return (*_STEPS, *sorted(_REGISTERED))


def is_number(value: str) -> bool:
    """Whether a value is a number as positions are written: `0` and `17`, but not `007` and `-1`."""
    return re.fullmatch(r"0|[1-9][0-9]*", value) is not None


def is_built_in(name: str) -> bool:
    """Whether every machine has the function without a table."""
    return name in _STEPS


def built_in_tables(limit: int = DEFAULT_LIMIT) -> dict[str, Table]:
    """The tables of the built-in functions over 0..limit."""
    return {name: _table(name, limit) for name in _STEPS}


def function_tables(program: Program, limit: int = DEFAULT_LIMIT) -> dict[str, Table]:
    """The tables of the registered functions that a program uses, over 0..limit and the program's constants.

    Raises:
        ProgramsError: the program uses a function that is not registered, raises, or returns a wrong type.
    """
    used = sorted({reference.function for reference in program.references if reference.function is not None})
    domain = tuple(dict.fromkeys((*map(str, range(limit + 1)), *program_constants(program))))
    return {name: tabulate(name, domain) for name in used if not is_built_in(name)}


def tabulate(name: str, values: Iterable[str]) -> dict[str, str]:
    """The table of a registered function over some values.

    Raises:
        ProgramsError: the function is not registered, raises, or returns neither one word nor None.
    """
    if name not in _REGISTERED:
        raise ProgramsError(
            f"the function `@{name}` is not registered; there are {', '.join(function_names())}. Register it before "
            f"the program is used: register_function({name!r}, lambda value: ...)"
        )
    function, table = _REGISTERED[name], {}
    for value in values:
        try:
            image = function(value)
        except Exception as error:
            raise ProgramsError(
                f"the function `@{name}` failed on {value!r} ({type(error).__name__}: {error}); it is called with "
                f"every number and every constant of the program, and must give None where it is undefined"
            ) from error
        if image is None:
            continue
        if not isinstance(image, str):
            raise ProgramsError(f"the function `@{name}` gave {image!r} for {value!r}; expected a string or None")
        if image.split() != [image]:
            raise ProgramsError(f"the function `@{name}` gave {image!r} for {value!r}; a value is one word")
        table[value] = image
    return table


def program_constants(program: Program) -> tuple[str, ...]:
    """Every constant of a program, once: declared, initial, in value sets, stop words, tests and assignments."""
    found = [*program.constants.values(), *program.initial.values(), *program.stop]
    for values in program.values.values():
        found += values
    for test in _tests(program.statements):
        found += test.right.values if isinstance(test.right, Constants) else ()
    for production in program.productions:
        found += [item.value for item in production.assignments if isinstance(item.value, str)]
    return tuple(dict.fromkeys(found))


def _tests(statements: tuple[Production | Repeat, ...]) -> Iterable[Test]:
    for statement in statements:
        if isinstance(statement, Production):
            yield from statement.tests
        else:
            yield from _tests(statement.body)
            yield from statement.until or ()


@lru_cache(maxsize=64)
def _table(name: str, limit: int) -> dict[str, str]:
    step = _STEPS[name]
    return {str(k): str(k + step) for k in range(limit + 1) if 0 <= k + step <= limit}


# ----------------------------------------------------------------------------------------------------------------------
# The possible values of each register of a program: a fixpoint over its assignments.


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
