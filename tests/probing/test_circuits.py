"""Circuits of compiled programs: edges of the program, and what patching finds of them."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from hf_mech.cli.app import app
from hf_mech.models.dat import DATConfig, DATForCausalLM
from hf_mech.probing.circuits import EMBED, POSITIONS, Circuit, Instead, circuit_of, edge_effects, receiver, sender
from hf_mech.programs.psl import compile_program, program_text
from training.machines.circuits import CASES
from training.machines.words import FORMS

UNUSED: dict[str, set[tuple[str, str]]] = {
    # No word is nil, so no cell looks for one; and what has come before has a word behind it, so nothing goes silent.
    "induction": {
        (EMBED, receiver(1, 0, "k")),
        (EMBED, "blocks.1.hook_resid_post"),
        (sender(0, 0), "blocks.1.hook_resid_post"),
    },
    # `parse` is 1 where R1 and R2 ask for 0: no other value of it is 0; and R3 has said a word wherever one is read.
    "reverse": {(EMBED, receiver(0, 0, "q")), (EMBED, receiver(1, 0, "q")), (EMBED, "blocks.2.hook_resid_post")},
    # C4 ends the work of C1 and C2 in cells of the completion, whose rank nobody asks for; C3 asks as R1 does.
    "count": {
        (sender(3, 0), receiver(0, 0, "q")),
        (sender(3, 0), receiver(1, 0, "q")),
        (EMBED, receiver(2, 0, "q")),
        (EMBED, "blocks.3.hook_resid_post"),
    },
    "majority": {
        (sender(4, 0), receiver(0, 0, "q")),
        (sender(4, 0), receiver(1, 0, "q")),
        (sender(4, 0), receiver(2, 0, "q")),
        (EMBED, receiver(3, 0, "q")),
        (EMBED, "blocks.4.hook_resid_post"),
    },
}
"""Edges that the programs have, and that no prompt of the test needs: the reasons."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The tensors are small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def compiled(program: str, **options: Any) -> tuple[DATForCausalLM, Any, Circuit]:
    model, tokenizer = compile_program(program, max_position_embeddings=26, num_open_values=24, **options)
    return model, tokenizer, circuit_of(model)


def prompts_of(name: str, tokenizer: Any, count: int, seed: int = 0) -> Any:
    function, form = FORMS[name]
    draw = random.Random(seed)
    drawn = [form(draw, 12) for _ in range(count)]
    texts = [" ".join(words) for words in drawn], [" ".join(function(words)) for words in drawn]
    return tokenizer(*texts, padding=True, return_tensors="pt")


def found(model: DATForCausalLM, batch: Any, edges: list[tuple[str, str]], seeds: int = 2) -> set[tuple[str, str]]:
    """The edges along which some message changes some prompt's logits."""
    effects = [edge_effects(model, batch, edges, way, seed) for way in get_args(Instead) for seed in range(seeds)]
    return {edge for edge, changed in zip(edges, torch.stack(effects).any(0).any(1).tolist(), strict=True) if changed}


@pytest.mark.parametrize("name", UNUSED)
def test_patching_finds_the_edges_of_the_program_and_no_others(name: str) -> None:
    model, tokenizer, circuit = compiled(program_text(name))
    batch = prompts_of(name, tokenizer, 10)
    assert UNUSED[name] <= set(circuit.pairs) < set(circuit.candidates)
    assert found(model, batch, circuit.candidates) == set(circuit.pairs) - UNUSED[name]
