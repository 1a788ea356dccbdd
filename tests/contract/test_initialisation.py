"""Loading goes through the meta device; nothing may come out of it unset.

In deterministic mode torch fills new memory with NaN, so what nobody set is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers.modeling_utils import PreTrainedModel

from .case import ContractCase
from .test_save_load import assert_same, everything


@pytest.fixture
def _new_memory_is_nan() -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.empty(1).isnan().all()
    yield
    torch.use_deterministic_algorithms(before)


def assert_set(model: PreTrainedModel) -> None:
    unset = [name for name, tensor in everything(model).items() if tensor.is_meta or tensor.isnan().any()]
    assert not unset


@pytest.mark.usefixtures("_new_memory_is_nan")
def test_a_new_model_is_set(case: ContractCase):
    assert_set(case.model())


@pytest.mark.usefixtures("_new_memory_is_nan")
def test_a_loaded_model_is_set(case: ContractCase, tmp_path: Path):
    model = case.model()
    model.save_pretrained(tmp_path)
    loaded = case.model_class.from_pretrained(tmp_path)
    assert_set(loaded)
    assert_same(model, loaded)


def test_the_same_seed_gives_the_same_weights(case: ContractCase):
    assert_same(case.model(seed=1), case.model(seed=1))


@pytest.mark.needs("random_weights")
def test_another_seed_gives_other_weights(case: ContractCase):
    first, other = everything(case.model(seed=1)), everything(case.model(seed=2))
    assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.mark.feature("checkpoints that lack weights: those are drawn anew")
@pytest.mark.needs("partial_checkpoints")
@pytest.mark.usefixtures("_new_memory_is_nan")
def test_what_a_checkpoint_lacks_is_drawn_and_what_it_holds_is_kept(case: ContractCase, tmp_path: Path):
    model = case.model()
    names = list(dict(model.named_parameters()))
    for kept in (names[0], names[-1]):
        folder = tmp_path / kept
        model.save_pretrained(folder, state_dict={kept: everything(model)[kept]})
        torch.manual_seed(3)
        loaded = case.model_class.from_pretrained(folder)
        assert_set(loaded)
        assert torch.equal(everything(loaded)[kept], everything(model)[kept])
