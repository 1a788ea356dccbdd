"""Running a B-RASP program on a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hf_mech.planning.brasp.language import (
    And,
    At,
    Attention,
    BraspError,
    Constant,
    Expression,
    Initial,
    Not,
    Or,
    PositionWise,
    Program,
    Vector,
)

Bools = NDArray[np.bool_]


def run(program: Program, word: Sequence[str]) -> dict[str, Bools]:
    """Every vector of the program by name, [n] each, in the order of definition; the last one is the output.

    Raises:
        BraspError: the word has a symbol that is not in the alphabet.
    """
    for position, symbol in enumerate(word):
        if symbol not in program.alphabet:
            raise BraspError(
                f"The word has {symbol!r} at position {position}; the alphabet is {', '.join(program.alphabet)}."
            )
    n = len(word)
    vectors = {Initial(s).name: np.array([w == s for w in word], dtype=bool) for s in program.alphabet}
    for operation in program.operations:
        if isinstance(operation, PositionWise):
            vectors[operation.name] = np.broadcast_to(_evaluate(operation.value, _at_i(vectors)), (n,)).copy()
        else:
            vectors[operation.name] = _attend(operation, vectors, n)
    return vectors


def _attend(operation: Attention, vectors: dict[str, Bools], n: int) -> Bools:
    """Eq. 1, for all i at once: rows are i, columns are j."""

    def at(atom: At) -> Bools:
        return vectors[atom.name][:, None] if atom.index == "i" else vectors[atom.name][None, :]

    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    masks: dict[str, Bools] = {"all": np.ones((n, n), dtype=bool), "before": j < i, "after": j > i}
    candidates = masks[operation.mask] & _evaluate(operation.score, at)  # [n, n]
    value = np.broadcast_to(_evaluate(operation.value, at), (n, n))
    default = np.broadcast_to(_evaluate(operation.default, _at_i(vectors)), (n,))
    if n == 0:
        return default.copy()
    if operation.direction == "leftmost":
        chosen = candidates.argmax(axis=1)
    else:
        chosen = n - 1 - candidates[:, ::-1].argmax(axis=1)
    return np.where(candidates.any(axis=1), value[np.arange(n), chosen], default)


def _at_i(vectors: dict[str, Bools]) -> Callable[[At], Bools]:
    return lambda atom: vectors[atom.name]


def _evaluate(expression: Expression, at: Callable[[At], Bools]) -> Bools:
    """The value of a formula, in the broadcast shape of the vectors' entries."""
    match expression:
        case Vector():
            return at(expression.i)
        case At():
            return at(expression)
        case Constant(value):
            return np.array(value)
        case Not(of):
            return ~_evaluate(of, at)
        case And(parts):
            result = np.array(True)
            for part in parts:
                result = result & _evaluate(part, at)
            return result
        case Or(parts):
            result = np.array(False)
            for part in parts:
                result = result | _evaluate(part, at)
            return result
    raise BraspError(f"Cannot evaluate {expression!r}.")
