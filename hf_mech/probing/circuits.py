"""A compiled program as a circuit: its true edges, from the program and not from its weights, and patching along them.

A node that sends is the embedding, the positions, or a head, which is a production: it sends what it writes into the
registers of a cell. A node that receives is the query, key or value of a head, the tests that end a repeat block, or
the unembedding. An edge says that a value written by the sender may stand in a register when the receiver reads it. The
names are those of TransformerLens and InterpBench.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from hf_mech.models.dat.dat_embedding import Fillers, Registers
from hf_mech.models.dat.dat_layer import KAPPA, VectorBackend, allowed_pairs, attention_weights, match_scores
from hf_mech.models.dat.dat_machine import Cells, History, Machine, Readable
from hf_mech.models.dat.dat_program import Block, DATProgram, Heads, Layer, Match, Statement
from hf_mech.models.dat.dat_states import read_mask, read_registers, split
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

    Example:

    ```python
    >>> from hf_mech.programs.psl import compile_program, program_text
    >>> circuit = circuit_of(compile_program(program_text("induction"))[0])
    >>> [(edge.source, edge.registers) for edge in circuit.edges if edge.target == "blocks.1.hook_k_input[0]"]
    [('hook_embed', ('b',)), ('blocks.0.attn.hook_result[0]', ('b',))]

    ```
    """
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


# ----------------------------------------------------------------------------------------------------------------------
# Patching: the receiver reads what it would read if the sender had sent another message; all else runs as it is.


Instead = Literal["another prompt", "another value", "nothing"]
"""What goes along a patched edge: the sender's message on another prompt of the batch, at the same place and time; in
each cell another value that the register has in some cell at some time; or no message, as if the sender were silent."""


@torch.no_grad()
def edge_effects(
    model: DATForCausalLM,
    batch: Mapping[str, Tensor],
    edges: Sequence[tuple[str, str]],
    instead: Instead = "another prompt",
    seed: int = 0,
    rows: int = 512,
) -> Tensor:
    """Whether the logits of each prompt change if one edge is patched.

    The receiver alone reads another message, and all other edges stay as they are. A patch may lead to a repeat block
    that never ends; it is ended after twice as many layers as without the patch.

    Args:
        model: a compiled program, with any backend; the computation is that of `"dense"`, by the model's own layers.
        batch: of the tokenizer: prompts, each with the words of its completion; padded.
        edges: senders and receivers, by name.
        instead: what goes along the edge, see [`Instead`].
        seed: which other prompt, counted from the next one, or which values.
        rows: prompts times edges that are computed at once.

    Returns:
        bool [edges, prompts].
    """
    size = len(batch["input_ids"])
    clean = _Patched(model, None)
    expected = clean.logits(batch, torch.arange(size))
    found, step = [], max(1, rows // size)
    for start in range(0, len(edges), step):
        some = edges[start : start + step]
        patched = _Patched(model, _Plan(some, size, instead, seed, clean.sent, clean.held, clean.steps))
        logits = patched.logits(batch, torch.arange(size).repeat(len(some))).unflatten(0, (len(some), size))
        found.append(((logits - expected).abs() > 0.5 * model.config.logit_scale).flatten(2).any(-1))
    return torch.cat(found)


Sent = tuple[int, str, int, int]
"""A message: the word that is read (0: the prompt), the sender, the register, and how often the sender has sent."""


class _Plan:
    """A row for every edge and prompt.

    Args:
        edges: the edges.
        size: the number of prompts.
        instead, seed: as in `edge_effects`.
        sent: the messages in a run without patches, [prompts, cells, width].
        held: by register the values that it held there.
        steps: for the prompt and every word, how many layers ran there.
    """

    def __init__(
        self,
        edges: Sequence[tuple[str, str]],
        size: int,
        instead: Instead,
        seed: int,
        sent: Mapping[Sent, Tensor],
        held: Mapping[int, set[int]],
        steps: Sequence[int],
    ):
        self.edges, self.size, self.instead, self.sent, self.held = edges, size, instead, sent, held
        self.others = torch.arange(size).roll(-1 - seed % max(1, size - 1))
        self.seed, self.steps = 1_000 * seed, steps

    def message(self, key: Sent, message: Tensor, fillers: Fillers) -> Tensor:
        """What is sent instead of a message [rows, cells, width]."""
        if self.instead == "another value":
            held = torch.tensor(sorted(self.held[key[2]]))
            draws = torch.Generator().manual_seed(
                self.seed + key[2]
            )  # the same in every repetition, so that blocks end
            drawn = held[torch.randint(len(held), message.shape[:2], generator=draws)]
            return fillers.embed(drawn).to(message) * (message.abs().amax(-1, keepdim=True) > 0)
        clean = self.sent.get(key)  # a patch may lead to more repetitions
        if self.instead == "nothing" or clean is None:
            return torch.zeros_like(message)
        return clean[self.others].repeat(len(self.edges), 1, 1)

    def sending(self, name: str) -> Tensor:
        """The rows whose sender this is, [rows]."""
        return torch.tensor([source == name for source, _ in self.edges]).repeat_interleave(self.size)

    def receiving(self, name: str) -> Tensor:
        """The rows whose receiver this is, [rows]."""
        return torch.tensor([target == name for _, target in self.edges]).repeat_interleave(self.size)


class _Patched(VectorBackend):
    """The dense backend with a second state of each cell, behind the first: the one the receiver of the row reads."""

    def __init__(self, model: DATForCausalLM, plan: _Plan | None):
        dat = model.dat
        embedding = dat.embedding(dat.device)
        super().__init__(dat.program, dat._layers(), embedding, dat._end(), 0.0)
        self.model, self.plan = model, plan
        self.sent: dict[Sent, Tensor] = {}
        self.held: dict[int, set[int]] = {}
        self.steps = [0]
        self.group, self.times = 0, dict[tuple[str, int], int]()
        self.endings = {id(block.until): number for number, block in enumerate(self.program.blocks)}

    def logits(self, batch: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        """The logits at the end of the prompt and of every word behind it, [rows, words, values]; zero for padding."""
        ids = batch["input_ids"][rows]
        mask = read_mask(batch.get("attention_mask"), batch["input_ids"])[rows]
        given = None if batch.get("register_values") is None else batch["register_values"][rows]
        prompt, words, _ = split(ids, mask)
        program = replace(self.program, statements=_without_bounds(self.program.statements))
        machine = Machine(program, self)
        first = read_registers(given, ids, prompt, program.registers, program.prompt, self.model.config.vocab_size)
        history: History[Any] = History([machine.read_prompt(prompt.symbols, prompt.exists, first)])
        for column in range(words.symbols.shape[1]):
            self.group, self.times = column + 1, {}
            self.steps.append(0)
            piece = slice(column, column + 1)
            history.groups.append(machine.read_word(words.symbols[:, piece], words.exists[:, piece], history))
        said = [self._said(group.last) for group in history.groups]
        real = torch.cat([prompt.exists[:, :1], words.exists], 1)  # a prompt has a first word
        return self.model.unembed(torch.cat(said, 1)) * real[..., None]

    def _said(self, last: Registers) -> Tensor:
        """The output register of the last cell, as the row's receiver sees it."""
        real, patched = self._both(last)
        node = output(len(self.program.layers))
        return self.embedding.local(self._seen(node, real, patched), self.program.parts["output"])

    def _both(self, registers: Registers) -> tuple[Registers, Registers]:
        half = len(registers) // 2
        return registers[:half], registers[half:]

    def _seen(self, node: str, real: Registers, patched: Registers) -> Registers:
        """The state that a node reads, which is the second one in rows whose receiver it is."""
        if self.plan is None or not bool((rows := self.plan.receiving(node)).any()):
            return real
        return _where(rows, patched, real)

    # ---------------------------------------------------------------------------------- the embedding and the positions

    def begin(self, symbols: Tensor, cells: Cells, ends: Tensor, given: Mapping[int, Tensor]) -> Registers:
        real = super().begin(symbols, cells, ends, given)
        return (*real, *self._replaced(real, real, range(self.embedding.number)))

    def carry(self, last: Registers, symbols: Tensor, cells: Cells) -> Registers:
        real, patched = (super(_Patched, self).carry(state, symbols, cells) for state in self._both(last))
        own = (self.program.parts["symbol"], self.program.parts["position"])
        return (*real, *self._replaced(real, patched, own))

    def _replaced(self, real: Registers, patched: Registers, indices: Iterable[int]) -> Registers:
        """The second state with the message of another prompt, or none, in these registers."""
        position = self.program.parts["position"]
        for index in indices:
            source = POSITIONS if index == position else EMBED
            (message,) = self._message(source, [index], [self.embedding.unbind(real, index)])
            patched = self.embedding.act(patched, index, message)
        return patched

    # ------------------------------------------------------------------------------------------------------- the heads

    def step(
        self, layer: Layer | Heads, registers: Registers, cells: Cells, readable: Readable
    ) -> tuple[Registers, Tensor]:
        self.steps[-1] += 1
        real, patched = self._both(registers)
        every, every_patched = self._both(tuple(readable.register(index) for index in range(len(registers))))
        after, after_patched = real, patched
        for number, (head, module) in enumerate(zip(layer.heads, self.layers[layer.index].heads, strict=True)):
            ports = {port: receiver(layer.index, number, port) for port in ("q", "k", "v")}
            queries = module.query(self._seen(ports["q"], real, patched), self.embedding)
            keys = module.key(self._seen(ports["k"], every, every_patched), self.embedding)
            values = module.value(self._seen(ports["v"], every, every_patched), self.embedding)
            allowed = allowed_pairs(cells, readable, head.causal)
            scores = match_scores(queries, keys)
            weights = attention_weights(scores, len(queries), allowed, head.right_match, 0.0)
            messages = [weights @ value.expand(len(weights), -1, -1) for value in values]
            targets = [target for target, _ in head.writes]
            after = self._write(after, targets, messages)
            after_patched = self._write(
                after_patched, targets, self._message(sender(layer.index, number), targets, messages)
            )
        active = cells.exists[..., None]
        made = tuple(
            old if new is old else torch.where(active, new, old)
            for old, new in zip(registers, (*after, *after_patched), strict=True)
        )
        return made, torch.empty(0)

    def _write(self, state: Registers, targets: Sequence[int], messages: Sequence[Tensor]) -> Registers:
        for target, message in zip(targets, messages, strict=True):
            new = self.embedding.fillers.norm(self.embedding.unbind(state, target) + KAPPA * message)
            state = self.embedding.act(state, target, new)
        return state

    def _sends(self, source: str) -> Tensor | None:
        """The rows whose sender this is; None if there are none."""
        rows = None if self.plan is None else self.plan.sending(source)
        return rows if rows is not None and bool(rows.any()) else None

    def _message(self, source: str, targets: Sequence[int], messages: list[Tensor]) -> list[Tensor]:
        """What the second state gets of a sender: in the rows whose sender it is, what goes along the edge instead."""
        made = []
        for target, message in zip(targets, messages, strict=True):
            times = (source, target)
            self.times[times] = self.times.get(times, -1) + 1
            key = (self.group, source, target, self.times[times])
            if self.plan is None:
                self.sent[key] = message
                values = self.embedding.fillers.values(message)[message.abs().amax(-1) > 0]
                self.held.setdefault(target, set()).update(values.unique().tolist())
            elif (rows := self._sends(source)) is not None:
                message = torch.where(
                    rows.view(-1, 1, 1), self.plan.message(key, message, self.embedding.fillers), message
                )
            made.append(message)
        return made

    # ---------------------------------------------------------------------------------------------------- repeat blocks

    def _too_long(self) -> bool:
        """Whether a patch has led to a repeat block that may never end; it ends now."""
        return self.plan is not None and self.steps[-1] > 2 * self.plan.steps[self.group] + 20

    def changed(self, before: Tensor, after: Tensor) -> Tensor:
        moved = super().changed(before, after)
        return torch.zeros_like(moved) if self._too_long() else moved

    def holds(self, matches: tuple[Match, ...], registers: Registers, cells: Cells, readable: Readable) -> Tensor:
        number = self.endings[id(matches)]
        real = self._seen(ending(number, "q"), *self._both(registers))
        every = self._seen(ending(number, "k"), *self._both(tuple(readable.register(i) for i in range(len(registers)))))
        return self._too_long() | super().holds(
            matches, real, cells, Readable(readable.exists, readable.positions, every.__getitem__, readable.own)
        )


def _where(rows: Tensor, new: Registers, old: Registers) -> Registers:
    return tuple(torch.where(rows.view(-1, 1, 1), one, other) for one, other in zip(new, old, strict=True))


def _without_bounds(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The same with no bounds of repeat blocks; a run with a patch has another end, see `edge_effects`."""
    return tuple(
        replace(one, bound=sys.maxsize, body=_without_bounds(one.body)) if isinstance(one, Block) else one
        for one in statements
    )
