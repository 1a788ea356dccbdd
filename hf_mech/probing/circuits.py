"""A compiled program as a circuit: its true edges, which follow from the program and not from its weights.

A node that sends is the embedding, the positions, or a head, which is a production: it sends what it writes into the
registers of a cell. A node that receives is the query, key or value of a head, the tests that end a repeat block, or
the unembedding. An edge says that a value written by the sender may stand in a register when the receiver reads it. The
names are those of TransformerLens and InterpBench.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from hf_mech.models.dat.dat_program import Block, DATProgram, Heads, Layer, Match, Statement
from hf_mech.models.dat.modeling_dat import DATForCausalLM

# ----------------------------------------------------------------------------------------------------------------------
# Nodes and edges.


EMBED, POSITIONS = "hook_embed", "hook_pos_embed"


def sender(layer: int, head: int) -> str:
    """The node of what a head writes."""
    return f"blocks.{layer}.attn.hook_result[{head}]"


def receiver(layer: int, head: int, port: str) -> str:
    """The node of what a head reads; the port is `q`, `k` or `v`."""
    return f"blocks.{layer}.hook_{port}_input[{head}]"


def ending(block: int, port: str) -> str:
    """The node of the tests that end a repeat block, if it has any; the port is `q` or `k`."""
    return f"repeat.{block}.hook_{port}_input"


def output(layers: int) -> str:
    """The node of the unembedding, which reads the output register after the last layer."""
    return f"blocks.{layers - 1}.hook_resid_post"


@dataclass(frozen=True)
class Node:
    """A place that sends or receives.

    Args:
        name: as in TransformerLens and InterpBench.
        module: the submodule of [`DATForCausalLM`] whose input (of a receiver) or output (of a sender) it is; empty for
            the embedding and the ends of repeat blocks, which are no modules.
        production: the comment of the production.
        registers: those that it reads or writes, by short names.
    """

    name: str
    module: str
    production: str
    registers: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """A value that `source` has written in one of `registers` may be read by `target`.

    To the same or an earlier layer it comes in the next repetition of a repeat block, or with the next word.
    """

    source: str
    target: str
    registers: tuple[str, ...]


@dataclass(frozen=True)
class Circuit:
    """The nodes and edges of a program; the edges from a head's `q`, `k` and `v` to its result are left out."""

    senders: tuple[Node, ...]
    receivers: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The edges by the names of their nodes: InterpBench's `edges.pkl`, and an argument for a graph."""
        return [(edge.source, edge.target) for edge in self.edges]

    @property
    def candidates(self) -> list[tuple[str, str]]:
        """Every sender with every receiver."""
        return [(source.name, target.name) for source, target in product(self.senders, self.receivers)]

    def to_json(self) -> dict[str, Any]:
        """The circuit as plain data."""
        return {key: [asdict(item) for item in getattr(self, key)] for key in ("senders", "receivers", "edges")}

    def save(self, folder: str | Path) -> None:
        """Writes `edges.pkl`, a list of pairs of names as in InterpBench, and `circuit.json`, all that is known."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "edges.pkl").write_bytes(pickle.dumps(self.pairs))
        (folder / "circuit.json").write_text(json.dumps(self.to_json(), indent=1) + "\n", "utf-8")


def circuit_of(model: DATForCausalLM) -> Circuit:
    """The circuit of a compiled program: who may read what whom has written.

    Raises:
        TypeError: the model is no compiled program.

    Example:

    ```python
    >>> from hf_mech.programs.psl import compile_program, program_text
    >>> circuit = circuit_of(compile_program(program_text("induction"))[0])
    >>> [(edge.source, edge.registers) for edge in circuit.edges if edge.target == "blocks.1.hook_k_input[0]"]
    [('hook_embed', ('b',)), ('blocks.0.attn.hook_result[0]', ('b',))]

    ```
    """
    if not isinstance(model, DATForCausalLM):
        raise TypeError(f"A circuit is known of a compiled program, a DATForCausalLM; got a {type(model).__name__}.")
    program = model.dat.program
    flow = _Flow(program)
    named = program.registers
    edges = [
        Edge(source, target, tuple(named[index] for index in sorted(indices)))
        for (source, target), indices in flow.edges.items()
    ]
    senders, receivers = [node for node, _ in _senders(program)], list(_receivers(program))
    order = {node.name: place for place, node in enumerate([*senders, *receivers])}
    edges.sort(key=lambda edge: (order[edge.target], order[edge.source]))
    return Circuit(tuple(senders), tuple(receivers), tuple(edges))


def _heads(program: DATProgram) -> Iterator[tuple[int, int, Layer, str]]:
    """Every head: its layer, its number there, its production, and its module."""
    for layer in program.layers:
        for number, head in enumerate(layer.heads):
            inner = f".heads.{number}" if isinstance(layer, Heads) else ""
            yield layer.index, number, head, f"dat.layers.{layer.index}{inner}"


def _senders(program: DATProgram) -> Iterator[tuple[Node, tuple[int, int] | None]]:
    """The nodes that send, with layer and head."""
    named, position = program.registers, program.parts["position"]
    others = tuple(name for index, name in enumerate(named) if index != position)
    yield Node(EMBED, "", "", others), None
    yield Node(POSITIONS, "", "", (named[position],)), None
    for layer, number, head, module in _heads(program):
        written = tuple(named[target] for target, _ in head.writes)
        yield Node(sender(layer, number), module, head.comment, written), (layer, number)


def _reads(head: Layer) -> dict[str, list[int]]:
    """The registers that each port of a head reads."""
    sources = {"v": [source for _, source in head.writes]} | _sides(head.matches)
    return {
        port: sorted({side.register for side in sources[port] if side.register is not None}) for port in ("q", "k", "v")
    }


def _sides(matches: Sequence[Match]) -> dict[str, list[Any]]:
    return {"q": [match.query for match in matches], "k": [match.key for match in matches]}


def _until(block: Block) -> dict[str, list[int]]:
    """The registers that each side of the tests reads which end a block."""
    sides = _sides(block.until or ())
    return {port: sorted({s.register for s in own if s.register is not None}) for port, own in sides.items()}


def _receivers(program: DATProgram) -> Iterator[Node]:
    named = program.registers
    for layer, number, head, module in _heads(program):
        for port, word in (("q", "query"), ("k", "key"), ("v", "value")):
            reads = tuple(named[index] for index in _reads(head)[port])
            yield Node(receiver(layer, number, port), f"{module}.{word}", head.comment, reads)
    for number, block in enumerate(program.blocks):
        if block.until is not None:
            for port, indices in _until(block).items():
                yield Node(ending(number, port), "", block.comment, tuple(named[index] for index in indices))
    yield Node(output(len(program.layers)), "unembed", "", (named[program.parts["output"]],))


# ----------------------------------------------------------------------------------------------------------------------
# The edges: which writers reach which reader, by the order of the productions.


State = dict[int, frozenset[str]]
"""By register: the nodes that may have written what it holds."""


class _Flow:
    """Follows the program until nothing is new; all cells are in the same state, as each passes the same layers."""

    def __init__(self, program: DATProgram):
        self.program = program
        self.edges: dict[tuple[str, str], set[int]] = {}
        self.position = program.parts["position"]
        self.numbers = {id(block): number for number, block in enumerate(program.blocks)}
        begin: State = {index: frozenset({EMBED}) for index in range(len(program.registers))}
        begin[self.position] = frozenset({POSITIONS})
        start = begin
        while True:
            end = self.statements(program.statements, start)
            self.read(end, output(len(program.layers)), [program.parts["output"]])
            own = {index: begin[index] for index in (self.position, program.parts["symbol"])}
            if (joined := _joined(start, end | own)) == start:  # the next word's cell begins as this one ends, (71a)
                return
            start = joined

    def read(self, state: State, node: str, registers: Iterable[int]) -> None:
        for index in registers:
            for source in state[index]:
                self.edges.setdefault((source, node), set()).add(index)

    def statements(self, statements: Sequence[Statement], state: State) -> State:
        for statement in statements:
            state = self.block(statement, state) if isinstance(statement, Block) else self.layer(statement, state)
        return state

    def block(self, block: Block, state: State) -> State:
        while True:
            end = self.statements(block.body, state)
            for port, registers in _until(block).items():
                self.read(end, ending(self.numbers[id(block)], port), registers)
            if (joined := _joined(state, end)) == state:
                return end
            state = joined

    def layer(self, layer: Layer | Heads, state: State) -> State:
        made = dict(state)
        for number, head in enumerate(layer.heads):
            for port, registers in _reads(head).items():
                self.read(state, receiver(layer.index, number, port), registers)
            for target, source in head.writes:
                stays = made[target] if source.function or not self.always(head) else frozenset()
                made[target] = stays | {sender(layer.index, number)}
        return made

    def always(self, head: Layer) -> bool:
        """Whether every cell writes: its only test is that its position is its position."""
        sides = [side for match in head.matches for side in (match.query, match.key)]
        return all(side.register == self.position and not (side.function or side.negated) for side in sides)


def _joined(one: State, other: State) -> State:
    return {index: one[index] | other[index] for index in one}
