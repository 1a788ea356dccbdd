"""The model's loss is the objective's on its encoders' states; belief states as embeddings; standard outputs."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.belief_state import BeliefStateError, belief_state_loss_reference
from hf_mech.models.belief_state.belief_state_inputs import sequences_of

from .models import END, KINDS, PAD, model, tokens


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_reference_on_the_encoders_states(kind: str):
    made, batch = model(kind), tokens(3, 8)
    sequences, _ = sequences_of(batch, None, batch, END)
    states = torch.nn.functional.pad(made.model(batch).last_hidden_state, (0, 0, 0, 1))
    total, count = belief_state_loss_reference(states, made.model.suffix_states(sequences), made.text_head, sequences)
    assert_close(made(batch, labels=batch).loss, total / count)


@pytest.mark.parametrize("kind", KINDS)
def test_a_suffix_is_read_from_its_end(kind: str):
    """Its state at a token depends on the tokens from there on, and on nothing before."""
    made, batch = model(kind), tokens(2, 6)
    whole = made.model(batch, suffix_ids=batch).suffix_hidden_state
    part = made.model(batch, suffix_ids=batch[:, 3:]).suffix_hidden_state
    assert_close(whole[:, 3:], part)
    assert_close(whole[:, -1:], made.model.empty_suffix(batch.device).expand(2, -1, -1))


@pytest.mark.parametrize("side", ["left", "right"])
def test_encode_gives_the_state_after_the_last_token(side: str):
    made, batch = model("llama"), tokens(3, 5)
    states = made.encode(batch, all_states=True)
    assert_close(states, made.model(batch).last_hidden_state)
    assert_close(made.encode(batch), states[:, -1])
    width = (2, 0) if side == "left" else (0, 2)
    mask = torch.nn.functional.pad(torch.ones_like(batch), width)
    assert_close(made.encode(torch.nn.functional.pad(batch, width, value=PAD), mask), states[:, -1])


def test_embeddings_are_as_good_as_tokens():
    made, batch = model(), tokens(2, 5)
    assert_close(made(inputs_embeds=made.get_input_embeddings()(batch)).logits, made(batch).logits)


@pytest.mark.parametrize("name", ["output_hidden_states", "output_attentions"])
def test_outputs_by_configuration_are_those_by_argument(name: str):
    asked = model(attn_implementation="eager")(tokens(2, 5), **{name: True})
    made = model(attn_implementation="eager")
    setattr(made.config, name, True)
    field = name.removeprefix("output_")
    for ours, theirs in zip(made(tokens(2, 5))[field], asked[field], strict=True):
        assert_close(ours, theirs)


def test_without_prev_and_without_backward():
    batch = tokens(2, 6)
    without = model(use_backward=False, predict_previous=False)
    outputs = without(batch, labels=batch)
    assert outputs.loss.isfinite()
    assert outputs.prev_logits is None
    with pytest.raises(BeliefStateError, match="no T_p"):
        without(batch, output_prev_logits=True)
    for given in ({"suffix_ids": batch}, {"suffix_state": torch.zeros(2, 1, 16)}):
        with pytest.raises(BeliefStateError, match=f"no backward encoder .* leave {next(iter(given))} out"):
            without(batch, **given)
    assert without.model.backward_encoder is None
    assert without.model.empty_suffix(batch.device) is None


# GPT-2's own layers store their matrix transposed; peft sees that, and says so.
@pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to:UserWarning")
# peft 0.21 reads the attribute under the name that transformers 5.23 deprecates.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_peft_knows_the_targets_of_every_encoder(kind: str):
    from peft import LoraConfig, get_peft_model

    adapted = get_peft_model(model(kind), LoraConfig(task_type="CAUSAL_LM"))
    names = [name for name, weight in adapted.named_parameters() if weight.requires_grad]
    for encoder in ("forward_encoder", "backward_encoder"):
        assert any(encoder in name for name in names)
    batch = tokens(2, 5)
    adapted(input_ids=batch, labels=batch).loss.backward()


def test_there_are_no_output_embeddings():
    """Who multiplies the last hidden states by them, as TRL does for its own loss, would train another model."""
    assert model().get_output_embeddings() is None
