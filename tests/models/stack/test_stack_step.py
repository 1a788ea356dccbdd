"""A model with stacks as a function of one token and plain tensors: in PyTorch, and as an ONNX file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, PreTrainedModel

from hf_mech.models.stack import StackGPT2Config, StackGPT2ForCausalLM, StackStep, add_stack

SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
GPT2 = {"vocab_size": 40, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16, "bos_token_id": 0}
MODELS = {
    "gpt2": lambda: StackGPT2ForCausalLM(StackGPT2Config(**GPT2, stack_actions_from="layer_input")),
    "gpt2, recurrent values": lambda: StackGPT2ForCausalLM(StackGPT2Config(**GPT2, stack_values="recurrent")),
    "llama, one of two layers": lambda: add_stack(LlamaForCausalLM(LlamaConfig(**SIZES)), layers=[1]),
    "mistral, a window, two pops": lambda: add_stack(
        MistralForCausalLM(MistralConfig(**SIZES, sliding_window=4)), multi_pop=2
    ),
}


@pytest.fixture(params=MODELS, name="model")
def _model(request: pytest.FixtureRequest) -> PreTrainedModel:
    torch.manual_seed(0)
    model = MODELS[request.param]()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model.eval()


def given() -> tuple[torch.Tensor, torch.Tensor]:
    """Three rows, the first with padding on the left."""
    ids, mask = torch.randint(3, 40, (3, 12)), torch.ones(3, 12, dtype=torch.long)
    mask[0, :3] = 0
    ids[0, 3] = ids[1, 0] = ids[2, 0] = 0
    return ids, mask


def test_one_token_at_a_time_is_the_whole(model: PreTrainedModel):
    ids, mask = given()
    step, logits = StackStep(model).eval(), []
    past = step.nothing(3)
    for i in range(12):
        following, past = step(ids[:, i : i + 1], mask[:, : i + 1], past)
        logits.append(following)
    expected = model(ids, attention_mask=mask, use_cache=False).logits.detach()
    torch.testing.assert_close(torch.cat(logits, 1)[mask.bool()], expected[mask.bool()], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning")
def test_onnxruntime_computes_the_same(model: PreTrainedModel, tmp_path: Path):
    step = StackStep(model).eval()
    torch.onnx.export(step, **step.export_arguments(), dynamo=True, verbose=False).save(tmp_path / "step.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "step.onnx")
    taken = {found.name for found in session.get_inputs()}
    ids, mask = given()
    for rows in (slice(3), slice(1)):
        past = {name: tensor.numpy() for name, tensor in step.nothing(len(ids[rows])).items()}
        logits = []
        for i in range(12):
            inputs = {f"past.{name}": tensor for name, tensor in past.items()}
            inputs |= {"input_ids": ids[rows, i : i + 1].numpy(), "attention_mask": mask[rows, : i + 1].numpy()}
            following, *present = session.run(None, {name: inputs[name] for name in taken})
            past = dict(zip(past, present, strict=True))
            logits.append(following)
        expected = model(ids[rows], attention_mask=mask[rows], use_cache=False).logits[mask[rows].bool()].detach()
        got = np.concatenate(logits, 1)[mask[rows].bool().numpy()]
        np.testing.assert_allclose(got, expected.numpy(), rtol=1e-5, atol=1e-5)
