"""Tokens: the paper's pseudo-code in value and gradient, the order of tokens, positions and no positions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from hf_mech.models.msat.modeling_msat import component_vectors

from .models import KINDS, model, steps
from .reference import tokens_reference

OPTIONS: list[dict[str, Any]] = [
    *KINDS,
    {"one_hot": "overlapping"},
    {"one_hot": "overlapping", "action_tokenization": "multi"},
    {"positional_encoding": False, "return_scale": 0.01},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_tokens_are_the_references_in_every_weights_gradient(options: dict[str, Any]):
    tokenizer, batch = model(**options).tokenizer, steps(2, 3)
    batch["timesteps"] = batch["timesteps"] + 11  # a window from the middle of an episode
    fast = tokenizer(**batch)
    weights = list(tokenizer.parameters())
    mixture = torch.randn(fast.shape, generator=torch.Generator().manual_seed(1), dtype=fast.dtype)
    ours = torch.autograd.grad((fast * mixture).sum(), weights)
    timesteps = batch["timesteps"] if tokenizer.embed_timestep is not None else None
    slow = tokens_reference(tokenizer, batch["states"], batch["actions"], batch["returns_to_go"], timesteps)
    assert_close(fast, slow, rtol=1e-12, atol=1e-13)
    for mine, papers in zip(ours, torch.autograd.grad((slow * mixture).sum(), weights), strict=True):
        assert_close(mine, papers, rtol=1e-10, atol=1e-12)


def test_one_hot_vectors():
    actions = torch.tensor([2, 0])
    assert component_vectors(actions, [3, 2], "disjoint").tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert component_vectors(actions, [3, 2], "overlapping").tolist() == [[0, 0, 1], [1, 0, 0]]


def test_the_number_and_the_names_of_tokens():
    """Deadly Corridor has 6 tokens a step, My Way Home 4, the baseline 3."""
    assert model(action_sizes=[3, 3, 3, 2]).config.tokens_per_step == 6
    assert model(action_sizes=[3, 3]).config.tokens_per_step == 4
    baseline = model(action_sizes=[3, 3], action_tokenization="single").config
    assert baseline.tokens_per_step == 3
    assert baseline.token_names([4, 5]) == ["r4", "s4", "a4", "r5", "s5", "a5"]
    assert model(action_sizes=[3, 3]).config.token_names([17]) == ["r17", "s17", "a1_17", "a2_17"]
    found = model(action_sizes=[3, 3, 3, 2])
    outputs = found(
        torch.zeros(1, 2, 5), torch.zeros(1, 2, 4, dtype=torch.long), torch.zeros(1, 2), torch.arange(2)[None],
        output_hidden_states=True,
    )  # fmt: skip
    assert outputs.hidden_states[0].shape == (1, 12, 16)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_prediction_sees_neither_its_own_action_nor_the_future(kind: dict[str, Any]):
    fast, batch = model(**kind), steps(1, 5)
    changed = {name: tensor.clone() for name, tensor in batch.items()}
    changed["actions"][:, 2] = (changed["actions"][:, 2] + 1) % torch.tensor([3, 2, 4])
    changed["states"][:, 3:] += 1
    with torch.no_grad():
        before, after = fast(**batch).logits, fast(**changed).logits
    assert torch.equal(before[:, :2], after[:, :2])
    assert torch.equal(before[:, 2, 0], after[:, 2, 0])
    seen = not torch.equal(before[:, 2, 1:], after[:, 2, 1:])
    assert seen == (kind.get("component_prediction") == "autoregressive")
    assert not torch.equal(before[:, 3], after[:, 3])


def test_without_positional_encoding_there_are_no_positions_at_all():
    """One layer without positions sees the earlier steps as a set."""
    order = torch.tensor([2, 0, 1, 3])
    for encoding in (False, True):
        one, batch = model(n_layer=1, positional_encoding=encoding), steps(1, 4)
        shuffled = {name: tensor[:, order] for name, tensor in batch.items()}
        shuffled["timesteps"] = batch["timesteps"]
        with torch.no_grad():
            plain, other = one(**batch).logits[:, -1], one(**shuffled).logits[:, -1]
        assert torch.allclose(plain, other) == (not encoding)
    assert model(positional_encoding=False).tokenizer.embed_timestep is None


def test_an_overlapping_one_hot_with_a_shared_mlp_cannot_tell_components_apart():
    shared = model(action_sizes=[3, 3], one_hot="overlapping", positional_encoding=False).tokenizer
    own = model(action_sizes=[3, 3], positional_encoding=False).tokenizer
    states, actions = torch.zeros(1, 1, 16, dtype=torch.float64), torch.tensor([[[1, 1]]])
    for tokenizer, alike in ((shared, True), (own, False)):
        first, second = tokenizer.action_tokenizer(actions, states)[0, 0]
        assert torch.equal(first, second) == alike


@pytest.mark.parametrize("positional_encoding", [True, False])
def test_autocast_leaves_the_sum_of_the_layers_in_the_weights_precision(positional_encoding: bool):
    """As in transformers' GPT-2; models with and without positions are compared with each other."""
    trained = model(positional_encoding=positional_encoding).float()
    with torch.autocast("cpu", torch.bfloat16):
        outputs = trained(**steps(2, 3), output_hidden_states=True)
    assert {hidden.dtype for hidden in outputs.hidden_states} == {torch.float32}
