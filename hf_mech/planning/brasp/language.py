"""B-RASP, the language of Boolean vectors and attention (STRIPS Transformer paper, "B-RASP"; Yang et al. 2024).

A program reads a word w over a finite alphabet as the vectors I_s(i) = [w_i = s] and defines further vectors of the
same length, each from those before it, position by position or by attention (Eq. 1). "There is a b right after an a":

>>> from hf_mech.planning.brasp import FALSE, TRUE, Attention, Initial, PositionWise, Program, run
>>> a, b = Initial("a"), Initial("b")
>>> after_a = Attention("after_a", "rightmost", "before", score=TRUE, value=a.j, default=FALSE)
>>> found = PositionWise("found", after_a & b)
>>> ever = Attention("ever", "leftmost", "all", score=found.j, value=TRUE, default=FALSE)
>>> program = Program("ab", [after_a, found, ever])
>>> run(program, "bbaab")["found"].astype(int)
array([0, 0, 0, 0, 1])
>>> run(program, "bbaab")["ever"].astype(int)
array([1, 1, 1, 1, 1])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from hf_mech.planning.problem import PlanningError

Index = Literal["i", "j"]
Direction = Literal["leftmost", "rightmost"]
Mask = Literal["all", "before", "after"]
"""The positions j that position i may attend to: all, j < i (strict future masking), or j > i (strict past masking)."""


class Expression(ABC):
    """A Boolean formula over vectors at i and at j; made with `&`, `|` and `~`."""

    def __and__(self, other: Expression) -> Expression:
        return And((_expression(self), _expression(other)))

    def __or__(self, other: Expression) -> Expression:
        return Or((_expression(self), _expression(other)))

    def __invert__(self) -> Expression:
        return Not(_expression(self))

    def __bool__(self) -> NoReturn:
        raise PlanningError("A B-RASP expression has no truth value of its own; combine expressions with & | ~.")

    @abstractmethod
    def atoms(self) -> Iterator[At]:
        """The entries of vectors that it reads."""


@dataclass(frozen=True)
class At(Expression):
    """The entry of the vector `name` at position i or j."""

    name: str
    index: Index

    def atoms(self) -> Iterator[At]:
        yield self

    def __str__(self) -> str:
        return f"{self.name}({self.index})"


@dataclass(frozen=True)
class Constant(Expression):
    value: bool

    def atoms(self) -> Iterator[At]:
        return iter(())

    def __str__(self) -> str:
        return str(int(self.value))


@dataclass(frozen=True)
class Not(Expression):
    of: Expression

    def atoms(self) -> Iterator[At]:
        return self.of.atoms()

    def __str__(self) -> str:
        return f"¬{self.of}"


@dataclass(frozen=True)
class And(Expression):
    parts: tuple[Expression, ...]

    def atoms(self) -> Iterator[At]:
        for part in self.parts:
            yield from part.atoms()

    def __str__(self) -> str:
        return _joined(self.parts, "∧", "1")


@dataclass(frozen=True)
class Or(Expression):
    parts: tuple[Expression, ...]

    def atoms(self) -> Iterator[At]:
        for part in self.parts:
            yield from part.atoms()

    def __str__(self) -> str:
        return _joined(self.parts, "∨", "0")  # noqa: RUF001


def _joined(parts: tuple[Expression, ...], sign: str, of_none: str) -> str:
    text = f" {sign} ".join(map(str, parts)) or of_none
    return f"({text})" if len(parts) > 1 else text


TRUE, FALSE = Constant(True), Constant(False)


def any_of(expressions: Iterable[Expression]) -> Expression:
    """The disjunction of all; 0 if there are none."""
    return Or(tuple(_expression(e) for e in expressions))


def all_of(expressions: Iterable[Expression]) -> Expression:
    """The conjunction of all; 1 if there are none."""
    return And(tuple(_expression(e) for e in expressions))


class Vector(Expression):
    """A vector of a program. In a formula it means its entry at i; `.i` and `.j` select the position."""

    name: str

    @property
    def i(self) -> At:
        return At(self.name, "i")

    @property
    def j(self) -> At:
        return At(self.name, "j")

    def atoms(self) -> Iterator[At]:
        yield self.i


@dataclass(frozen=True)
class Initial(Vector):
    """I_symbol: 1 where the word has the symbol."""

    symbol: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"I_{self.symbol}"


@dataclass(frozen=True)
class PositionWise(Vector):
    """P(i) := value, a formula over vectors at i."""

    name: str
    value: Expression

    def __str__(self) -> str:
        return f"{self.name}(i) := {_expression(self.value)}"


@dataclass(frozen=True)
class Attention(Vector):
    """P(i) := value(i, j) at the leftmost or rightmost j with mask and score; default(i) if there is none (Eq. 1)."""

    name: str
    direction: Direction
    mask: Mask
    score: Expression
    value: Expression
    default: Expression = FALSE

    def __str__(self) -> str:
        arrow = {"leftmost": "◀", "rightmost": "▶"}[self.direction]
        mask = {"all": "1", "before": "j < i", "after": "j > i"}[self.mask]
        score, value, default = (_expression(e) for e in (self.score, self.value, self.default))
        return f"{self.name}(i) := {arrow}_j [{mask}, {score}] {value} : {default}"


Operation = PositionWise | Attention


class Program:
    """An alphabet, and operations in the order in which they are computed. `str(program)` is the paper's notation.

    Raises:
        PlanningError: a symbol or vector twice; a formula over a vector that is not defined before it; `j` in a
            position-wise operation or a default; an unknown mask or direction.
    """

    def __init__(self, alphabet: Sequence[str], operations: Sequence[Operation]) -> None:
        self.alphabet = tuple(alphabet)
        self.operations = tuple(operations)
        if len(set(self.alphabet)) < len(self.alphabet):
            raise PlanningError(f"The alphabet {list(self.alphabet)} has a symbol twice.")
        defined = {Initial(s).name for s in self.alphabet}
        for operation in self.operations:
            _check(operation, defined)
            defined.add(operation.name)

    def __str__(self) -> str:
        return "\n".join(map(str, self.operations))


def _check(operation: Operation, defined: set[str]) -> None:
    name = operation.name
    if name in defined:
        raise PlanningError(f"The vector {name!r} is defined twice; every vector needs a name of its own.")
    formulas: dict[str, tuple[Expression, str]]
    if isinstance(operation, PositionWise):
        formulas = {"value": (operation.value, "i")}
    else:
        for field, got, known in (
            ("direction", operation.direction, ("leftmost", "rightmost")),
            ("mask", operation.mask, ("all", "before", "after")),
        ):
            if got not in known:
                raise PlanningError(f"The {field} of {name!r} is {got!r}; it must be one of {', '.join(known)}.")
        formulas = {
            "score": (operation.score, "ij"),
            "value": (operation.value, "ij"),
            "default": (operation.default, "i"),
        }
    for field, (formula, allowed) in formulas.items():
        for atom in _expression(formula).atoms():
            if atom.name not in defined:
                raise PlanningError(
                    f"The {field} of {name!r} reads {atom.name!r}, which is not defined before it; so far there are "
                    f"{', '.join(sorted(defined))}."
                )
            if atom.index not in allowed:
                raise PlanningError(f"The {field} of {name!r} reads {atom} but may only look at position i; write .i.")


def _expression(value: Expression) -> Expression:
    """A vector becomes its entry at i; refuses other values than expressions."""
    if isinstance(value, Vector):
        return value.i
    if not isinstance(value, Expression):
        raise PlanningError(f"Expected a B-RASP expression, got {value!r}; use TRUE and FALSE for constants.")
    return value
