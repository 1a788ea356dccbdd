"""From PSL to QKVL (Sec. 6.2, Table (65), App. K): every test becomes an entry of the query and one of the key.

| test | query | key |
|---|---|---|
| `z[N] == C` | `z: z` | `z: C` |
| `x[n] == C` | `` x`: C `` | `` x`: x `` |
| `x[n] == y[N]@F` | `` x`: y@F `` | `` x`: x `` |
| `x[N] == y[n]@F` | `` y`: x `` | `` y`: y@F `` |
| `x[N] == y[N]@F`, no n in the production | `x: x` | `x: y@F` |

`!=`, `in` and `not in` are in the entry of the test's right side: `["!=", "y@F"]`, `["in", "C", "D"]`. A production
without n has `p: p` in query and key: n = N. If an entry is taken, the next test uses another backquote (or a number
behind one, see `primed`), so several tests of one register and cell all count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hf_mech.models.dat.configuration_dat import MOST_VALUES
from hf_mech.programs.psl.language.errors import ProgramError, QKVLError
from hf_mech.programs.psl.language.functions import DEFAULT_LIMIT, function_tables
from hf_mech.programs.psl.language.syntax import Assignment, Constants, Production, Program, Reference, Repeat, Test
from hf_mech.programs.psl.qkvl import JSONSource, QKVLBlock, QKVLProduction, QKVLProgram, QKVLRepeat, Source, primed


def lower_program(program: Program, max_position_embeddings: int = DEFAULT_LIMIT) -> QKVLProgram:
    """A checked program in QKVL.

    Args:
        program: the program.
        max_position_embeddings: the greatest position T; registered functions are tabulated over 0..T.

    Raises:
        QKVLError: a test or an assignment that a query and a key cannot express; the checker refuses these first.
        ProgramError: a function is not registered, or fails; more positions than a model may have.
    """
    if max_position_embeddings > MOST_VALUES:  # before the tables of functions are made
        raise ProgramError(f"max_position_embeddings may be at most {MOST_VALUES:,}, got {max_position_embeddings:,}")
    short = dict(program.registers)
    lowered = QKVLProgram(
        register_map=short,
        constants_map=dict(program.constants),
        system_map=dict(program.system),
        weights=_Lowering(program).blocks(program.statements),
        watch_list=tuple(program.watch),
        initial={short[name]: value for name, value in program.initial.items()},
        prompt=tuple(short[name] for name in program.prompt),
        values={short[name]: tuple(values) for name, values in program.values.items()},
        stop=tuple(program.stop),
        functions=function_tables(program, max_position_embeddings),
    )
    # Reading the output back keeps the rules of QKVL in one place.
    return QKVLProgram.from_json(lowered.to_json())


@dataclass
class _Entries:
    """The query and key; each test adds an entry."""

    q: dict[str, JSONSource] = field(default_factory=dict)
    k: dict[str, JSONSource] = field(default_factory=dict)

    _found: set[tuple[str, str, str]] = field(default_factory=set)
    _next: dict[str, int] = field(default_factory=dict)

    def add(self, register: str, prime: bool, query: JSONSource, key: JSONSource) -> None:
        """Adds an entry under the register's first free name, with a prime if `prime`; equal entries are merged."""
        entry = (register, repr(query), repr(key))
        if entry in self._found:
            return
        self._found.add(entry)
        target = register
        if prime or register in self.q:
            times = self._next[register] = self._next.get(register, 0) + 1
            target = primed(register, times)
        self.q[target], self.k[target] = query, key


class _Lowering:
    def __init__(self, program: Program) -> None:
        self.short = program.registers
        self.shorts = frozenset(program.registers.values())
        self.position = program.registers[program.system["position"]]

    def blocks(self, statements: Iterable[Production | Repeat]) -> tuple[QKVLBlock, ...]:
        return tuple(self._block(statement) for statement in statements)

    def _block(self, statement: Production | Repeat) -> QKVLBlock:
        if isinstance(statement, Production):
            return self._production(statement)
        return QKVLRepeat(
            weights=self.blocks(statement.body),
            until=None if statement.until is None else self._production(Production(statement.until, ())),
            bound=statement.bound,
            layer_comment=statement.comment,
        )

    def _production(self, production: Production) -> QKVLProduction:
        entries = _Entries()
        for test in production.tests:
            entries.add(*self._entry(test, production.reads_n))
        if not production.reads_n:
            entries.add(self.position, False, self.position, self.position)
        values = {self.short[item.register]: self._value(item, production) for item in production.assignments}
        return QKVLProduction(
            q=entries.q,
            k=entries.k,
            v=values,
            causal_attn=production.causal,
            right_match=production.right_match,
            layer_comment=production.comment,
        )

    def _entry(self, test: Test, reads_n: bool) -> tuple[str, bool, JSONSource, JSONSource]:
        """A test's register, whether it takes a prime, its query source and key source: Table (65)."""
        left, right = self.short[test.left.register], self._right(test)
        if isinstance(test.right, Constants):
            return (left, True, right, left) if test.left.cell == "n" else (left, False, left, right)
        cells = (test.left.cell, test.right.cell)
        if cells == ("n", "N"):
            return left, True, right, left
        if cells == ("N", "n"):
            # The image stays on one side with its negation: `!=` holds for a value without an image.
            return self.short[test.right.register], True, left, right
        if cells == ("N", "N") and not reads_n:
            return left, False, left, right
        raise QKVLError(
            f"line {test.left.place.line}: `{test}` compares two registers of one cell in a production that reads n, "
            f"which no query and key can express; make it two productions"
        )

    def _right(self, test: Test) -> JSONSource:
        if isinstance(test.right, Reference):
            source = Source(self.short[test.right.register], test.right.function, negated=test.negated)
        else:
            several = test.operator in ("in", "not in")
            source = Source(constants=test.right.values, several=several, negated=test.negated)
        return source.to_json(self.shorts)

    def _value(self, assignment: Assignment, production: Production) -> JSONSource:
        if isinstance(assignment.value, str):
            return Source(constants=(assignment.value,)).to_json(self.shorts)
        if assignment.value.cell == "N" and production.reads_n:
            raise QKVLError(
                f"line {assignment.place.line}: `{assignment}` copies from the updated cell in a production that "
                f"reads n, but a value is made by n; make it two productions"
            )
        return Source(self.short[assignment.value.register], assignment.value.function).to_json(self.shorts)
