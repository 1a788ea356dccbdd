"""Acting: a decision is forward's over the last steps of the row's own episode, with a cache and without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hf_mech.models.msat import MSATError
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

from .models import FEATURES, KINDS, SIZES, model, steps

STRIDES = (1, 2, 6)


def windows(length: int, context_length: int, stride: int) -> Iterator[slice]:
    """For each decision, the steps that it sees."""
    begin = 0
    for step in range(length):
        if step - begin == context_length:
            begin += stride
        yield slice(begin, step + 1)


def play(
    acting: MSATDecisionTransformer, begins: Tensor, stride: int, use_cache: bool = True, **how: Any
) -> tuple[Tensor, Tensor]:
    """Actions and logits of every decision, [length, batch, ...]; `begins` is [length, batch]."""
    length, batch = begins.shape
    observed = steps(batch, length, 5)
    context = acting.start_context(batch, stride, use_cache)
    actions, logits = [], []
    for step in range(length):
        now = (observed["states"][:, step], context, observed["returns_to_go"][:, step])
        actions.append(acting.act(*now, begins=begins[step], **how))
        assert context.logits is not None
        logits.append(context.logits)
    return torch.stack(actions), torch.stack(logits)


def restarts(length: int, batch: int) -> Tensor:
    """Rows that restart at different times, one of them never, one twice in a row."""
    begins = torch.rand(length, batch, generator=torch.Generator().manual_seed(2)) < 0.1
    begins[:, 0] = False
    begins[9:11, 1] = True
    return begins


def cases(*kinds: dict[str, Any]) -> list[Any]:
    """Every kind and every stride; in the quick suite each kind once, and each stride."""
    return [
        pytest.param(kind, stride, marks=[] if place == number % 3 else pytest.mark.slow, id=f"{kind}-{stride}")
        for number, kind in enumerate(kinds)
        for place, stride in enumerate(STRIDES)
    ]


@pytest.mark.parametrize(("kind", "stride"), cases(*KINDS, {"positional_encoding": False}))
def test_cached_is_uncached(kind: dict[str, Any], stride: int):
    acting, begins = model(**kind), restarts(18, 3)
    cached, plain = (play(acting, begins, stride, use_cache) for use_cache in (True, False))
    assert torch.equal(cached[0], plain[0])
    assert_close(cached[1], plain[1])


@pytest.mark.parametrize(("kind", "stride"), cases(*KINDS))
def test_a_decision_is_forward_over_its_window(kind: dict[str, Any], stride: int):
    """Also past the context length; timesteps are the episode's, whatever the window."""
    acting, length = model(**kind), 15
    actions, logits = play(acting, torch.zeros(length, 2, dtype=torch.bool), stride)
    batch = steps(2, length, 5) | {"actions": actions.transpose(0, 1)}
    for step, window in enumerate(windows(length, 6, stride)):
        with torch.no_grad():
            expected = acting(**{name: tensor[:, window] for name, tensor in batch.items()}).logits[:, -1]
        assert_close(logits[step], expected)
        assert torch.equal(actions[step], expected.argmax(-1))


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_row_depends_on_its_own_episode_alone(stride: int):
    acting, begins = model(), restarts(20, 4)
    together = play(acting, begins, stride)[1]
    observed = steps(4, 20, 5)
    for row in range(4):
        for first, last in episodes(begins[:, row]):
            context = acting.start_context(1, stride)
            for step in range(first, last):
                now = (observed["states"][row : row + 1, step], context, observed["returns_to_go"][row : row + 1, step])
                acting.act(*now)
                assert context.logits is not None
                assert_close(context.logits[0], together[step, row])


def episodes(begins: Tensor) -> Iterator[tuple[int, int]]:
    """The first step and the end of each episode of a row."""
    firsts = sorted({0, *begins.nonzero().flatten().tolist()})
    yield from zip(firsts, [*firsts[1:], len(begins)], strict=True)


def test_states_are_encoded_once(monkeypatch: pytest.MonkeyPatch):
    acting, seen = model(context_length=3), 0

    def count(module: Any, arguments: Any) -> None:
        nonlocal seen
        seen += len(arguments[0])

    acting.tokenizer.state_encoder.register_forward_pre_hook(count)
    play(acting, torch.zeros(12, 2, dtype=torch.bool), 1)
    assert seen == 24


def test_the_context_slides_by_its_stride():
    acting = model()
    for stride, expected in ((1, [1, 2, 3, 4, 5, 6, 6, 6, 6]), (3, [1, 2, 3, 4, 5, 6, 4, 5, 6])):
        context, held = acting.start_context(1, stride), []
        for _ in range(9):
            acting.act(torch.zeros(1, FEATURES), context, 1.0)
            held.append(int(context.steps))
        assert held == expected


@pytest.mark.parametrize("order", [[1, 0], [1]], ids=str)
def test_some_rows_decide_while_others_wait(order: list[int]):
    acting, observed = model(), steps(2, 4, 5)
    context, alone = acting.start_context(2), acting.start_context(1)
    for step in range(4):
        states, returns = observed["states"][:, step], observed["returns_to_go"][:, step]
        if step % 2:
            acting.act(states[order], context, returns[order], rows=order)
        else:
            acting.act(states, context, returns)
        acting.act(states[1:], alone, returns[1:])
        assert context.logits is not None
        assert alone.logits is not None
        assert_close(context.logits[order.index(1) if step % 2 else 1], alone.logits[0])
    assert context.timesteps.tolist() == ([4, 4] if 0 in order else [2, 4])


def test_given_actions_are_remembered_as_if_chosen():
    acting, batch = model(), steps(2, 5)
    context = acting.start_context(2)
    for step in range(5):
        now = {name: tensor[:, step] for name, tensor in batch.items()}
        assert torch.equal(acting.act(**now, context=context), now["actions"])
    with torch.no_grad():
        assert_close(context.logits, acting(**batch).logits[:, -1])


@pytest.mark.parametrize("kind", [pytest.param(KINDS[2], marks=pytest.mark.slow), KINDS[3]], ids=str)
def test_sampling_follows_the_logits_and_the_generator(kind: dict[str, Any]):
    acting, count = model(**kind, n_layer=1), 4000
    state, returns = torch.zeros(count, FEATURES, dtype=torch.float64), torch.ones(count)

    def drawn(**how: Any) -> tuple[Tensor, Tensor]:
        context = acting.start_context(count)
        actions = acting.act(state, context, returns, do_sample=True, **how)
        assert context.logits is not None
        return actions, context.logits

    actions, logits = drawn(generator=torch.Generator().manual_seed(1))
    assert torch.equal(actions, drawn(generator=torch.Generator().manual_seed(1))[0])
    assert not torch.equal(actions, drawn(generator=torch.Generator().manual_seed(2))[0])
    for component, size in enumerate(SIZES):
        shares = torch.bincount(actions[:, component], minlength=size) / count
        expected = logits[:, component, :size].softmax(-1).mean(0).float()
        assert_close(shares, expected, rtol=0, atol=0.03)
    cold, _ = drawn(temperature=1e-4)
    assert torch.equal(cold, acting.act(state, acting.start_context(count), returns))


def test_a_model_in_training_mode_does_not_act():
    acting = model().train()
    with pytest.raises(MSATError, match=r"training mode.*model\.eval\(\)"):
        acting.act(torch.zeros(1, FEATURES), acting.start_context(), 1.0)


def test_eager_attention_acts_alike():
    begins = restarts(15, 3)
    plain, eager = model(), model()
    eager.set_attn_implementation("eager")
    assert_close(play(plain, begins, 2)[1], play(eager, begins, 2)[1])
    assert eager.decoder.config._attn_implementation == "eager"


@pytest.mark.parametrize(
    "kind", [KINDS[2], KINDS[4], *(pytest.param(KINDS[n], marks=pytest.mark.slow) for n in (0, 1, 3))], ids=str
)
def test_autocast_may_begin_and_end_between_decisions(kind: dict[str, Any]):
    acting, observed = model(**kind).float(), steps(2, 10, 5)
    contexts = acting.start_context(2, stride=3), acting.start_context(2, stride=3)
    for step in range(10):
        now = {name: tensor[:, step] for name, tensor in observed.items()}
        for context, enabled in zip(contexts, (step % 3 == 1, False), strict=True):
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                acting.act(**now, context=context)
        mixed, plain = (context.logits for context in contexts)
        assert_close(mixed, plain, rtol=0.05, atol=0.2, check_dtype=False)
