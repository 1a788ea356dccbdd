"""Gradients reach every weight and are the same however they are computed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers.modeling_utils import PreTrainedModel

from .batches import Batch, cast
from .case import ContractCase, Formula
from .checkpointing import enable_checkpointing
from .compare import named


def objective(case: ContractCase, outputs: Any) -> Tensor:
    """The loss, or for a model without one a sum in which no two positions weigh the same."""
    if case.has("loss"):
        return outputs.loss
    parts = [outputs[name] for name in case.outputs]
    return sum((part * torch.linspace(-1, 1, part.numel(), device=part.device).view_as(part)).sum() for part in parts)


def gradients(case: ContractCase, model: PreTrainedModel, batch: Batch) -> dict[str, Tensor | None]:
    model.train()
    objective(case, model(**batch)).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def batch_for(case: ContractCase, size: int, length: int) -> Batch:
    return case.inputs(size, length, 0) if case.has("loss") else case.questions(size, length, 0)


def test_every_parameter_gets_a_gradient(case: ContractCase):
    found = gradients(case, case.model(), batch_for(case, 8, 12))
    assert found
    for name, gradient in found.items():
        assert gradient is not None, name
        assert gradient.isfinite().all(), name
        if name in case.no_gradient:
            assert gradient.abs().max() < 1e-6, name  # rounding
        else:
            assert gradient.any(), name
    assert set(case.no_gradient) <= set(found)
    assert all(reason.strip() for reason in case.no_gradient.values())


@pytest.mark.feature("gradient checkpointing")
@pytest.mark.needs("checkpointing")
def test_checkpointing_changes_nothing(case: ContractCase):
    batch = batch_for(case, 3, 8)
    model = case.model()
    enable_checkpointing(model)
    recomputed, plain = gradients(case, model, batch), gradients(case, case.model(), batch)
    for name, gradient in plain.items():
        assert_close(recomputed[name], gradient, msg=named(name))


@pytest.mark.feature("fast form equals the paper's equations, value and gradient")
@pytest.mark.needs("formulas")
@pytest.mark.parametrize("seed", range(3))
def test_fast_is_reference_in_value_and_gradient(case: ContractCase, seed: int):
    for formula in case.formulas:
        fast = value_and_gradients(formula, formula.fast, seed)
        reference = value_and_gradients(formula, formula.reference, seed)
        assert len(fast) == len(reference)
        for ours, papers in zip(fast, reference, strict=True):
            assert_close(ours, papers, rtol=1e-10, atol=1e-12, msg=named(formula.name))


def value_and_gradients(formula: Formula, function: Any, seed: int) -> list[Tensor]:
    """All results of the function, then the gradient of a random mixture of them for every real argument."""
    arguments = formula.arguments(seed)
    leaves = [value for value in arguments if isinstance(value, Tensor) and value.is_floating_point()]
    assert leaves, f"{formula.name}: no argument is a floating-point tensor"
    assert all(leaf.dtype == torch.float64 for leaf in leaves), f"{formula.name}: arguments must be float64"
    for leaf in leaves:
        leaf.requires_grad_()
    results = function(*arguments)
    results = [results] if isinstance(results, Tensor) else list(results)
    generator = torch.Generator().manual_seed(seed)
    mixture = sum(
        (result * torch.rand(result.shape, generator=generator, dtype=result.dtype)).sum() for result in results
    )
    assert isinstance(mixture, Tensor)
    mixture.backward()
    return [result.detach() for result in results] + [leaf.grad for leaf in leaves if leaf.grad is not None]


@pytest.mark.feature("bfloat16")
def test_half_precision_runs_and_is_close(case: ContractCase):
    batch = batch_for(case, 3, 8)
    with torch.no_grad():
        exact, half = case.model()(**batch), case.model().bfloat16()(**cast(batch, torch.bfloat16))
    for name in case.outputs:
        assert half[name].dtype == torch.bfloat16, name
        assert_close(half[name].float(), exact[name], rtol=0.05, atol=case.bf16_tolerance)
    for name, gradient in gradients(case, case.model().bfloat16(), cast(batch, torch.bfloat16)).items():
        assert gradient is not None, name
        assert gradient.dtype == torch.bfloat16, name
        assert gradient.isfinite().all(), name


@pytest.mark.feature("autocast")
def test_autocast_runs_and_is_close(case: ContractCase):
    batch = batch_for(case, 3, 8)
    with torch.no_grad():
        exact = case.model()(**batch)
        with torch.autocast("cpu", torch.bfloat16):
            half = case.model()(**batch)
    for name in case.outputs:
        assert_close(half[name].float(), exact[name], rtol=0.05, atol=case.bf16_tolerance)
