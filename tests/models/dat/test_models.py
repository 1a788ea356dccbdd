"""Compiled programs as models of transformers: the paper's prompts, pipelines, checkpoints, registered functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer, TextStreamer, pipeline

from hf_mech.models.dat import DATConfig, DATForCausalLM, DATModel, DATTokenizer
from hf_mech.programs.psl import compile_program
from hf_mech.programs.psl.library import program_text
from hf_mech.programs.psl.values import register_function, unregister_function
from tests.programs.templatic.paper_prompts import NINE


@pytest.fixture(scope="module")
def pargen() -> tuple[DATForCausalLM, DATTokenizer]:
    return compile_program(program_text("pargen"))


def completions(model: DATForCausalLM, tokenizer: Any, prompts: list[str], **options: Any) -> list[str]:
    """The text after each prompt."""
    batch = tokenizer(prompts, padding=True, return_tensors="pt")
    new = model.generate(**batch, **{"max_new_tokens": 30, **options})[:, batch["input_ids"].shape[1] :]
    return tokenizer.batch_decode(new, skip_special_tokens=True)


def test_the_nine_prompts_in_one_batch(pargen: tuple[DATForCausalLM, DATTokenizer]) -> None:
    assert len(NINE) == 9
    prompts, expected = zip(*NINE.values(), strict=True)
    assert completions(*pargen, list(prompts)) == list(expected)


def test_the_nine_prompts_from_a_checkpoint(pargen: tuple[DATForCausalLM, DATTokenizer], tmp_path: Path) -> None:
    model, tokenizer = pargen
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 5_000_000
    assert (tmp_path / "model.safetensors").exists()
    loaded, words = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert (type(loaded), type(words)) == (DATForCausalLM, DATTokenizer)
    prompts, expected = zip(*NINE.values(), strict=True)
    assert completions(loaded, words, list(prompts)) == list(expected)
    assert type(AutoModel.from_pretrained(tmp_path)) is DATModel
    config = AutoConfig.from_pretrained(tmp_path)
    assert (config.num_hidden_layers, config.qkvl) == (31, model.config.qkvl)


def test_symbols_that_no_one_has_seen(pargen: tuple[DATForCausalLM, DATTokenizer]) -> None:
    model, tokenizer = pargen
    names = [f"\u2603{number}" for number in range(7)]
    prompt = "Q {0} {1} v {2} A {2} v {0} {1} . Q {3} v {4} {5} {6} A".format(*names)
    assert completions(model, tokenizer, [prompt]) == ["{4} {5} {6} v {3} .".format(*names)]


def test_a_pipeline_of_model_and_tokenizer(pargen: tuple[DATForCausalLM, DATTokenizer]) -> None:
    model, tokenizer = pargen
    generator = pipeline("text-generation", model=model, tokenizer=tokenizer)
    (prompt, expected), (other, longer) = NINE["act2pass"], NINE["swap"]
    made = generator(prompt, return_full_text=False, max_new_tokens=20)
    assert made[0]["generated_text"] == expected
    whole = generator([prompt, other], batch_size=2, return_full_text=False, max_new_tokens=20)
    assert [rows[0]["generated_text"] for rows in whole] == [expected, longer]
    full = generator(f"{prompt} ", max_new_tokens=20)  # the pipeline puts nothing between prompt and completion
    assert full[0]["generated_text"] == f"{prompt} {expected}"


def test_a_streamer_says_word_after_word(
    pargen: tuple[DATForCausalLM, DATTokenizer], capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer = pargen
    prompt, expected = NINE["act2pass"]
    streamer = TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
    model.generate(**tokenizer(prompt, return_tensors="pt"), max_new_tokens=20, streamer=streamer)
    assert capsys.readouterr().out == f"{expected}\n"


def test_the_end_is_a_special_token_and_a_stop_word_of_the_prompt_is_a_word(
    pargen: tuple[DATForCausalLM, DATTokenizer],
) -> None:
    """`generate` gives the completion of the data set; the Q of the prompt is no end."""
    model, tokenizer = pargen
    prompt, expected = NINE["swap"]
    batch = tokenizer(prompt, return_tensors="pt")
    whole = model.generate(**batch, max_new_tokens=20)
    assert tokenizer.decode(whole[0], skip_special_tokens=True) == f"{prompt} {expected}"
    assert whole[0, -1] == model.config.eos_token_id == tokenizer.eos_token_id == 0
    # the register itself still holds the stop word
    values = model.dat(whole[:, :-1]).register_values[0, -1, model.dat.program.parts["output"]]
    assert tokenizer.decode(values) == "Q"


@pytest.mark.parametrize("backend", ["gather", "dense"])
def test_a_stop_word_as_a_label_is_the_end(backend: str) -> None:
    model, tokenizer = compile_program(
        program_text("pargen"), max_position_embeddings=24, num_open_values=9, backend=backend, relaxation_temperature=0
    )
    batch = tokenizer("Q a b A b . Q c b A", "b . Q", return_tensors="pt")
    labels = batch["input_ids"].clone()
    labels[:, :-3] = -100
    loss = model(**batch, labels=labels).loss
    ended = labels.where(labels != tokenizer.convert_tokens_to_ids("Q"), 0)
    assert loss < 1e-6
    assert loss == model(**batch, labels=ended).loss


def test_logits_to_keep_are_the_last_ones(pargen: tuple[DATForCausalLM, DATTokenizer]) -> None:
    model, tokenizer = pargen
    batch = tokenizer([NINE["swap"][0], NINE["implica"][0]], padding=True, return_tensors="pt")
    whole = model(**batch).logits
    assert torch.equal(model(**batch, logits_to_keep=1).logits, whole[:, -1:])
    assert torch.equal(model(**batch, logits_to_keep=torch.tensor([3, 5])).logits, whole[:, [3, 5]])
    assert set(whole.unique().tolist()) == {0.0, model.config.logit_scale}


def test_hidden_states_are_one_hot_registers(pargen: tuple[DATForCausalLM, DATTokenizer]) -> None:
    """(66): concatenated one-hot vectors, in the order of the configuration's registers."""
    model, tokenizer = pargen
    batch = tokenizer(NINE["swap"][0], return_tensors="pt")
    out = model.dat(**batch)
    registers = out.last_hidden_state.unflatten(-1, (model.config.num_registers, model.config.vocab_size))
    assert torch.equal(registers.argmax(-1), out.register_values)
    assert bool((registers.sum(-1) == 1).all())
    assert out.last_hidden_state.shape[-1] == model.config.hidden_size


# ------------------------------------------------------------------------------------------------ registered functions


@pytest.fixture
def quarter_turn() -> Iterator[None]:
    register_function("quarter_turn", {"north": "east", "east": "south", "south": "west", "west": "north"}.get)
    yield
    unregister_function("quarter_turn")


TURN = """
registers: {symbol: 's', position: 'p', said: 'x'}
system: {symbol: symbol, position: position, output: said}
constants: {north, east, south, west}
where symbol[n] == symbol[N]@quarter_turn:
    said[N] = symbol[n]
"""


def test_registered_functions_travel_with_the_checkpoint(quarter_turn: None, tmp_path: Path) -> None:
    model, tokenizer = compile_program(TURN, max_position_embeddings=9, num_open_values=4)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    unregister_function("quarter_turn")
    try:
        loaded, words = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
        for backend in ("gather", "dense"):
            loaded.config.backend = backend
            prompts = ["south west up north", "south east", "east up"]
            # nothing is said where there is no such word, or the word cannot be turned
            assert completions(loaded, words, prompts, max_new_tokens=1) == ["", "south", ""]
            assert completions(loaded, words, ["east south west north west"], max_new_tokens=3) == ["north east south"]
        block = loaded.dat.to_dense(0)["query"][0]
        assert int(block.sum()) == 4
    finally:
        register_function("quarter_turn", str)  # the fixture forgets it


def test_a_model_without_a_program_copies() -> None:
    model = DATForCausalLM(DATConfig(max_position_embeddings=9, num_open_values=4))
    tokenizer = DATTokenizer.from_config(model.config)
    assert completions(model, tokenizer, ["one two"], max_new_tokens=3) == ["two two two"]
