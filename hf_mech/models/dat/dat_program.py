"""The values of registers, and the program in QKVL, the JSON of App. J, with every name resolved to an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import torch
from torch import Tensor


class DATError(ValueError):
    """An invalid configuration, checkpoint, input, or use of a compiled program; the message says how to fix it."""


class DATLengthError(DATError):
    """A prompt with its completion has more words than the model has positions."""


class DATVocabularyError(DATError):
    """One call of the tokenizer has more different new words than there are open places."""


class DATRepeatError(DATError):
    """A repeat block has not ended within its `bound`.

    Args:
        comment: of the block.
        bound: how many repetitions it may take.
    """

    def __init__(self, comment: str, bound: int):
        super().__init__(comment, bound)
        self.comment, self.bound = comment, bound

    def __str__(self) -> str:
        return (
            f"The repeat block {self.comment!r} has not ended after {self.bound} repetitions; raise its bound, "
            "`repeat N:`, or mend its condition."
        )


class DATEmbeddingError(DATError, NotImplementedError):
    """A DAT has no table of embeddings; transformers knows such models by `NotImplementedError`."""


# --------------------------------------------------------------------------------------------------------------- values

# A value's index is also its neuron within a register and its token id. `nil`, no value, has its own neuron, so a
# register is always one-hot and two empty registers are equal. The open places have no value until a tokenizer assigns
# them to new words.

NIL, END_OF_PROMPT = 0, 1
FIRST_NUMBER = 2
UNDEFINED = -1
UNSET = -100
"""In the first values of registers: the program decides."""


class ValueSpace:
    """The one space of values that all registers share, (68c).

    Args:
        largest: T, the largest number; the numbers are 0 to T.
        constants: the program's constants, without these numbers.
        num_open: the number of places for words that the program does not name.
    """

    def __init__(self, largest: int, constants: Sequence[str], num_open: int):
        self.largest, self.constants, self.num_open = largest, tuple(constants), num_open
        self.first_constant = FIRST_NUMBER + largest + 1
        self.first_open = self.first_constant + len(self.constants)
        self._indices = {constant: self.first_constant + i for i, constant in enumerate(self.constants)}

    def __len__(self) -> int:
        return self.first_open + self.num_open

    def index(self, value: str | None) -> int | None:
        """The index of a value; None if it is neither a constant nor a number of this space."""
        if value is None:
            return NIL
        if is_number(value, self.largest):
            return FIRST_NUMBER + int(value)
        return self._indices.get(value)

    def value(self, index: int) -> str | None:
        """The value at an index; None for nil, and for the open places, which only a tokenizer can name."""
        if FIRST_NUMBER <= index < self.first_constant:
            return str(index - FIRST_NUMBER)
        if self.first_constant <= index < self.first_open:
            return self.constants[index - self.first_constant]
        return None

    def table(self, function: str, registered: Mapping[str, Mapping[str, str]]) -> Tensor:
        """A function as a table, [len(self)]: the index of its value at each index, `UNDEFINED` where it has none.

        `pos_increment` and `pos_decrement` are built in, (61b); `registered` has the other functions as mappings.

        Raises:
            KeyError: there is no such function.
        """
        table = torch.full((len(self),), UNDEFINED)
        numbers = torch.arange(FIRST_NUMBER, self.first_constant)
        if function == "pos_increment":
            table[numbers[:-1]] = numbers[1:]
        elif function == "pos_decrement":
            table[numbers[1:]] = numbers[:-1]
        else:
            for source, target in registered[function].items():
                left, right = self.index(source), self.index(target)
                if left is not None and right is not None:
                    table[left] = right
        return table

    def tables(
        self, registered: Mapping[str, Mapping[str, str]], device: torch.device | None = None
    ) -> dict[str, Tensor]:
        """All functions as tables, by name."""
        return {name: self.table(name, registered).to(device) for name in (*BUILT_IN, *registered)}


BUILT_IN = ("pos_increment", "pos_decrement")


def is_number(value: str, largest: int) -> bool:
    """Whether the text is one of the numbers 0 to `largest`, without leading zeros."""
    return value.isascii() and value.isdigit() and str(int(value[:9])) == value and int(value) <= largest


# -------------------------------------------------------------------------------------------------------------- program

PARTS = ("symbol", "position", "output", "parse", "eop")
PARSING, END = "1", "EOP"  # the first values of the registers `parse` and `eop`, (70b)
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)  # errors for JSON of another shape


@dataclass(frozen=True)
class Operand:
    """One side of a match: a register through a function, or constants by index; perhaps negated, (64), (72)."""

    register: int | None = None
    function: str | None = None
    values: tuple[int, ...] = ()
    negated: bool = False

    @property
    def single(self) -> bool:
        """Whether it is one value, not a condition on values."""
        return not self.negated and (self.register is not None or len(self.values) == 1)


@dataclass(frozen=True)
class Match:
    """One entry of the query and the key under the same target name."""

    target: str
    query: Operand
    key: Operand


@dataclass(frozen=True)
class Layer:
    """One production: its matches, and for each written register the register or constant that is copied to it."""

    index: int
    matches: tuple[Match, ...]
    writes: tuple[tuple[int, Operand], ...]
    right_match: bool
    causal: bool
    comment: str

    @property
    def heads(self) -> tuple[Layer, ...]:
        """Itself: a layer of one head."""
        return (self,)


@dataclass(frozen=True)
class Heads:
    """A layer of several productions that do not conflict, (90a); all read the layer's input.

    Args:
        heads: with the same index, that of the layer.
    """

    index: int
    heads: tuple[Layer, ...]
    comment: str


Statement = Union["Layer", "Heads", "Block"]


@dataclass(frozen=True)
class Block:
    """A repeat block; `until` is None for NO_CHANGE."""

    body: tuple[Statement, ...]
    until: tuple[Match, ...] | None
    bound: int
    comment: str


@dataclass(frozen=True)
class DATProgram:
    """A program over registers by index.

    Args:
        registers: short names, in order.
        parts: for each role of `PARTS` in the program, the index of its register.
        initial: register -> its first value in every prompt cell.
        prompt: the registers that a prompt may set.
        statements: layers and blocks, in order.
        stops: the values of the output register that end a completion, besides nil.
    """

    registers: tuple[str, ...]
    parts: Mapping[str, int]
    initial: Mapping[int, int]
    prompt: tuple[int, ...]
    statements: tuple[Statement, ...]
    stops: tuple[int, ...] = ()

    @property
    def layers(self) -> list[Layer | Heads]:
        """All layers in order, including those in blocks."""
        return [statement for statement in _nested(self.statements) if not isinstance(statement, Block)]

    @property
    def productions(self) -> list[Layer]:
        """All productions in order: the heads of all layers."""
        return [head for layer in self.layers for head in layer.heads]

    @property
    def blocks(self) -> list[Block]:
        """All repeat blocks in order, each before its nested blocks."""
        return [statement for statement in _nested(self.statements) if isinstance(statement, Block)]


def _nested(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """The statements; after each block come its own statements."""
    for statement in statements:
        yield statement
        if isinstance(statement, Block):
            yield from _nested(statement.body)


def most_heads(blocks: Sequence[Any]) -> int:
    """The most heads of a layer in the `weights` of a QKVL program."""
    most = 1
    for block in blocks:
        if "heads" in block:
            most = max(most, len(block["heads"]))
        elif isinstance(block["weights"], list):
            most = max(most, most_heads(block["weights"]))
    return most


def constants_of(qkvl: Mapping[str, Any], largest: int) -> list[str]:
    """Every constant of a QKVL program that is not a number, in order of first appearance."""
    found: dict[str, None] = {}
    registers = set(qkvl["register_map"].values())

    def add(value: Any) -> None:
        if isinstance(value, list):
            for item in value[1:]:
                found.setdefault(item) if value[0] != "!=" else add(item)
        elif value.partition("@")[0] not in registers:
            found.setdefault(value)

    def walk(blocks: list[Any]) -> None:
        for block in blocks:
            if "heads" in block:
                walk(block["heads"])
            elif isinstance(block["weights"], list):
                for part in ("q", "k"):
                    for value in (block.get("until") or {}).get(part, {}).values():
                        add(value)
                walk(block["weights"])
            else:
                for part in ("q", "k", "v"):
                    for value in block["weights"][part].values():
                        add(value)

    for group in (
        qkvl.get("constants_map", {}).values(),
        qkvl.get("initial", {}).values(),
        *qkvl.get("values", {}).values(),
        qkvl.get("stop", ()),
        *(pair for table in qkvl.get("functions", {}).values() for pair in table.items()),
    ):
        for value in group:
            found.setdefault(value)
    walk(qkvl["weights"])
    if "eop" in qkvl["system_map"]:
        found.setdefault(END)
    return [value for value in found if not is_number(value, largest)]


def read_program(qkvl: Mapping[str, Any], space: ValueSpace) -> DATProgram:
    """Resolves a QKVL program.

    Raises:
        DATError: `qkvl` is not a valid QKVL program; the message names the place.
    """
    try:
        return _Reader(qkvl, space).program()
    except MALFORMED as error:
        raise DATError(
            f"config.qkvl is no QKVL program ({type(error).__name__}: {error}); compile one with hf_mech.programs.psl."
        ) from error


class _Reader:
    def __init__(self, qkvl: Mapping[str, Any], space: ValueSpace):
        self.qkvl, self.space = qkvl, space
        self.registers: tuple[str, ...] = tuple(qkvl["register_map"].values())
        self.indices = {name: i for i, name in enumerate(self.registers)}
        if len(self.indices) != len(self.registers):
            raise DATError(f"Two registers share a short name: {sorted(self.registers)}.")
        self.functions = {*BUILT_IN, *qkvl.get("functions", {})}
        self.count = 0

    def program(self) -> DATProgram:
        names = self.qkvl["register_map"]
        parts = {part: self.indices[names[name]] for part, name in self.qkvl["system_map"].items()}
        lacking = [part for part in ("symbol", "position", "output") if part not in parts]
        if lacking:
            raise DATError(f"The program's system registers lack {lacking}.")
        if parts["symbol"] == parts["position"]:
            raise DATError(f"The register {self.registers[parts['symbol']]!r} is both symbol and position.")
        initial = {self.indices[name]: self.constant(value) for name, value in self.qkvl.get("initial", {}).items()}
        if "parse" in parts:
            initial.setdefault(parts["parse"], self.constant(PARSING))
        statements = self.statements(self.qkvl["weights"], parts["position"])
        if not self.count:
            raise DATError("config.qkvl has no layer in its weights; a program needs a production.")
        stops = tuple(self.constant(word) for word in self.qkvl.get("stop", ()))
        prompt = tuple(self.indices[name] for name in self.qkvl.get("prompt", ()))
        return DATProgram(self.registers, parts, initial, prompt, statements, stops)

    def statements(self, blocks: list[Any], position: int) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for block in blocks:
            if "heads" in block:
                made.append(self.heads(block, position))
            elif isinstance(block["weights"], list):
                until = block.get("until") or None
                body = self.statements(block["weights"], position)
                matches = self.matches(until, "until") if until else None
                bound, comment = block.get("bound", 1000), block.get("layer_comment", "")
                if type(bound) is not int or bound < 1:
                    raise DATError(f"The bound of the block {comment!r} must be 1 or more, got {bound!r}.")
                made.append(Block(body, matches, bound, comment))
            else:
                made.append(self.layer(block, position, self.next()))
        return tuple(made)

    def next(self) -> int:
        """The index of the next layer."""
        self.count += 1
        return self.count - 1

    def heads(self, block: Mapping[str, Any], position: int) -> Heads:
        index, comment = self.next(), block.get("layer_comment", "")
        heads = tuple(self.layer(head, position, index) for head in block["heads"])
        if not heads:
            raise DATError(f"layer {index} ({comment!r}) has no heads.")
        return Heads(index, heads, comment)

    def layer(self, block: Mapping[str, Any], position: int, index: int) -> Layer:
        where = f"layer {index} ({block.get('layer_comment', '')!r})"
        writes = tuple((self.indices[target], self.operand(source)) for target, source in block["weights"]["v"].items())
        if any(target == position for target, _ in writes):
            raise DATError(f"{where} writes the position register, which names the cell, (33a-ii).")
        if any(not source.single for _, source in writes):
            raise DATError(f"{where} writes what is no single value: {block['weights']['v']}.")
        return Layer(
            index,
            self.matches(block["weights"], where),
            writes,
            bool(block.get("right_match", False)),
            bool(block.get("causal_attn", False)),
            block.get("layer_comment", ""),
        )

    def matches(self, weights: Mapping[str, Any], where: str) -> tuple[Match, ...]:
        query, key = weights["q"], weights["k"]
        if set(query) != set(key) or not query:
            raise DATError(
                f"{where}: query and key must have the same targets, at least one, got {list(query)} and {list(key)}."
            )
        matches = tuple(Match(target, self.operand(query[target]), self.operand(key[target])) for target in query)
        for match in matches:
            if not (match.query.single or match.key.single):
                raise DATError(
                    f"{where}: {match.target!r} is a condition in the query, {query[match.target]}, and in the key, "
                    f"{key[match.target]}; one of them must be a single value."
                )
        return matches

    def operand(self, source: Any) -> Operand:
        if isinstance(source, list):
            kind, rest = source[0], source[1:]
            if kind == "!=":
                (inner,) = rest
                if not isinstance(inner, str):
                    raise DATError(f"Expected a register or a constant after '!=', got {inner!r}.")
                plain = self.operand(inner)
                return Operand(plain.register, plain.function, plain.values, negated=True)
            if kind not in ("in", "not in"):
                raise DATError(f"Expected '!=', 'in' or 'not in', got {kind!r} in {source}.")
            return Operand(values=tuple(self.constant(value) for value in rest), negated=kind == "not in")
        name, _, function = source.partition("@")
        if name in self.indices:
            if function and function not in self.functions:
                raise DATError(f"No function {function!r} in {source!r}; there are {sorted(self.functions)}.")
            return Operand(register=self.indices[name], function=function or None)
        return Operand(values=(self.constant(source),))

    def constant(self, value: str) -> int:
        index = self.space.index(value)
        if index is None or index == NIL:
            raise DATError(f"{value!r} is no constant of the configuration: {list(self.space.constants)}.")
        return index
