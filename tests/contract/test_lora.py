"""peft adapts every model that has a layer to adapt."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from .batches import without_labels
from .case import LORA_LAYERS, ContractCase
from .test_gradients import batch_for, objective

pytestmark = pytest.mark.needs("lora")


def test_lora_trains_its_own_weights_and_merges(case: ContractCase):
    from peft import LoraConfig, get_peft_model

    model = case.model()
    layers = [name for name, module in model.named_modules() if isinstance(module, LORA_LAYERS)]
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=layers, init_lora_weights=False))
    trainable = {name: weight for name, weight in adapted.named_parameters() if weight.requires_grad}
    assert trainable
    assert all("lora_" in name for name in trainable)

    objective(case, adapted(**batch_for(case, 4, 8))).backward()
    assert any(weight.grad is not None and weight.grad.any() for weight in trainable.values())

    batch = without_labels(case.inputs(3, 8, 1))
    adapted.eval()
    with torch.no_grad():
        before = adapted(**batch)
        after = adapted.merge_and_unload()(**batch)
    for name in case.position_outputs:
        assert_close(after[name], before[name], rtol=1e-4, atol=1e-5)
