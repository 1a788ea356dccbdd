"""Encoders come from stock checkpoints; models that cannot be encoders are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BertConfig,
    BloomConfig,
    MambaConfig,
    Qwen3NextConfig,
    T5Config,
)
from transformers.configuration_utils import PreTrainedConfig

from hf_mech.models.belief_state import (
    BeliefStateConfig,
    BeliefStateError,
    BeliefStateForCausalLM,
    BeliefStateModel,
)

from .models import KINDS, encoders, tokens


def stock(kind: str, folder: Path, auto: type = AutoModelForCausalLM, seed: int = 0) -> AutoModel:
    """A stock model with random weights, saved."""
    torch.manual_seed(seed)
    made = auto.from_config(encoders()[kind]).eval()
    made.save_pretrained(folder)
    return made


@pytest.mark.parametrize("auto", [AutoModel, AutoModelForCausalLM])
@pytest.mark.parametrize("kind", KINDS)
def test_the_forward_encoder_is_the_stock_model(kind: str, auto: type, tmp_path: Path):
    theirs = stock(kind, tmp_path, auto)
    made = BeliefStateForCausalLM.from_encoder_pretrained(tmp_path, head_width=24)
    batch = tokens(2, 7)
    expected = getattr(theirs, "base_model", theirs)(batch).last_hidden_state
    assert_close(made.encode(batch, all_states=True), expected)
    assert made(batch, labels=batch).loss.isfinite()
    assert (made.config.head_width, made.config.encoder_config.model_type) == (24, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_backward_encoder_is_the_stock_model_too(kind: str, tmp_path: Path):
    """With the forward encoder's embedding, on reversed tokens."""
    theirs = stock(kind, tmp_path / "ahead")
    back = stock(kind, tmp_path / "back", seed=1)
    made = BeliefStateModel.from_encoder_pretrained(tmp_path / "ahead", tmp_path / "back")
    suffix = tokens(2, 6)
    suffix[:, -1] = made.config.end_token
    back.set_input_embeddings(theirs.get_input_embeddings())
    expected = back.base_model(suffix.flip(1)).last_hidden_state.flip(1)
    assert_close(made(tokens(2, 3), suffix_ids=suffix).suffix_hidden_state, expected)


def test_a_new_backward_encoder_differs(tmp_path: Path):
    stock("llama", tmp_path)
    made = BeliefStateModel.from_encoder_pretrained(tmp_path)
    ahead, back = (dict(part.named_parameters()) for part in (made.forward_encoder, made.backward_encoder))
    assert any(not torch.equal(weight, back[name]) for name, weight in ahead.items())


def test_two_kinds_of_encoders(tmp_path: Path):
    stock("llama", tmp_path / "ahead")
    stock("gpt2", tmp_path / "back")
    made = BeliefStateForCausalLM.from_encoder_pretrained(tmp_path / "ahead", tmp_path / "back")
    made.save_pretrained(tmp_path / "both")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "both")
    batch = tokens(2, 5)
    assert_close(loaded(batch, suffix_ids=batch).logits, made(batch, suffix_ids=batch).logits)


def test_weights_that_are_missing_are_refused(tmp_path: Path):
    made = stock("llama", tmp_path)
    state = {name: weight for name, weight in made.state_dict().items() if "layers.1." not in name}
    made.save_pretrained(tmp_path, state_dict=state)
    with pytest.raises(BeliefStateError, match="lacks the weights"):
        BeliefStateModel.from_encoder_pretrained(tmp_path)


SIZES = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "eos_token_id": 1, "pad_token_id": 0}
HEADS = {**SIZES, "num_attention_heads": 2}
OTHERS = {
    "of a model that is not causal": BertConfig(**HEADS, intermediate_size=16),
    "of an encoder-decoder model": T5Config(vocab_size=20, d_model=16, num_layers=1, num_heads=2, d_kv=8, d_ff=16),
    r"with the layers \['linear_attention'\]": MambaConfig(**SIZES),
    "does not take position_ids": BloomConfig(vocab_size=20, hidden_size=16, n_layer=1, n_head=2, eos_token_id=1),
    "whose states pass over padding": Qwen3NextConfig(**HEADS),
}


@pytest.mark.parametrize("reason", OTHERS)
def test_other_models_are_refused(reason: str):
    other: PreTrainedConfig = OTHERS[reason]
    with pytest.raises(BeliefStateError, match=reason):
        BeliefStateModel(BeliefStateConfig(encoder_config=other, eos_token_id=1))


def test_a_checkpoint_of_another_kind_is_refused(tmp_path: Path):
    AutoModel.from_config(BertConfig(**HEADS, intermediate_size=16)).save_pretrained(tmp_path)
    with pytest.raises(BeliefStateError, match="encoder is a BertConfig, of a model that is not causal"):
        BeliefStateModel.from_encoder_pretrained(tmp_path)
