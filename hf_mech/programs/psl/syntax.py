"""The abstract syntax of PSL: made by the parser, checked by the checker, read by the machines and the lowering.

Registers keep their names in the program (`prev_region`, not `r*`); constants are stored by value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

DEFAULT_BOUND = 1000
"""The default maximum number of repetitions of a repeat block."""


@dataclass(frozen=True)
class Place:
    """A place in the source: line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Reference:
    """`register[cell]@function`: a register of the cell that is updated (`N`) or of the cell that is read (`n`)."""

    register: str
    cell: str
    function: str | None = None
    place: Place = field(default=Place(0, 0), compare=False)

    def __str__(self) -> str:
        return f"{self.register}[{self.cell}]" + (f"@{self.function}" if self.function else "")


@dataclass(frozen=True)
class Constants:
    """One constant, or the constants of `in` and `not in`, by value."""

    values: tuple[str, ...]
    place: Place = field(default=Place(0, 0), compare=False)

    def __str__(self) -> str:
        return str(list(self.values)) if len(self.values) != 1 else self.values[0]


@dataclass(frozen=True)
class Test:
    """`left operator right`, with operator `==`, `!=`, `in` or `not in`; `left` has no function."""

    left: Reference
    operator: str
    right: Reference | Constants

    __test__ = False  # pytest: not a class of tests

    @property
    def references(self) -> tuple[Reference, ...]:
        return (self.left, self.right) if isinstance(self.right, Reference) else (self.left,)

    @property
    def negated(self) -> bool:
        return self.operator in ("!=", "not in")

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True)
class Assignment:
    """`register[N] = constant` or `register[N] = other[n|N]@function`.

    Where the function is undefined, nothing is assigned: the register keeps its value.
    """

    register: str
    value: Reference | str
    place: Place = field(default=Place(0, 0), compare=False)

    def __str__(self) -> str:
        return f"{self.register}[N] = {self.value}"


@dataclass(frozen=True)
class Production:
    """One layer: every cell N takes the assignments' values from the first (or last) cell n that passes all tests."""

    tests: tuple[Test, ...]
    assignments: tuple[Assignment, ...]
    right_match: bool = False
    causal: bool = False
    comment: str = ""
    place: Place = field(default=Place(0, 0), compare=False)

    @cached_property  # asked for every test
    def reads_n(self) -> bool:
        """Whether any test or assignment names the cell n."""
        references = [reference for test in self.tests for reference in test.references]
        references += [item.value for item in self.assignments if isinstance(item.value, Reference)]
        return any(reference.cell == "n" for reference in references)


@dataclass(frozen=True)
class Repeat:
    """A block that runs until it changes nothing (`until` is None), or until some pair n, N passes all of `until`."""

    body: tuple[Production | Repeat, ...]
    until: tuple[Test, ...] | None = None
    bound: int = DEFAULT_BOUND
    comment: str = ""
    place: Place = field(default=Place(0, 0), compare=False)


@dataclass(frozen=True)
class Program:
    """A PSL program.

    Args:
        registers: each register's short name.
        constants: the value of each constant that has a name.
        system: the register of each role: `symbol`, `position` and `output` always, `parse` and `eop` if given.
        statements: productions and repeat blocks, in order.
        watch: the registers that a trace shows; empty for all.
        initial: the values of registers in every prompt cell at the first layer; other registers are empty.
        prompt: the registers that a prompt may set in its cells, each cell by itself.
        values: the declared sets of registers' values, if any.
        stop: output symbols that end the generation and are not part of the completion.
        source: the text, for messages.
    """

    registers: Mapping[str, str]
    constants: Mapping[str, str]
    system: Mapping[str, str]
    statements: tuple[Production | Repeat, ...]
    watch: tuple[str, ...] = ()
    initial: Mapping[str, str] = field(default_factory=dict)
    prompt: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    source: str = ""

    @property
    def references(self) -> Iterator[Reference]:
        """Every register that a test or an assignment reads, in order, with those of `until`."""
        yield from _references(self.statements)

    @property
    def productions(self) -> Iterator[Production]:
        """Every production in order, including those in repeat blocks."""
        yield from _productions(self.statements)


def _productions(statements: tuple[Production | Repeat, ...]) -> Iterator[Production]:
    for statement in statements:
        if isinstance(statement, Production):
            yield statement
        else:
            yield from _productions(statement.body)


def _references(statements: tuple[Production | Repeat, ...]) -> Iterator[Reference]:
    for statement in statements:
        tests = statement.tests if isinstance(statement, Production) else statement.until or ()
        if isinstance(statement, Production):
            yield from (item.value for item in statement.assignments if isinstance(item.value, Reference))
        else:
            yield from _references(statement.body)
        for test in tests:
            yield from test.references
