"""The relaxed backend: discrete where it is cold, with gradients where it is not; Trainer finds a program's test."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer, TrainingArguments

from hf_mech.models.dat import DATForCausalLM
from hf_mech.models.dat.dat_embedding import dat_norm, soft_dat_norm
from hf_mech.models.dat.dat_layer import DATProjection, attention_weights, dat_max, soft_first_match, update
from hf_mech.programs.psl import compile_program

INDUCTION = """
registers: {symbol: 's', position: 'p', before: 'b', found: 'f'}
system: {symbol: symbol, position: position, output: found}
constants: {}
where position[n] == position[N]@pos_decrement:
    before[N] = symbol[n]
where before[n] == symbol[N] and symbol[n] != symbol[N]:
    found[N] = symbol[n]
"""
"""What stood behind the first word that is the same as the last."""


def induction(temperature: float) -> tuple[DATForCausalLM, Any]:
    return compile_program(
        INDUCTION,
        max_position_embeddings=12,
        num_open_values=8,
        backend="relaxed",
        relaxation_temperature=temperature,
        logit_scale=10.0,
    )


# ---------------------------------------------------------------------------------------------------- by the formulas


@pytest.mark.parametrize("right", [False, True])
def test_the_soft_match_is_datmax_where_it_is_cold(right: bool) -> None:
    scores = torch.randn(5, 7, 9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    hard = dat_max(scores > 0, right).double()
    errors = [float((soft_first_match(scores / t, right) - hard).abs().max()) for t in (1.0, 0.1, 0.001, 1e-6)]
    assert errors[0] > errors[1] > errors[2] >= errors[3]
    assert errors[3] < 1e-9


def test_a_soft_match_gives_at_most_one_and_no_match_gives_none() -> None:
    assert soft_first_match(torch.full((1, 1, 5), -1e4)).tolist() == [[[0.0] * 5]]
    assert soft_first_match(torch.tensor([[[0.0, 0.0, 0.0]]])).tolist() == [[[0.5, 0.25, 0.125]]]
    assert soft_first_match(torch.tensor([[[0.0, 0.0, 0.0]]]), right=True).tolist() == [[[0.125, 0.25, 0.5]]]
    sums = soft_first_match(torch.randn(4, 4, 50)).sum(-1)
    assert bool((sums <= 1 + 1e-6).all())


def test_what_may_not_be_read_has_no_weight() -> None:
    allowed = torch.ones(6, 6, dtype=torch.bool).tril()[None]
    for temperature in (0.0, 0.01, 1.0):
        weights = attention_weights(torch.ones(1, 6, 6), 2, allowed, False, temperature)
        assert not weights[~allowed].any()


def test_the_soft_norm_is_datnorm_where_it_is_cold() -> None:
    register = torch.eye(5, dtype=torch.float64)[None, [0, 0, 3]]
    value = torch.eye(5, dtype=torch.float64)[None, [1, 4, 3]]
    weights = torch.tensor([[[1.0, 0, 0], [0, 0, 0], [0, 0, 1.0]]], dtype=torch.float64)
    hard = update(register, value, weights, dat_norm)
    assert hard.argmax(-1).tolist() == [[1, 0, 3]]  # overwritten, left as it is, the same again: the cases of (70c-iv)
    softer = [partial(soft_dat_norm, temperature=t) for t in (1.0, 0.3, 0.1, 0.02)]
    errors = [float((update(register, value, weights, norm) - hard).abs().max()) for norm in softer]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-9
    nothing = torch.zeros(1, 1, 5)
    assert torch.equal(dat_norm(nothing), nothing)
    assert torch.equal(soft_dat_norm(nothing, 0.1), nothing)


# --------------------------------------------------------------------------------------------------- whole programs


def test_outputs_go_to_the_discrete_ones() -> None:
    model, tokenizer = induction(0.0)
    batch = tokenizer(["a b c d b", "e a", "c d e c a d"], padding=True, return_tensors="pt")
    hard = model.dat(**batch).last_hidden_state
    errors = []
    for temperature in (0.4, 0.2, 0.1, 0.05, 0.02):
        model.config.relaxation_temperature = temperature
        errors.append(float((model.dat(**batch).last_hidden_state - hard).detach().abs().max()))
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.01
    assert errors[-1] < 1e-6


def test_gradients_reach_every_weight_and_are_those_of_the_outputs() -> None:
    model, tokenizer = induction(0.5)
    model.double()
    batch = tokenizer("a b c a", return_tensors="pt")
    direction = torch.randn(1, 5, model.config.vocab_size, dtype=torch.float64)

    def value() -> torch.Tensor:
        return (model(**batch).logits * direction).sum()

    value().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        for index in range(weight.numel()):
            place = (index // 2, index % 2)
            original = float(weight[place].detach())
            with torch.no_grad():
                weight[place] = original + 1e-7
                above = float(value())
                weight[place] = original - 1e-7
                below = float(value())
                weight[place] = original
            assert float(weight.grad[place]) == pytest.approx((above - below) / 2e-7, rel=1e-4, abs=1e-5), (name, place)
    assert all(bool((weight.grad != 0).any()) for weight in model.parameters())


# ---------------------------------------------------------------------------------------------------------- learning


def rows(tokenizer: Any, count: int, seed: int) -> list[dict[str, list[int]]]:
    """Six different words and one of them again, but for the last; the completion is the word behind its first."""
    draw, made = random.Random(seed), []
    for _ in range(count):
        words = draw.sample("abcdefg", 6)
        words.append(draw.choice(words[:5]))
        ids = tokenizer(" ".join(words), words[words.index(words[-1]) + 1])["input_ids"]
        made.append({"input_ids": ids, "labels": [-100] * (len(ids) - 1) + ids[-1:]})
    return made


@torch.no_grad()
def accuracy(model: DATForCausalLM, data: list[dict[str, list[int]]]) -> float:
    ids = torch.tensor([row["input_ids"] for row in data])
    return float((model(ids).logits[:, -2].argmax(-1) == ids[:, -1]).float().mean())


@torch.no_grad()
def rounded(model: DATForCausalLM) -> None:
    """Every block becomes the nearer one of `==` and `!=`, (72)."""
    kinds = torch.tensor([[1.0, 0.0], [-1.0, 1.0]])
    for module in model.modules():
        if isinstance(module, DATProjection):
            module.weight.copy_(kinds[torch.cdist(module.weight, kinds).argmin(-1)])


def test_trainer_finds_out_whether_a_test_is_equality_or_its_negation(tmp_path: Path) -> None:
    model, tokenizer = induction(0.2)
    compiled = {name: weight.clone() for name, weight in model.named_parameters()}
    data, unseen = rows(tokenizer, 200, 0), rows(tokenizer, 50, 1)
    assert accuracy(model, unseen) == 1
    query = model.dat.layers[1].query.weight  # its tests in order: of the symbols, `!=`, and of the word before, `==`
    undecided = [operand.negated for operand in model.dat.layers[1].query.operands].index(True)
    with torch.no_grad():
        query[undecided] = torch.tensor([0.0, 0.5])  # halfway between `==` and `!=`: the same for all values
    model.config.backend = "dense"
    assert accuracy(model, unseen) == 0
    model.config.backend = "relaxed"
    for name, weight in model.named_parameters():
        weight.requires_grad_("query" in name)

    arguments = TrainingArguments(
        output_dir=tmp_path,
        max_steps=25,
        per_device_train_batch_size=8,
        learning_rate=0.1,
        lr_scheduler_type="constant",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
    )
    Trainer(model=model, args=arguments, train_dataset=data).train()
    model.eval()
    assert accuracy(model, unseen) == 1
    rounded(model)
    for name, weight in model.named_parameters():
        assert torch.equal(weight, compiled[name]), name
    model.config.backend = "gather"  # which runs nothing but a program
    assert accuracy(model, unseen) == 1
