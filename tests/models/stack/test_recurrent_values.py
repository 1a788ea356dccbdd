"""Recurrent values: what the equations mean, their forms, caches, padding, several sequences, and the losses."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close
from transformers import DynamicCache, StaticCache

from hf_mech.models.stack import (
    StackError,
    StackGPT2ForCausalLM,
    balance_loss,
    entropy_loss,
    push_loss,
    recurrent_values,
    stack_attention_from_operations,
)
from hf_mech.models.stack.stack_values import Cell, Inputs, RecurrentValues, links, recurrent_values_reference

from .contract import gpt2, inputs, predicting_tokens

PUSH, POP, NOTHING = 0, 1, 2


def model(**options: object) -> StackGPT2ForCausalLM:
    torch.manual_seed(0)
    return StackGPT2ForCausalLM(gpt2(stack_values="recurrent", **options)).eval().double()


def test_a_push_puts_the_running_value_away_and_a_pop_brings_it_back():
    """The links with a cell that adds, v_i = h_i + r_i + p_i, over 1 ( 2 ( 4 ) 8 )."""
    operations = torch.tensor([[NOTHING, NOTHING, PUSH, NOTHING, PUSH, NOTHING, POP, NOTHING, POP]])
    worth = torch.tensor([0.0, 1, 0, 2, 0, 4, 0, 8, 0])
    alpha = stack_attention_from_operations(operations, dtype=torch.float64)
    before = torch.nn.functional.pad(alpha[:, :-1], (0, 0, 1, 0))
    runs, popped = links(before, (operations == POP).double(), torch.arange(9), None)
    values: list[float] = []
    for i in range(9):
        previous = float(runs[0, i]) * values[-1] if values else 0.0
        values.append(
            float(worth[i]) + previous + sum(float(popped[0, i, n]) * value for n, value in enumerate(values))
        )
    # Inside the brackets counting begins anew; behind them it goes on with what was there before.
    assert values == [0, 1, 1, 2, 2, 4, 4 + 2, 6 + 8, 14 + 1]


def test_position_0_is_pushed_and_takes_nothing_over():
    alpha = stack_attention_from_operations(torch.tensor([[NOTHING] * 4]), dtype=torch.float64)
    before = torch.nn.functional.pad(alpha[:, :-1], (0, 0, 1, 0))
    runs, popped = links(before, torch.ones(1, 4), torch.arange(4), torch.tensor([1]))
    assert runs[0, :2].tolist() == [0, 0]
    assert not popped[0, :2].any()


def test_noise_is_on_the_values_that_are_read_in_training_alone():
    """As if r and p had it: their shares of normal numbers times the layer norm's scale, in the reference's cell."""
    sizes, noise = {"batch": 2, "new": 5, "hidden": 8}, 0.3
    torch.manual_seed(0)
    values = RecurrentValues(sizes["hidden"], 0.5, noise=noise).double()
    values.init_weights()
    torch.nn.init.uniform_(values.norm_weight, 0.5, 2)
    hidden = torch.randn(*sizes.values(), dtype=torch.float64)
    runs = torch.rand(2, 5, dtype=torch.float64)
    popped = torch.rand(2, 5, 5, dtype=torch.float64).tril(-1)
    given = (hidden, runs, popped, hidden[:, :0], torch.arange(5))
    torch.manual_seed(1)
    drawn = noise * values.norm_weight * torch.randn(2, 5, 2, 8, dtype=torch.float64)
    read = torch.cat([runs[..., None] * drawn[:, :, 0], popped.sum(-1)[..., None] * drawn[:, :, 1]], -1)
    own = hidden @ values.input_weight.T + values.input_bias + read @ values.state_weight.T
    cell = Cell(values.state_weight, values.output_weight, values.output_bias, values.norm_weight, values.norm_bias)
    expected = recurrent_values_reference(Inputs(hidden, own, runs, popped, hidden[:, :0]), cell)
    torch.manual_seed(1)
    assert_close(values.train()(*given), expected)
    assert not torch.allclose(values.eval()(*given), expected)
    with pytest.raises(StackError, match="stack_values_noise"):
        gpt2(stack_values_noise=0.1)


@pytest.mark.parametrize("chunks", [[1] * 12, [4, 1, 1, 3, 3]])
@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_chunks_are_the_whole(chunks: list[int], kind: str):
    ours, batch = model(), inputs(3, 12, 0)
    cache = DynamicCache() if kind == "dynamic" else StaticCache(config=ours.config, max_cache_len=16)
    parts = [ours(part, past_key_values=cache).logits for part in batch["input_ids"].split(chunks, 1)]
    assert_close(torch.cat(parts, 1), model()(**batch).logits)


def test_padding_in_the_middle_changes_nothing():
    ours, batch = model(), inputs(3, 9, 0)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    filler = torch.full((3, 4), 5)
    gapped = torch.cat([ids[:, :5], filler, ids[:, 5:]], 1)
    gaps = torch.cat([mask[:, :5], 0 * filler, mask[:, 5:]], 1)
    logits = ours(gapped, attention_mask=gaps).logits
    assert_close(torch.cat([logits[:, :5], logits[:, 9:]], 1), ours(**batch).logits)


def test_sequences_in_a_row_are_as_if_alone():
    ours, batch = model(), inputs(3, 9, 0)
    row, places = batch["input_ids"].view(1, -1), torch.arange(9).repeat(3)[None]
    assert_close(ours(row, position_ids=places).logits.view(3, 9, -1), ours(**batch).logits)


def test_later_chunks_have_their_gradient():
    ours, batch = model(), predicting_tokens(3, 9, 0)
    with torch.no_grad():
        cache = ours(batch["input_ids"][:, :5], use_cache=True).past_key_values
    ours(batch["input_ids"][:, 5:], labels=batch["labels"][:, 5:], past_key_values=cache).loss.backward()
    for layer in ours.transformer.h:
        assert layer.stack.values.state_weight.grad.any()


def test_differentiating_twice_is_refused():
    hidden = torch.randn(1, 3, 4, requires_grad=True)
    cell = Cell(torch.randn(5, 8), torch.randn(4, 5), torch.zeros(4), torch.ones(4), torch.zeros(4))
    given = Inputs(hidden, torch.randn(1, 3, 5), torch.ones(1, 3), torch.zeros(1, 3, 3), torch.zeros(1, 0, 4))
    values = recurrent_values(given, cell)
    (gradient,) = torch.autograd.grad(values.pow(2).sum(), hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="recurrent_values_reference"):
        gradient.sum().backward()


def test_several_pops_are_refused():
    with pytest.raises(StackError, match="multi_pop must be 1, got 2"):
        gpt2(stack_values="recurrent", multi_pop=2)


# ------------------------------------------------------------------------------------------------------------- losses


def losses(operations: list[int], text: slice = slice(1, None)) -> tuple[float, float]:
    """The balance and the missing pushes of half of the text."""
    given = torch.tensor([operations])
    alpha, actions = stack_attention_from_operations(given), torch.nn.functional.one_hot(given, 3).float()
    chosen = torch.zeros_like(given, dtype=torch.bool)
    chosen[:, text] = True
    return float(balance_loss([alpha], [actions], chosen)), float(push_loss([actions], chosen, 0.5))


def test_balanced_brackets_cost_nothing():
    assert losses([NOTHING, PUSH, PUSH, POP, POP]) == (0, 0)
    assert losses([NOTHING] * 5) == (0, 0.5)


def test_what_stays_open_and_what_closes_nothing_cost():
    assert losses([NOTHING, PUSH, PUSH, POP, NOTHING])[0] == 1 + 2 / 4
    assert losses([NOTHING, POP, PUSH, POP, POP])[0] == 2 / 4 + 2 * 2 / 4


def test_only_the_text_counts():
    assert losses([NOTHING, PUSH, POP, PUSH, PUSH], slice(1, 3)) == (0, 0)


def test_the_entropy_is_that_of_the_positions_of_the_text():
    third = 1 / 3
    actions = torch.tensor([[[third, third, third], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]], requires_grad=True)
    text = torch.tensor([[False, True, True]])
    loss = entropy_loss([actions, actions], text)
    assert float(loss.detach()) == pytest.approx(math.log(2))  # twice half of it
    loss.backward()
    assert actions.grad is not None
    assert actions.grad.isfinite().all()
    assert not actions.grad[0, 0].any()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (torch.ones(1, 3, dtype=torch.bool), r"\[2, 3\]"),
        (torch.ones(2, 3), "boolean"),
        (torch.tensor([[False, True, True], [False, False, False]]), "position that is True"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(text: torch.Tensor, said: str):
    alpha, actions = [torch.eye(3).expand(2, 3, 3)], [torch.full((2, 3, 3), 1 / 3)]
    with pytest.raises(StackError, match=said):
        balance_loss(alpha, actions, text)
    with pytest.raises(StackError, match=said):
        push_loss(actions, text, 0.5)
    with pytest.raises(StackError, match=said):
        entropy_loss(actions, text)


def test_other_arguments_of_the_losses_that_make_no_sense():
    text, alpha, actions = torch.ones(1, 3, dtype=torch.bool), [torch.eye(3)[None]], [torch.full((1, 3, 3), 1 / 3)]
    with pytest.raises(StackError, match="behind the empty stack"):
        balance_loss(alpha, actions, text)
    with pytest.raises(StackError, match="0 to 1, got 2"):
        push_loss(actions, text, 2)
    with pytest.raises(StackError, match="output_stack_attentions"):
        push_loss([], text, 0.5)


def test_a_tolerance_may_be_a_whole_number():
    assert gpt2(stack_tolerance=0).stack_tolerance == 0
