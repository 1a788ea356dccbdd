"""The compiler: PSL to QKVL, layers of several heads if wanted, and QKVL to a DAT with its tokenizer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hf_mech.models.dat.configuration_dat import MOST_VALUES, DATConfig, conflicting, reads, writes
from hf_mech.models.dat.dat_program import Layer, ValueSpace, constants_of
from hf_mech.models.dat.dat_program import read_program as read_dat_program
from hf_mech.models.dat.modeling_dat import DATForCausalLM
from hf_mech.models.dat.tokenization_dat import DATTokenizer
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.check import check_program
from hf_mech.programs.psl.library import read_program, replacing, restore
from hf_mech.programs.psl.parse import parse_program
from hf_mech.programs.psl.qkvl import (
    JSONSource,
    QKVLBlock,
    QKVLHeads,
    QKVLProduction,
    QKVLProgram,
    QKVLRepeat,
    Source,
    primed,
)
from hf_mech.programs.psl.syntax import Assignment, Constants, Production, Program, Reference, Repeat, Test
from hf_mech.programs.psl.values import DEFAULT_LIMIT, function_tables, value_sets

# ----------------------------------------------------------------------------------------------------------------------
# Productions as heads of common layers, (90a): the same function in fewer layers.
#
# Between two repeat blocks, a production may share a layer with an earlier one, or overtake it, if nothing else
# changes:
#
# | of two productions, the later one | its layer is |
# |---|---|
# | reads a register, in a test or as a value, that the earlier one assigns | a later layer |
# | assigns a register that the earlier one assigns, and both may update the same cell | a later layer |
# | assigns a register that the earlier one reads | the same layer or a later one: all heads read the layer's input |
# | else | any |
#
# Every production takes the first layer that these rules allow, so the number of layers is the longest chain of the
# first two kinds of dependence, the least that keeps all of them. The states between the layers differ from those of
# the program; at the end of each such run of productions, before and after every repetition of a block, they are the
# same. So `until NO_CHANGE`, which compares whole repetitions, ends the same repetition.


def merge_heads(program: QKVLProgram) -> QKVLProgram:
    """The program with productions as heads of as few layers as possible.

    Raises:
        ProgramsError: it has heads already.
    """
    if any(isinstance(layer, QKVLHeads) for layer in program.layers):
        raise ProgramsError("the program has layers with heads already; merge a program with one production a layer")
    json = program.to_json()
    resolved = read_dat_program(json, ValueSpace(1, constants_of(json, 1), 0))  # any T: only which names differ counts
    return replace(program, weights=_merged(program.weights, iter(resolved.productions)))


def _merged(blocks: Sequence[QKVLBlock], resolved: Iterator[Layer]) -> tuple[QKVLBlock, ...]:
    made: list[QKVLBlock] = []
    run: list[QKVLProduction] = []
    for block in blocks:
        if isinstance(block, QKVLProduction):
            run.append(block)
        elif isinstance(block, QKVLRepeat):
            made += _layers(run, resolved)
            made.append(replace(block, weights=_merged(block.weights, resolved)))
            run = []
    return (*made, *_layers(run, resolved))


def _layers(run: Sequence[QKVLProduction], resolved: Iterator[Layer]) -> list[QKVLBlock]:
    """The layers of productions between two repeat blocks."""
    made: list[QKVLBlock] = []
    for layer in schedule([next(resolved) for _ in run]):
        heads = tuple(run[index] for index in layer)
        comment = " + ".join(head.layer_comment or "?" for head in heads)
        made.append(heads[0] if len(heads) == 1 else QKVLHeads(heads, comment))
    return made


def schedule(productions: Sequence[Layer]) -> list[list[int]]:
    """The productions of every layer, by their indices in order."""
    layers: list[int] = []
    for later in productions:
        least = 0
        for earlier, layer in zip(productions, layers, strict=False):
            if writes(earlier) & reads(later) or conflicting(earlier, later):
                least = max(least, layer + 1)
            elif reads(earlier) & writes(later):
                least = max(least, layer)
        layers.append(least)
    return [[i for i, own in enumerate(layers) if own == layer] for layer in range(max(layers, default=-1) + 1)]


# ----------------------------------------------------------------------------------------------------------------------
# From PSL to QKVL (Sec. 6.2, Table (65), App. K): every test becomes an entry of the query and one of the key.
#
# | test | query | key |
# |---|---|---|
# | `z[N] == C` | `z: z` | `z: C` |
# | `x[n] == C` | `` x`: C `` | `` x`: x `` |
# | `x[n] == y[N]@F` | `` x`: y@F `` | `` x`: x `` |
# | `x[N] == y[n]@F` | `` y`: x `` | `` y`: y@F `` |
# | `x[N] == y[N]@F`, no n in the production | `x: x` | `x: y@F` |
#
# `!=`, `in` and `not in` are in the entry of the test's right side: `["!=", "y@F"]`, `["in", "C", "D"]`. A production
# without n has `p: p` in query and key: n = N. If an entry is taken, the next test uses another backquote (or a number
# behind one, see `primed`), so several tests of one register and cell all count.


def lower_program(program: Program, max_position_embeddings: int = DEFAULT_LIMIT) -> QKVLProgram:
    """A checked program in QKVL.

    Args:
        program: the program.
        max_position_embeddings: the greatest position T; registered functions are tabulated over 0..T.

    Raises:
        ProgramsError: a test or an assignment that a query and a key cannot express; the checker refuses these first; a
            function is not registered, or fails; more positions than a model may have.
    """
    if max_position_embeddings > MOST_VALUES:  # before the tables of functions are made
        raise ProgramsError(f"max_position_embeddings may be at most {MOST_VALUES:,}, got {max_position_embeddings:,}")
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
        raise ProgramsError(
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
            raise ProgramsError(
                f"line {assignment.place.line}: `{assignment}` copies from the updated cell in a production that "
                f"reads n, but a value is made by n; make it two productions"
            )
        return Source(self.short[assignment.value.register], assignment.value.function).to_json(self.shorts)


# ----------------------------------------------------------------------------------------------------------------------
# From a program to a model: the passes in order, (65) and then (72).


PROGRAM_FILE = "program.psl"
"""The program's text in a checkpoint."""


def compile_program(
    program: str | Program | QKVLProgram | Mapping[str, Any], *, heads: bool = False, **config: Any
) -> tuple[DATForCausalLM, DATTokenizer]:
    r"""Compiles a program into a model and its tokenizer.

    Args:
        program: the text of a PSL program, a parsed one, or QKVL (as an object or as the JSON of App. J).
        heads: run productions that do not conflict as heads of one layer, (90a), see `merge_heads`; by default every
            production is a layer.
        config: further arguments of [`DATConfig`], such as `max_position_embeddings` and `backend`.

    Raises:
        ProgramsError: a program that cannot be compiled exactly; the message names the place and the reason.
        DATError: invalid arguments.

    Example:

    ```python
    >>> from hf_mech.programs.psl import compile_program

    >>> model, tokenizer = compile_program('''
    ... registers: {symbol: 's', position: 'p'}
    ... system: {symbol: symbol, position: position, output: symbol}
    ... where position[n] == position[N]@pos_decrement:
    ...     symbol[N] = symbol[n]
    ... ''')
    >>> prompt = tokenizer("red green blue", return_tensors="pt")
    >>> tokenizer.decode(model.generate(**prompt, max_new_tokens=1)[0, -1])
    'green'

    ```
    """
    if isinstance(program, str):
        program = check_program(parse_program(program))
    if isinstance(program, Program):
        limit = config.get("max_position_embeddings", DEFAULT_LIMIT)
        lowered = lower_program(program, limit)
        config.setdefault("value_sets", {name: str(values) for name, values in value_sets(program, limit).items()})
        program = lowered
    if heads:
        program = merge_heads(program if isinstance(program, QKVLProgram) else QKVLProgram.from_json(program))
    qkvl = program.to_json() if isinstance(program, QKVLProgram) else dict(program)
    made = DATConfig(qkvl=qkvl, **config)
    return DATForCausalLM(made).eval(), DATTokenizer.from_config(made)


def compile_file(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    heads: bool = False,
    **config: Any,
) -> DATForCausalLM:
    """Compiles a program and writes a checkpoint: weights, configuration, tokenizer, code, the program's text.

    The folder is written under another name and then renamed: it is complete or absent. A kill leaves the old or the
    new checkpoint under its name, or the old one to be restored by the next call, also of `hf-mech run`.

    Args:
        source: the program's file, or the name of one of the package's programs.
        folder: the checkpoint's folder; `AutoModelForCausalLM.from_pretrained(folder)` loads it.
        heads: as in `compile_program`.
        overwrite: whether to replace an earlier checkpoint. Files that do not belong to a checkpoint are never deleted.
        config: further arguments of [`DATConfig`].

    Raises:
        ProgramsError: the program cannot be read or not be compiled exactly, or the folder is not free.
        DATError: invalid arguments.
        OutputError: the folder cannot be written; an earlier checkpoint is still there.
    """
    program = read_program(source if isinstance(source, str) else Path(source))
    folder = Path(folder).resolve()
    restore(folder)
    _check_free(folder, overwrite)
    model, tokenizer = compile_program(program, heads=heads, **config)
    with replacing(folder) as made:
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        (made / PROGRAM_FILE).write_text(program.source, "utf-8", newline="")
    return model


def _check_free(folder: Path, overwrite: bool) -> None:
    if not folder.name:
        raise ProgramsError(f"{folder} is the root of the file system; name a folder for the checkpoint")
    if folder.exists() and not folder.is_dir():
        raise ProgramsError(f"{folder} is a file; name a folder for the checkpoint")
    if folder.is_dir() and not overwrite and any(folder.iterdir()):
        raise ProgramsError(f"{folder} is not empty; name another folder, or replace the checkpoint there (--force)")
