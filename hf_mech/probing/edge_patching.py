"""Patching one edge of a compiled program's circuit: does the output change if the receiver reads another message?

The receiver reads what it would read if the sender had sent another message; all else runs as it is. For that, each
cell has a second state, in which the sender's message is replaced, and which the receiver alone reads.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from hf_mech.models.dat.dat_embedding import Fillers, Registers
from hf_mech.models.dat.dat_layer import (
    KAPPA,
    DATLayer,
    VectorBackend,
    allowed_pairs,
    attention_weights,
    match_scores,
)
from hf_mech.models.dat.dat_machine import Cells, History, Machine, Readable
from hf_mech.models.dat.dat_program import Block, Heads, Layer, Match, Statement
from hf_mech.models.dat.dat_states import read_mask, read_registers, split
from hf_mech.models.dat.modeling_dat import DATForCausalLM
from hf_mech.probing.circuits import EMBED, POSITIONS, circuit_of, ending, output, receiver, sender

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

    Raises:
        TypeError: the model is no compiled program.
        ValueError: an edge between nodes that the program has not, another word for `instead`, or one prompt where
            another one is asked for.
    """
    size = len(batch["input_ids"])
    if instead not in get_args(Instead):
        raise ValueError(f"instead must be one of {', '.join(map(repr, get_args(Instead)))}, got {instead!r}.")
    if instead == "another prompt" and size < 2:
        raise ValueError(f"instead={instead!r} needs a batch of two prompts or more, got {size}.")
    if unknown := set(edges) - set(circuit_of(model).candidates):
        raise ValueError(
            f"{sorted(unknown)[0]} is no edge from a sender of the program to a receiver; circuit_of(model).candidates "
            "has all of them."
        )
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
            # The same draws in every repetition, so that blocks end.
            draws = torch.Generator().manual_seed(self.seed + key[2])
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
        super().__init__(dat.program, dat.layers_in_order(), embedding, dat.end_of_prompt, 0.0)
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
            assert isinstance(module, DATLayer)
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
