"""Every form of Eq. 11-17 computes the same, in value and in gradient."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hf_mech.models.strips import strips_kernel
from hf_mech.models.strips.configuration_strips import StripsTransformerConfig
from hf_mech.models.strips.modeling_strips import StripsTransformer
from hf_mech.models.strips.strips_attention import (
    strips_attention,
    strips_attention_linear,
    strips_attention_reference,
)

Form = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
MEMBERS, HEADS, ACTIONS = 2, 3, 4


def random_theta(seed: int, kind: str) -> Tensor:
    """theta [members, heads, actions, 3] in float64: inside (0, 1), only 0 and 1, or some of each."""
    generator = torch.Generator().manual_seed(seed)
    theta = torch.rand(MEMBERS, HEADS, ACTIONS, 3, generator=generator, dtype=torch.float64)
    exact = {"real": 0.0, "binary": 1.0, "mixed": 0.5}[kind]
    return torch.where(torch.rand(theta.shape, generator=generator) < exact, theta.round(), theta)


def random_ids(seed: int, length: int = 10) -> Tensor:
    """Action ids [batch, length], a quarter of them padding, anywhere; the last row is all actions."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, ACTIONS, (5, length), generator=generator)
    ids[:-1][torch.rand(4, length, generator=generator) < 0.25] = -1
    return ids


def reference(theta: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    return strips_attention_reference(theta, ids)[:2]


def values_and_gradient(form: Form, theta: Tensor, ids: Tensor) -> list[Tensor]:
    theta = theta.clone().requires_grad_()
    results = form(theta, ids)
    generator = torch.Generator().manual_seed(7)
    mixture = [torch.rand(r.shape, generator=generator, dtype=torch.float64).to(r.dtype) for r in results]
    (gradient,) = torch.autograd.grad(results, theta, mixture)
    return [*(r.detach() for r in results), gradient]


@pytest.mark.parametrize("kind", ["real", "binary", "mixed"])
@pytest.mark.parametrize("form", [strips_attention, strips_attention_linear])
def test_fast_forms_are_the_reference(form: Form, kind: str):
    assert strips_kernel.available
    for seed in range(5):
        theta, ids = random_theta(seed, kind), random_ids(seed)
        ours, papers = values_and_gradient(form, theta, ids), values_and_gradient(reference, theta, ids)
        for one, other in zip(ours, papers, strict=True):
            assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_the_gradient_is_the_difference_quotient():
    theta, ids = random_theta(0, "real").requires_grad_(), random_ids(0, length=6)
    assert torch.autograd.gradcheck(strips_attention, (theta, ids))


@pytest.mark.parametrize("which", [0, 1])
def test_a_gradient_from_one_result_alone(which: int):
    """Only the heads, or only the scores, take part in the objective."""
    theta, ids = random_theta(1, "mixed"), random_ids(1)
    found = []
    for form in (strips_attention, reference):
        leaf = theta.clone().requires_grad_()
        found.append(torch.autograd.grad(form(leaf, ids)[which].sum(), leaf)[0])
    assert_close(*found)


def test_padding_gives_zero_and_is_not_seen():
    theta, ids = random_theta(2, "mixed"), random_ids(2)
    heads, scores = strips_attention(theta, ids)
    assert not heads[ids < 0].any()
    assert not scores[ids < 0].any()
    for row, trace in enumerate(ids):
        alone, _ = strips_attention(theta, trace[trace >= 0].unsqueeze(0))
        assert_close(heads[row, trace >= 0], alone[0])


@pytest.mark.parametrize("length", [0, 1])
def test_short_traces(length: int):
    theta, ids = random_theta(3, "real"), torch.zeros(2, length, dtype=torch.long)
    for form in (strips_attention, reference):
        heads, scores = form(theta, ids) if length else strips_attention(theta, ids)
        assert heads.shape == (2, length, MEMBERS, HEADS)
        assert not heads.any()
        assert not scores.any()


@pytest.mark.parametrize("objective", [torch.sum, torch.norm], ids=["linear", "not linear"])
def test_double_backward_is_refused(objective: Callable[[Tensor], Tensor]):
    """Never a second derivative that silently lacks a part: theta + its gradient has one by way of theta at least."""
    theta = random_theta(0, "real").requires_grad_()
    _, scores = strips_attention(theta, random_ids(0))
    with pytest.raises(RuntimeError, match="twice"):
        (theta + torch.autograd.grad(objective(scores), theta, create_graph=True)[0]).sum().backward()


def test_without_numba_the_same_comes_out(monkeypatch: pytest.MonkeyPatch):
    theta, ids = random_theta(4, "mixed"), random_ids(4)
    compiled = values_and_gradient(strips_attention, theta, ids)

    def never(*arguments: object) -> None:
        raise AssertionError("the compiled kernel was called")

    monkeypatch.setattr(strips_kernel, "available", False)
    monkeypatch.setattr(strips_kernel, "forward", never)
    for plain, fast in zip(values_and_gradient(strips_attention, theta, ids), compiled, strict=True):
        assert_close(plain, fast)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(dtype: torch.dtype):
    theta, ids = random_theta(5, "mixed").to(dtype), random_ids(5)
    half = values_and_gradient(strips_attention, theta, ids)
    # The mixture of the gradient is rounded too, so that alone differs.
    single = values_and_gradient(strips_attention, theta.float(), ids)
    for rough, fine in zip(half, single, strict=True):
        assert rough.dtype == dtype
        assert_close(rough.float(), fine, rtol=0.02, atol=0.02)
    assert torch.equal(half[0], single[0].to(dtype))


# -------------------------------------------------------------------------------------------------------- the model


def random_model() -> StripsTransformer:
    config = StripsTransformerConfig(num_actions=ACTIONS, num_propositions=HEADS, ensemble=MEMBERS)
    return StripsTransformer(config).double().eval()


def as_input(ids: Tensor) -> Tensor:
    return torch.where(ids < 0, ACTIONS, ids)


@torch.no_grad()
def test_step_scores_every_action_that_may_come_next():
    model, ids = random_model(), random_ids(6)
    state = None
    for length in range(ids.shape[1]):
        scores, state = model.step(as_input(ids[:, length]), state)
        for action in range(ACTIONS):
            longer = torch.cat([ids[:, : length + 1], torch.full((len(ids), 1), action)], 1)
            assert_close(scores[:, action], model(as_input(longer)).inapplicability[:, -1])


@torch.no_grad()
def test_the_streaming_state_does_not_grow():
    model, state = random_model(), None
    sizes = set()
    for position in range(50):
        _, state = model.step(torch.tensor([position % ACTIONS, ACTIONS]), state)
        sizes.add((state.shape, state.untyped_storage().nbytes()))
    assert len(sizes) == 1
    assert state is not None
    assert state.shape == (2, MEMBERS, HEADS, ACTIONS)
    assert not state[1].any()  # nothing but padding


@torch.no_grad()
def test_the_attentions_give_the_heads_outputs():
    model, ids = random_model(), random_ids(7)
    output, plain = model(as_input(ids), output_attentions=True), model(as_input(ids))
    assert plain.attentions is None
    (attention,) = output.attentions
    assert attention.shape == (len(ids), MEMBERS, HEADS, ids.shape[1], ids.shape[1])
    value = model.theta[..., 2][:, :, ids.clamp(min=0)] * (ids >= 0)  # [members, heads, batch, length]
    assert_close(torch.einsum("bmhij,mhbj->bimh", attention, value), plain.head_outputs)
    for name in ("inapplicability", "trace_inapplicability", "head_outputs"):
        assert_close(output[name], plain[name])
    assert not attention.triu().any()  # strictly the past
    assert float(attention.sum(-1).max()) <= 1 + 1e-12  # a stick is broken, never lengthened
