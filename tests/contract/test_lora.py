"""peft adapts every model that has a layer to adapt."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers.modeling_utils import PreTrainedModel

from .case import LORA_LAYERS, ContractCase
from .test_gradients import batch_for, objective

pytestmark = [
    pytest.mark.needs("lora"),
    # GPT-2's own layers store their matrix transposed, ours do not; peft sees that, and says so.
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to:UserWarning"),
    # peft 0.21 reads the attribute under the name that transformers 5.23 deprecates.
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
]


@pytest.mark.feature("LoRA")
def test_lora_trains_its_own_weights_and_merges(case: ContractCase):
    from peft import LoraConfig, get_peft_model

    model = case.model()
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=targets(model), init_lora_weights=False))
    trainable = {name: weight for name, weight in adapted.named_parameters() if weight.requires_grad}
    assert trainable
    assert all("lora_" in name for name in trainable)

    objective(case, adapted(**batch_for(case, 4, 8))).backward()
    assert any(weight.grad is not None and weight.grad.any() for weight in trainable.values())

    batch = case.questions(3, 8, 1)
    adapted.eval()
    with torch.no_grad():
        before = adapted(**batch)
        after = adapted.merge_and_unload()(**batch)
    for name in case.outputs:
        assert_close(after[name], before[name], rtol=1e-4, atol=1e-5)


@pytest.mark.feature("peft with defaults: the adapter trains, saves and loads")
def test_the_defaults_train_and_the_adapter_loads(case: ContractCase, tmp_path: Path):
    """`LoraConfig()` names no targets: peft must know them for every model type of ours."""
    from peft import LoraConfig, PeftModel, get_peft_model

    case.model().save_pretrained(tmp_path / "model")
    batch, questions = batch_for(case, 4, 8), case.questions(3, 8, 1)
    adapted = get_peft_model(case.model_class.from_pretrained(tmp_path / "model"), LoraConfig())
    with torch.no_grad():
        before = adapted.eval()(**questions)
    optimizer = torch.optim.AdamW([weight for weight in adapted.parameters() if weight.requires_grad], lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        objective(case, adapted.train()(**batch)).backward()
        optimizer.step()
    adapted.eval().save_pretrained(tmp_path / "adapter")

    loaded = PeftModel.from_pretrained(
        case.model_class.from_pretrained(tmp_path / "model"), tmp_path / "adapter"
    ).eval()
    with torch.no_grad():
        expected, outputs = adapted(**questions), loaded(**questions)
    for name in case.outputs:
        assert torch.equal(outputs[name], expected[name]), name
    assert any(not torch.equal(expected[name], before[name]) for name in case.outputs)


def targets(model: PreTrainedModel) -> list[str]:
    """The layers that LoRA can adapt, without those whose weight another layer shares."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, LORA_LAYERS)}
    shared = Counter(id(module.weight) for module in layers.values())
    return [name for name, module in layers.items() if shared[id(module.weight)] == 1]
