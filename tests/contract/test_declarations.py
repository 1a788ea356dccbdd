"""Every registered model has a contract case, and what the case says of the model is true."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch

from .case import CAPABILITIES, ContractCase
from .checkpointing import enable_checkpointing
from .registry import AUTO_CLASSES, contract_cases, registered_models


def test_every_registered_model_has_a_case():
    assert registered_models()
    assert {case.model_class for case in contract_cases()} == set(registered_models())


def test_lacks_names_exactly_what_is_missing(case: ContractCase):
    missing = {capability for capability in CAPABILITIES if not case.has(capability)}
    assert set(case.lacks) == missing
    assert all(reason.strip() for reason in case.lacks.values())


def test_inputs_are_those_of_forward(case: ContractCase):
    known = inspect.signature(case.model_class.forward).parameters
    batch = case.inputs(2, 5, 0)
    assert set(batch) <= set(known)
    assert set(batch) <= set(case.padding)
    assert all(len(tensor) == 2 for tensor in batch.values())
    assert all(tensor.shape[case.length_dim] == 5 for tensor in batch.values() if tensor.dim() > case.length_dim)
    assert any(tensor.dim() > case.length_dim for tensor in batch.values())
    assert set(case.columns) <= set(batch)


def test_inputs_are_a_function_of_the_seed(case: ContractCase):
    first, again, other = case.inputs(4, 9, 1), case.inputs(4, 9, 1), case.inputs(4, 9, 2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_position_outputs_are_one_a_position(case: ContractCase):
    outputs = case.model()(**case.inputs(2, 5, 0))
    assert case.outputs
    assert all(outputs[name].shape[:2] == (2, 5) for name in case.position_outputs)
    assert all(len(outputs[name]) == 2 for name in case.row_outputs)


@pytest.mark.lacking("sdpa")
def test_without_sdpa_it_is_refused(case: ContractCase, tmp_path: Path):
    case.model().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="scaled_dot_product_attention"):
        case.model_class.from_pretrained(tmp_path, attn_implementation="sdpa")


@pytest.mark.lacking("checkpointing")
def test_without_checkpointing_it_is_refused(case: ContractCase):
    with pytest.raises(ValueError, match="checkpointing"):
        enable_checkpointing(case.model())


@pytest.mark.lacking("generation")
def test_without_generation_no_auto_class_promises_it(case: ContractCase):
    promised = {"AutoModelForCausalLM", "AutoModelForSeq2SeqLM"} & AUTO_CLASSES.keys()
    assert promised.isdisjoint(registered_models()[case.model_class])
    assert not hasattr(case.model(), "generate")


@pytest.mark.lacking("stream")
def test_without_a_stream_there_is_no_step(case: ContractCase):
    assert not hasattr(case.model(), "step")


@pytest.mark.lacking("partial_checkpoints")
def test_a_partial_checkpoint_is_refused(case: ContractCase, tmp_path: Path):
    assert case.refuses_partial is not None
    state = case.model().state_dict()
    case.model().save_pretrained(tmp_path, state_dict={"nothing_of_ours": torch.zeros(1)})
    with pytest.raises(case.refuses_partial) as refusal:
        case.model_class.from_pretrained(tmp_path)
    assert any(name in str(refusal.value) for name in state)
