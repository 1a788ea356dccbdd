"""Hidden states of a prompt's cells: of the compiled program, and of a GPT-2 that reads the same words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from accelerate.utils import set_seed
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from hf_mech.programs.psl.compile import compile_program
from hf_mech.programs.psl.library import load_program, program_text
from hf_mech.programs.psl.machines import PSM
from hf_mech.programs.templatic.batches import Layout

from .settings import Run

PROGRAM = "pargen"
BATCH = 20
REGIONS = ("XA", "CQ", "CA")
"""The cells that are looked at: which symbols of XQ are delimiters shows in CQ only, behind them (58)."""


def parse_of(prompts: Sequence[str]) -> tuple[list[list[dict[str, str | None]]], int]:
    """The state of every cell of every prompt when PARGEN has parsed it, and the production after which it has.

    That is P11, after which the last cell generates.
    """
    machine = PSM(load_program(program_text(PROGRAM)))
    parsed, production = [], 0
    for prompt in prompts:
        steps = machine.run(prompt, max_new_tokens=0).trace[0]
        last = next(step for step in steps if step.cells[-1]["parse"] == "0")
        parsed.append([dict(cell) for cell in last.cells])
        production = last.path.production
    return parsed, production


def states_of(run: Run, prompts: Sequence[str], production: int) -> dict[int, Tensor]:
    """The hidden states of all cells of all prompts, one prompt behind the other, [cells, hidden], by layer.

    Layer 0 is the embedding. Of the compiled program there is one layer, the one that ends the parse.
    """
    layers: dict[int, list[Tensor]] = {}
    batches = _program_states(prompts, production) if run.subject == "pargen" else _learned_states(run, prompts)
    for states in batches:
        for layer, own in states.items():
            layers.setdefault(layer, []).append(own)
    return {layer: torch.cat(parts) for layer, parts in layers.items()}


def _program_states(prompts: Sequence[str], production: int) -> Iterator[dict[int, Tensor]]:
    longest = max(len(prompt.split()) for prompt in prompts)
    words = len({word for prompt in prompts for word in prompt.split()})
    model, tokenizer = compile_program(
        program_text(PROGRAM), max_position_embeddings=longest + 1, num_open_values=words
    )
    for batch in _batches(prompts):
        texts = tokenizer(batch, padding=True, return_tensors="pt")
        with torch.no_grad():
            states: Any = model.dat(**texts, output_hidden_states=True)
        cells = texts["attention_mask"].bool() & (texts["input_ids"] != model.config.eop_token_id)
        yield {production: states.hidden_states[production][cells]}


def _learned_states(run: Run, prompts: Sequence[str]) -> Iterator[dict[int, Tensor]]:
    tokenizer = AutoTokenizer.from_pretrained(run.checkpoint)
    if run.subject == "trained":
        model = AutoModelForCausalLM.from_pretrained(run.checkpoint)
    else:
        set_seed(run.seed)
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(run.checkpoint))
    layout = Layout(tokenizer, "decoder")
    for batch in _batches(prompts):
        texts = layout.prompts({"prompt": batch})
        mask = texts["attention_mask"]
        positions = (mask.cumsum(1) - 1).clamp(min=0)  # as in training
        with torch.no_grad():
            states = model.eval()(**texts, position_ids=positions, output_hidden_states=True).hidden_states
        yield {layer: own[mask.bool()] for layer, own in enumerate(states)}


def _batches(prompts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(prompts), BATCH):
        yield list(prompts[start : start + BATCH])
