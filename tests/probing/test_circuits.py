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
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from hf_mech.cli.app import app
from hf_mech.models.dat import DATConfig, DATForCausalLM
from hf_mech.probing.circuits import EMBED, POSITIONS, Circuit, circuit_of, receiver, sender
from hf_mech.probing.edge_patching import Instead, edge_effects
from hf_mech.programs.psl import compile_program, program_text
from training.machines.circuits import CASES
from training.machines.words import FORMS

UNUSED: dict[str, set[tuple[str, str]]] = {
    # No word is nil, so no cell looks for one whose `before` is empty.
    "induction": {(EMBED, receiver(1, 0, "k"))},
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
    batch = prompts_of(name, tokenizer, 10, seed=1)
    assert UNUSED[name] <= set(circuit.pairs) < set(circuit.candidates)
    assert found(model, batch, circuit.candidates) == set(circuit.pairs) - UNUSED[name]


# ------------------------------------------------------------------------------------------------------ small circuits

BEGIN = """
registers: {symbol: 's', position: 'p', one: 'x', two: 'y'}
system: {symbol: symbol, position: position, output: two}
"""


def test_a_write_that_is_always_written_over_has_no_edge() -> None:
    program = """
where position[n] == position[N]@pos_decrement:
    one[N] = symbol[n]
where position[N] == position[N]:
    one[N] = symbol[N]
where one[n] == symbol[N]:
    two[N] = one[n]
"""
    model, tokenizer, circuit = compiled(BEGIN + program)
    batch = tokenizer(["a b c", "c a a b"], ["c", "b"], padding=True, return_tensors="pt")
    first = [edge for edge in circuit.candidates if edge[0] == sender(0, 0)]
    assert not set(first) & set(circuit.pairs)
    assert found(model, batch, first) == set()
    assert (sender(1, 0), receiver(2, 0, "v")) in found(model, batch, circuit.candidates)
    sometimes = program.replace("where position[N] == position[N]", 'where symbol[N] == "b"')
    assert (sender(0, 0), receiver(2, 0, "v")) in circuit_of(compile_program(BEGIN + sometimes)[0]).pairs


def test_tests_that_end_a_block_are_nodes() -> None:
    program = """
where position[N] == 1:
    one[N] = symbol[N]
repeat 20:
    where position[n] == position[N]@pos_decrement and one[n] in ["a", "b"]:
        one[N] = one[n]
until one[n] == "a" and symbol[n] == "stop"
where position[N] == position[N]:
    two[N] = one[N]
"""
    model, tokenizer, circuit = compiled(BEGIN + program)
    batch = tokenizer(["a c stop", "a stop c c"], padding=True, return_tensors="pt")
    ends = {(EMBED, "repeat.0.hook_k_input"), (sender(1, 0), "repeat.0.hook_k_input")}
    assert {pair for pair in circuit.pairs if pair[1].startswith("repeat")} >= ends
    assert found(model, batch, circuit.candidates, 1) <= set(circuit.pairs)
    assert (EMBED, "repeat.0.hook_k_input") in found(model, batch, sorted(ends))


def test_heads_of_one_layer_have_edges_of_their_own() -> None:
    model, tokenizer, circuit = compiled(program_text("reverse"), heads=True)
    assert found(model, prompts_of("reverse", tokenizer, 4), circuit.candidates, 1) <= set(circuit.pairs)
    modules = [node.module for node in circuit.receivers]
    assert all(model.get_submodule(name) is not None for name in modules)
    pargen = circuit_of(compile_program(program_text("pargen"), heads=True)[0])
    assert any(node.name.endswith("[1]") and ".heads.1." in node.module for node in pargen.receivers)


def test_with_dense_vectors_the_circuit_is_the_same() -> None:
    model, tokenizer, circuit = compiled(program_text("induction"), embedding="semi_local")
    batch = prompts_of("induction", tokenizer, 4)
    true = [edge for edge in circuit.pairs if edge not in UNUSED["induction"]]
    assert (POSITIONS, receiver(0, 0, "q")) in found(model, batch, true)
    assert found(model, batch, circuit.candidates, 1) <= set(circuit.pairs)


# -------------------------------------------------------------------------------------------------------- unembedding


@pytest.mark.parametrize("embedding", ["local", "semi_local", "distributed"])
def test_states_times_the_unembedding_are_the_logits(embedding: Any) -> None:
    model, tokenizer, _ = compiled(program_text("pargen"), embedding=embedding)  # it has a stop word
    batch = tokenizer("Q B V D E A D E V B . Q F G H V K L A", "K L V F G H .", return_tensors="pt")
    output = model(**batch, output_hidden_states=True)
    assert output.logits[0, -1].argmax() == 0
    torch.testing.assert_close(output.hidden_states[-1] @ model.unembedding(), output.logits, atol=1e-2, rtol=0)


@pytest.mark.parametrize("backend", ["gather", "dense"])
def test_hooks_on_the_unembedding_are_called_for_every_word(backend: str) -> None:
    model, tokenizer, _ = compiled(program_text("reverse"), backend=backend)
    calls: list[int] = []
    model.unembed.register_forward_hook(lambda module, inputs, output: calls.append(output.shape[-1]))
    words = model.generate(**tokenizer("a b", return_tensors="pt"), max_new_tokens=5)
    assert tokenizer.decode(words[0], skip_special_tokens=True).endswith("b a")
    assert calls == [model.config.vocab_size] * 3


# ---------------------------------------------------------------------------------------------------------- the set


def test_the_set_has_checkpoint_data_and_edges(tmp_path: Path) -> None:
    assert {*FORMS, "pargen", "pargen_k_shot", "nested_functions"} == set(CASES)
    told = CliRunner().invoke(app, ["circuits", str(tmp_path), "sort", "count", "--prompts", "3"])
    assert told.exit_code == 0, told.output
    about = json.loads((tmp_path / "benchmark_metadata.json").read_text())
    assert [case["case_id"] for case in about["cases"]] == ["sort", "count"]
    case = tmp_path / "count"
    assert {file["file_name"] for file in about["cases"][1]["files"]} == {path.name for path in case.iterdir()}
    edges = pickle.loads((case / "edges.pkl").read_bytes())
    assert edges == circuit_of(compile_program(program_text("count"))[0]).pairs
    plain = json.loads((case / "circuit.json").read_text())
    assert [(edge["source"], edge["target"]) for edge in plain["edges"]] == edges

    loaded = AutoModelForCausalLM.from_pretrained(case)
    again = DATForCausalLM(DATConfig(**pickle.loads((case / "ll_model_cfg.pkl").read_bytes())))
    again.load_state_dict(torch.load(case / "ll_model.pth"))
    rows = [json.loads(line) for line in (case / "data.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    tokenizer = AutoTokenizer.from_pretrained(case)
    for row in rows:
        prompt = tokenizer(row["prompt"], return_tensors="pt")
        for model in (loaded, again):
            said = model.generate(**prompt, max_new_tokens=3)[0, prompt["input_ids"].shape[1] :]
            assert tokenizer.decode(said, skip_special_tokens=True) == row["completion"]

    assert CliRunner().invoke(app, ["circuits", str(tmp_path), "count", "--prompts", "2"]).exit_code == 0  # once more
    wrong = CliRunner().invoke(app, ["circuits", str(tmp_path), "cuont"])
    assert wrong.exit_code == 1
    assert "no cases" in wrong.output


def test_what_cannot_be_patched_is_refused() -> None:
    """Each would look like an edge without effect."""
    model, tokenizer, circuit = compiled(program_text("induction"))
    batch = tokenizer(["red green blue red", "a b a"], padding=True, return_tensors="pt")
    with pytest.raises(ValueError, match="instead must be one of 'another prompt', 'another value', 'nothing', got"):
        edge_effects(model, batch, circuit.pairs, "zero")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'blocks\.9\.hook_k_input\[0\]'\) is no edge"):
        edge_effects(model, batch, [*circuit.pairs, (EMBED, receiver(9, 0, "k"))])
    with pytest.raises(ValueError, match="two prompts or more, got 1"):
        edge_effects(model, {name: rows[:1] for name, rows in batch.items()}, circuit.pairs)
    with pytest.raises(TypeError, match="a DATForCausalLM; got a Linear"):
        circuit_of(torch.nn.Linear(1, 1))  # type: ignore[arg-type]


def test_the_bridge_of_transformer_lens() -> None:
    pytest.importorskip("transformer_lens")
    from transformer_lens.factories.architecture_adapter_factory import ArchitectureAdapterFactory
    from transformer_lens.model_bridge.sources import build_bridge_from_module

    from hf_mech.probing.lens_bridge import DATArchitecture

    ArchitectureAdapterFactory.register_adapter("DATForCausalLM", DATArchitecture)
    model, tokenizer, _ = compiled(program_text("induction"))
    batch = tokenizer(["red green blue red", "a b a"], padding=True, return_tensors="pt")
    expected = model(**batch).logits
    bridge = build_bridge_from_module(model, "DATForCausalLM", hf_config=model.config, tokenizer=tokenizer)
    logits, cache = bridge.run_with_cache(batch["input_ids"], attention_mask=batch["attention_mask"])
    assert torch.equal(logits, expected)
    assert torch.equal(cache["blocks.1.hook_resid_post"][0, -1] @ bridge.W_U, expected[0, -1])
    assert cache["blocks.1.hook_pattern"][0, 0, 3].tolist() == [0, 1, 0, 0]  # red reads green, behind the first red

    swap = [("blocks.1.attn.v.hook_in", lambda state, hook: state.flip(1))]
    patched = bridge.run_with_hooks(batch["input_ids"], attention_mask=batch["attention_mask"], fwd_hooks=swap)
    assert tokenizer.decode(patched[0, -1].argmax()) == "blue"
