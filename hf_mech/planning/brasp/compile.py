"""B-RASP programs: run on a word, written from a STRIPS domain, compiled. Equations and theorems: STRIPS paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.planning.brasp.language import (
    FALSE,
    TRUE,
    And,
    At,
    Attention,
    Constant,
    Expression,
    Initial,
    Not,
    Operation,
    Or,
    PositionWise,
    Program,
    Vector,
    any_of,
)
from hf_mech.planning.problem import PlanningError

if TYPE_CHECKING:
    from hf_mech.models.strips.modeling_strips import StripsTransformer


# ----------------------------------------------------------------------------------------------------------------------
# Running a B-RASP program on a word.


Bools = NDArray[np.bool_]


def run(program: Program, word: Sequence[str]) -> dict[str, Bools]:
    """Runs the program on a word: every vector by name, [n] each, in the order of definition; the last is the output.

    Raises:
        PlanningError: the word has a symbol that is not in the alphabet.
    """
    for position, symbol in enumerate(word):
        if symbol not in program.alphabet:
            raise PlanningError(
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
    raise PlanningError(f"Cannot evaluate {expression!r}.")


# ----------------------------------------------------------------------------------------------------------------------
# The program f_M of a STRIPS domain (Eq. 2 to 7).


def strips_program(domain: StripsDomain) -> Program:
    """The program whose last vector Z ends in f_M(trace): 0 if the trace is positive, 1 if it is negative (Theorem 3).

    For every proposition p it has the vectors `Q_p`, `K_p`, `V_p` and `Y_p`; then `Y`, which marks the inapplicable
    actions, and `Z`. The words are traces of action names.
    """
    operations: list[Operation] = []
    heads = []
    for p in domain.propositions:
        q = PositionWise(f"Q_{p}", any_of(Initial(a.name) for a in domain.actions if p in a.pre))  # Eq. 2
        k = PositionWise(f"K_{p}", any_of(Initial(a.name) for a in domain.actions if p in a.add | a.delete))  # Eq. 3
        v = PositionWise(f"V_{p}", any_of(Initial(a.name) for a in domain.actions if p in a.delete))  # Eq. 4
        y = Attention(f"Y_{p}", "rightmost", "before", score=q.i & k.j, value=v.j, default=FALSE)  # Eq. 5
        operations += [q, k, v, y]
        heads.append(y)
    any_head = PositionWise("Y", any_of(heads))  # Eq. 6
    anywhere = Attention("Z", "rightmost", "all", score=any_head.j, value=TRUE, default=FALSE)  # Eq. 7
    return Program(domain.action_names, [*operations, any_head, anywhere])


# ----------------------------------------------------------------------------------------------------------------------
# From a B-RASP program of the form of Eq. 2 to 7 to the parameters of a STRIPS Transformer (Eq. 8 to 10).


_FORM = (
    "A program that compiles has heads Y_p(i) := ▶_j [j < i, (Q_p(i) ∧ K_p(j))] V_p(j) : 0 with Q_p, K_p and V_p "
    "position-wise in the initial vectors, then Y, the disjunction of the heads, and last Z(i) := ▶_j [1, Y(j)] 1 : 0."
)


def compile_strips_transformer(program: Program) -> StripsTransformer:
    """The STRIPS Transformer that computes the same function as the program (Theorem 4): theta by Eq. 8-10.

    Its actions are named after the alphabet, its propositions after the heads: `Y_p` is the head of p. If the heads
    have other names, the propositions get default names.

    >>> from hf_mech.planning.brasp import compile_strips_transformer, strips_program
    >>> from hf_mech.planning import load_bundled
    >>> model = compile_strips_transformer(strips_program(load_bundled("simple").domain))
    >>> model.config.propositions, model.next_actions(["a"])
    (['p', 'q', 'r'], ['c'])

    Raises:
        PlanningError: the program is not of the form of Eq. 2 to 7; the message names the vector that is not.
        StripsError: the program has no heads or no symbols; a model needs one of each.
    """
    import torch

    from hf_mech.models.strips.configuration_strips import StripsTransformerConfig
    from hf_mech.models.strips.modeling_strips import StripsTransformer

    theta = compile_theta(program)
    config = StripsTransformerConfig(
        actions=list(program.alphabet), num_propositions=len(theta), propositions=_propositions(program)
    )
    model = StripsTransformer(config)
    model.theta.data.copy_(torch.from_numpy(theta))
    return model.eval()


def compile_theta(program: Program) -> NDArray[np.float32]:
    """theta, `[heads, |alphabet|, 3]`: the values of Q_p, K_p and V_p at each symbol, heads in the order of Y.

    Exactly one initial vector is 1 at each position, so a position-wise vector is a table over the alphabet, and
    running the program once on the word of all symbols reads every table off.

    Raises:
        PlanningError: the program is not of the form of Eq. 2 to 7; the message names the vector that is not.
    """
    if not program.operations:
        raise PlanningError(f"The program is empty. {_FORM}")
    operations = {operation.name: operation for operation in program.operations}
    tables = run(program, program.alphabet)
    theta = []
    for head in _heads(program):
        names = _query_key_value(head)
        for name in names:
            _check_table(name, operations)
        theta.append(np.stack([tables[name] for name in names], axis=-1))
    return np.array(theta, dtype=np.float32).reshape(len(theta), len(program.alphabet), 3)


def _heads(program: Program) -> list[Operation]:
    """The heads Y_p, found from Z (Eq. 7) through Y (Eq. 6)."""
    operations, last = {operation.name: operation for operation in program.operations}, program.operations[-1]
    match last:
        case Attention(mask="all", score=At(name, "j"), value=Constant(True), default=Constant(False)):
            any_head = operations.get(name)
        case _:
            raise _unlike(last)
    if not isinstance(any_head, PositionWise):
        raise _unlike(last)
    names = _disjuncts(any_head.value)
    if names is None or not operations.keys() >= set(names):
        raise _unlike(any_head)
    return [operations[name] for name in names]


def _disjuncts(formula: Expression) -> list[str] | None:
    """The names of the vectors if the formula is their disjunction, else None."""
    match formula:
        case Vector(name=name) | At(name, "i"):
            return [name]
        case Constant(False):
            return []
        case Or(parts):
            names = [_disjuncts(part) for part in parts]
            return None if None in names else [name for some in names for name in some or ()]
    return None


def _propositions(program: Program) -> list[str] | None:
    """p for every head `Y_p`; None if a head has another name or occurs twice."""
    heads = [head.name for head in _heads(program)]
    if len(set(heads)) < len(heads) or not all(head.startswith("Y_") and head != "Y_" for head in heads):
        return None
    return [head.removeprefix("Y_") for head in heads]


def _query_key_value(head: Operation) -> tuple[str, str, str]:
    """The names of Q_p, K_p and V_p in Eq. 5."""
    match head:
        case Attention(direction="rightmost", mask="before", value=At(v, "j"), default=Constant(False)):
            match head.score:
                case And((At(q, "i"), At(k, "j"))) | And((At(k, "j"), At(q, "i"))):
                    return q, k, v
    raise _unlike(head)


def _check_table(name: str, operations: dict[str, Operation]) -> None:
    """Refuse a vector that depends on attention; initial vectors are not operations and are accepted."""
    operation = operations.get(name)
    if isinstance(operation, Attention):
        raise _unlike(operation)
    if operation is not None:
        for atom in operation.value.atoms():
            _check_table(atom.name, operations)


def _unlike(operation: Operation) -> PlanningError:
    return PlanningError(f"This vector has no place in the form of Eq. 2 to 7: {operation}. {_FORM}")
