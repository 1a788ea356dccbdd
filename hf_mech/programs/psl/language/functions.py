"""Functions of a register's value, `x[n] == y[N]@function` (61b), `x[N] = y[n]@function`: built in, or registered.

Every function is used as a table. A value that is not in the table, such as nil, has no image. A missing image equals
nothing: `==` fails and `!=` holds. It is not assigned either: the register keeps its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from hf_mech.programs.psl.language.errors import ProgramError
from hf_mech.programs.psl.language.syntax import Constants, Production, Program, Repeat, Test

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
        ProgramError: the name is not an identifier, or is taken by another function.
    """
    if not name.isidentifier():
        raise ProgramError(f"a function's name must be an identifier such as `swap_case`; got {name!r}")
    if not callable(function):
        raise ProgramError(f"the function `{name}` must be callable with one string; got {function!r}")
    if name in _STEPS or _REGISTERED.get(name, function) is not function:
        raise ProgramError(
            f"there already is a function `{name}`; choose another name"
            + ("" if name in _STEPS else f", or call unregister_function({name!r}) first")
        )
    _REGISTERED[name] = function


def unregister_function(name: str) -> None:
    """Removes a registered function.

    Raises:
        ProgramError: no function of that name is registered.
    """
    if name not in _REGISTERED:
        raise ProgramError(f"no registered function `{name}`; registered: {sorted(_REGISTERED) or 'none'}")
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
        ProgramError: the program uses a function that is not registered, raises, or returns a wrong type.
    """
    used = sorted({reference.function for reference in program.references if reference.function is not None})
    domain = tuple(dict.fromkeys((*map(str, range(limit + 1)), *program_constants(program))))
    return {name: tabulate(name, domain) for name in used if not is_built_in(name)}


def tabulate(name: str, values: Iterable[str]) -> dict[str, str]:
    """The table of a registered function over some values.

    Raises:
        ProgramError: the function is not registered, raises, or returns neither one word nor None.
    """
    if name not in _REGISTERED:
        raise ProgramError(
            f"the function `@{name}` is not registered; there are {', '.join(function_names())}. Register it before "
            f"the program is used: register_function({name!r}, lambda value: ...)"
        )
    function, table = _REGISTERED[name], {}
    for value in values:
        try:
            image = function(value)
        except Exception as error:
            raise ProgramError(
                f"the function `@{name}` failed on {value!r} ({type(error).__name__}: {error}); it is called with "
                f"every number and every constant of the program, and must give None where it is undefined"
            ) from error
        if image is None:
            continue
        if not isinstance(image, str):
            raise ProgramError(f"the function `@{name}` gave {image!r} for {value!r}; expected a string or None")
        if image.split() != [image]:
            raise ProgramError(f"the function `@{name}` gave {image!r} for {value!r}; a value is one word")
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
