"""A configuration and those of its two encoders never say different things, however they are set, saved and loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, LlamaConfig

from hf_mech.models.belief_state import (
    BeliefStateConfig,
    BeliefStateError,
    BeliefStateForCausalLM,
)

from .models import END, KINDS, VOCABULARY, encoders, model, tokens


@pytest.mark.parametrize("kind", KINDS)
def test_it_survives_a_file(kind: str, tmp_path: Path):
    back = encoders()["llama"]
    back.num_hidden_layers = 1
    made = BeliefStateConfig(encoder_config=encoders()[kind], backward_encoder_config=back, head_width=7)
    made.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert loaded.to_dict() | {"_name_or_path": ""} == made.to_dict()
    assert loaded.to_diff_dict() == made.to_diff_dict()
    assert type(loaded.encoder_config) is type(made.encoder_config)
    assert loaded.backward_encoder_config.num_hidden_layers == 1
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored["encoder_config"]["model_type"] == kind


def test_plain_arguments_are_the_papers():
    made = BeliefStateConfig(vocab_size=56, n_embd=32, n_inner=32, eos_token_id=55).encoder_config
    assert (made.model_type, made.n_layer, made.n_head, made.n_inner) == ("gpt2", 6, 8, 32)
    assert (made.resid_pdrop, made.embd_pdrop, made.attn_pdrop) == (0, 0, 0)


def test_what_is_set_later_reaches_both_encoders():
    made = BeliefStateConfig(vocab_size=56, n_embd=32, eos_token_id=55)
    made.update({"vocab_size": 60, "eos_token_id": 59, "num_hidden_layers": 3})
    made.pad_token_id = 1
    for part in (made.encoder_config, made.backward_encoder_config):
        assert (part.vocab_size, part.eos_token_id, part.n_layer, part.pad_token_id) == (60, 59, 3, 1)


def test_the_callers_configuration_stays_as_it_is():
    given = encoders()["llama"]
    BeliefStateConfig(encoder_config=given, eos_token_id=3).vocab_size = 30
    assert (given.eos_token_id, given.vocab_size) == (END, VOCABULARY)


def test_a_plain_argument_against_the_encoder_is_refused():
    with pytest.raises(BeliefStateError, match="n_layer is 3, but encoder_config has num_hidden_layers=2"):
        BeliefStateConfig(encoder_config=encoders()["llama"], n_layer=3)
    with pytest.raises(BeliefStateError, match="n_inner is 64, but encoder_config has n_inner=None"):
        BeliefStateConfig(encoder_config=encoders()["llama"], n_inner=64)


@pytest.mark.parametrize("end", [None, [1, 2]])
def test_without_one_end_token_it_is_refused(end: list[int] | None):
    encoder = LlamaConfig(vocab_size=20, hidden_size=16, num_attention_heads=2, eos_token_id=end)
    with pytest.raises(BeliefStateError, match="eos_token_id must be one token, the empty suffix"):
        BeliefStateConfig(encoder_config=encoder)
    assert BeliefStateConfig(encoder_config=encoder, eos_token_id=1).end_token == 1


def test_an_end_token_outside_the_vocabulary_is_refused():
    with pytest.raises(BeliefStateError, match="eos_token_id is 50256, outside the vocabulary of 20 tokens"):
        BeliefStateConfig(vocab_size=20)


def test_encoders_of_different_sizes_are_refused():
    with pytest.raises(BeliefStateError, match="same hidden_size, got 16 and, backward, 32"):
        BeliefStateConfig(
            encoder_config=encoders()["gpt2"],
            backward_encoder_config=GPT2Config(n_embd=32, n_head=2, vocab_size=VOCABULARY, eos_token_id=END),
        )


def test_tied_embeddings_are_refused():
    with pytest.raises(BeliefStateError, match="tie_word_embeddings must be False"):
        BeliefStateConfig(tie_word_embeddings=True)


def test_a_huge_encoder_in_a_small_file_is_refused():
    with pytest.raises(BeliefStateError, match="encoder_config: num_hidden_layers must be from 1 to 1000"):
        BeliefStateConfig(encoder_config={"model_type": "qwen3", "num_hidden_layers": 10**9})


@pytest.mark.parametrize("kind", KINDS)
def test_attention_and_dtype_reach_the_encoders(kind: str, tmp_path: Path):
    model(kind).save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager", dtype=torch.bfloat16)
    assert type(loaded) is BeliefStateForCausalLM
    for part in (loaded.model.forward_encoder, loaded.model.backward_encoder):
        assert part.config._attn_implementation == "eager"
        assert part.dtype == torch.bfloat16
    loaded.set_attn_implementation("sdpa")
    assert loaded.model.backward_encoder.config._attn_implementation == "sdpa"
    assert loaded(tokens(2, 5), labels=tokens(2, 5)).loss.isfinite()


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("gpt2", END + 1),
        *((kind, 25) for kind in KINDS),
        *(pytest.param(kind, END + 1, marks=pytest.mark.slow) for kind in ("llama", "qwen3")),
    ],
)
def test_resizing_the_vocabulary(kind: str, size: int, tmp_path: Path):
    """The embedding, both of the head's last layers, and all configurations."""
    made, batch = model(kind), tokens(2, 6)
    before = made(batch, suffix_ids=batch)
    made.resize_token_embeddings(size)
    config = made.config
    assert {part.vocab_size for part in (config, config.encoder_config, config.backward_encoder_config)} == {size}
    after = made(batch, suffix_ids=batch)
    for name in ("logits", "prev_logits"):
        assert after[name].shape[-1] == size
        torch.testing.assert_close(after[name][..., :END], before[name][..., :END])
    made.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float64)
    torch.testing.assert_close(loaded(batch).logits, made(batch).logits)


def test_a_vocabulary_without_the_end_token_is_refused():
    with pytest.raises(BeliefStateError, match="A vocabulary of 10 tokens lacks the end token 19"):
        model().resize_token_embeddings(10)


@pytest.mark.parametrize("kind", [*(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[:2]), KINDS[2]])
@pytest.mark.parametrize("suffix", [False, True])
@pytest.mark.parametrize("cache", [{}, {"cache_implementation": "static", "disable_compile": True}], ids=str)
def test_cached_generation_is_uncached(kind: str, suffix: bool, cache: dict):
    """Beyond Qwen3's window of 4, with left padding."""
    made, batch = model(kind), tokens(3, 7)
    mask = torch.ones_like(batch)
    mask[0, :3] = 0
    how = {"attention_mask": mask, "max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "output_logits": True}
    how["return_dict_in_generate"] = True
    if suffix:
        how["suffix_ids"] = tokens(3, 4, seed=1)
    cached, uncached = made.generate(batch, **how, **cache), made.generate(batch, **how, use_cache=False)
    assert torch.equal(cached.sequences, uncached.sequences)
    for ours, theirs in zip(cached.logits, uncached.logits, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("key", ["encoder_config", "backward_encoder_config"])
def test_encoders_of_several_models_are_refused(key: str):
    """A belief state in a belief state, and so on: each level would double the next one's copies."""
    nested = encoders()["gpt2"].to_dict()
    for _ in range(40):
        nested = {"model_type": "belief_state", "encoder_config": nested}
    with pytest.raises(BeliefStateError, match=f"{key} must be the configuration of one decoder-only model"):
        BeliefStateConfig(**{"encoder_config": encoders()["gpt2"], key: nested})
    with pytest.raises(BeliefStateError, match="one decoder-only model, got BeliefStateConfig"):
        BeliefStateConfig(**{"encoder_config": encoders()["gpt2"], key: BeliefStateConfig(eos_token_id=1)})


def test_many_labels_of_an_encoder_are_refused():
    with pytest.raises(BeliefStateError, match="encoder_config: num_labels must be from 0 to 100000, got 10000000000"):
        BeliefStateConfig(encoder_config={"model_type": "gpt2", "num_labels": 10**10})


def test_a_model_type_that_is_no_text_is_refused():
    with pytest.raises(BeliefStateError, match=r"with its model_type, got \['gpt2'\]"):
        BeliefStateConfig(encoder_config={"model_type": ["gpt2"]})


def test_another_depth_than_that_of_the_layer_types_is_refused():
    config = BeliefStateConfig(encoder_config=encoders()["qwen3"])
    config.n_layer = 3
    with pytest.raises(BeliefStateError, match="of 3 layers with 2 layer_types"):
        BeliefStateForCausalLM(config)
