"""The models against the paper's formulas, written from its text and from public outputs alone (`paper`)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoModel

from hf_mech.models.belief_state.belief_state_generation import belief_distribution

from . import generation_models, models, paper
from .models import END, KINDS, PAD


def padded(rows: list[list[int]], left: bool) -> dict[str, torch.Tensor]:
    longest = max(map(len, rows))
    space = [longest - len(row) for row in rows]
    if left:
        ids = [[PAD] * n + row for n, row in zip(space, rows, strict=True)]
        mask = [[0] * n + [1] * len(row) for n, row in zip(space, rows, strict=True)]
    else:
        ids = [row + [PAD] * n for n, row in zip(space, rows, strict=True)]
        mask = [[1] * len(row) + [0] * n for n, row in zip(space, rows, strict=True)]
    batch = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
    return {**batch, "labels": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)}


def packed(rows: list[list[int]]) -> dict[str, torch.Tensor]:
    ids = torch.tensor([[token for row in rows for token in row]])
    places = torch.cat([torch.arange(len(row)) for row in rows])[None]
    return {"input_ids": ids, "position_ids": places, "labels": ids.masked_fill(places == 0, -100)}


def stock(encoder: Any, embedding: torch.nn.Module) -> Any:
    """An encoder as transformers makes it, with the weights of ours."""
    made = AutoModel.from_config(encoder.config).double().eval()
    made.load_state_dict(encoder.state_dict(), strict=False)
    made.set_input_embeddings(embedding)
    return made


@pytest.mark.parametrize("suffix", [[], [4, 2, 7, 1]], ids=["empty", "suffix"])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_heads_are_eq_1(kind: str, suffix: list[int]):
    """B is a stock decoder that reads the end token and then the suffix from its end; the head is one MLP on both."""
    made, prefix = models.model(kind), models.tokens(1, 6)
    embedding, head = made.get_input_embeddings(), made.text_head
    read = [stock(encoder, embedding) for encoder in (made.model.forward_encoder, made.model.backward_encoder)]
    f = read[0](prefix).last_hidden_state[0, -1]
    b = read[1](torch.tensor([[END, *reversed(suffix)]])).last_hidden_state[0, -1]
    states = torch.cat([head.prefix.weight, head.suffix.weight], 1) @ torch.cat([f, b]) + head.prefix.bias
    states = (head.hidden[0].weight @ states.relu() + head.hidden[0].bias).relu()
    logits = [layer.weight @ states + layer.bias for layer in (head.next, head.prev)]
    for found, wanted in zip(paper.heads(made, prefix[0].tolist(), suffix), logits, strict=True):
        assert_close(found, wanted.log_softmax(-1))


LAYOUTS: dict[str, Any] = {
    "left": lambda rows: padded(rows, True),
    "right": lambda rows: padded(rows, False),
    "packed": packed,
}


@pytest.mark.parametrize(
    ("weights", "least_gap"),
    [
        ("sequence", 1),
        ("gap", 2),
        pytest.param("sequence", 2, marks=pytest.mark.slow),
        pytest.param("gap", 1, marks=pytest.mark.slow),
    ],
)
@torch.no_grad()
def test_the_loss_is_the_readmes_formula(weights: str, least_gap: int):
    """Lengths of 4, 7 and 12 in one batch: the plain loop over all pairs, in every layout, to the last digits."""
    made = models.model(least_gap=least_gap, pair_weights=weights)
    texts = [models.tokens(1, length, length)[0].tolist() for length in (4, 7, 12)]
    wanted = paper.loss(made, texts, weights)
    rows = [[*text, END] for text in texts] if least_gap == 1 else texts
    for layout in LAYOUTS.values():
        assert_close(made(**layout(rows)).loss, wanted, rtol=1e-12, atol=0)
    if weights == "sequence":  # the mean over the texts, each by its trained tokens, of the mean over its pairs
        alone = torch.stack([paper.loss(made, [text], weights) for text in texts[:2]])
        trained = torch.tensor([len(text) - (least_gap == 2) for text in texts[:2]])
        assert_close(paper.loss(made, texts[:2], weights), (alone * trained).sum() / trained.sum())


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("gpt2", {"least_gap": 1, "predict_previous": False}),
        ("gpt2", {"least_gap": 2, "use_backward": False}),
        ("llama", {"least_gap": 1}),
        ("qwen3", {"least_gap": 2}),
    ],
    ids=str,
)
@torch.no_grad()
def test_the_loss_of_other_models_is_eq_2(kind: str, options: dict[str, Any]):
    made = models.model(kind, **options)
    texts = [models.tokens(1, length, length)[0].tolist() for length in (7, 2, 5)]
    wanted = paper.loss(made, texts, made.config.weights_of_pairs)
    rows = [[*text, END] for text in texts] if options["least_gap"] == 1 else texts
    for layout in LAYOUTS.values():
        assert_close(made(**layout(rows)).loss, wanted)


@pytest.mark.parametrize("weights", ["sequence", "gap"])
@torch.no_grad()
def test_an_untrained_prompt_is_eq_2_behind_it(weights: str):
    made, text = models.model(least_gap=1, pair_weights=weights), models.tokens(1, 7)[0].tolist()
    ids = torch.tensor([[*text, END]])
    labels = ids.clone()
    labels[:, :3] = -100
    assert_close(made(ids, labels=labels).loss, paper.loss(made, [text], weights, prompt=3))


PROMPT, GOAL = [3, 1, 4], [1, 5]


@pytest.mark.parametrize("kind", generation_models.ENCODERS)
@torch.no_grad()
def test_the_belief_distribution_is_that_of_theorem_2(kind: str):
    made = generation_models.model(kind, use_cache=False)
    state = made.model(torch.tensor([PROMPT])).last_hidden_state[0, -1]
    found, wanted = belief_distribution(made, state, 2), paper.backwards(made, PROMPT, 2)
    assert len(found) == len(wanted) == generation_models.VOCABULARY**2
    assert all(found[text] == pytest.approx(p) for text, p in wanted.items())


@pytest.mark.parametrize("goal", [GOAL, []], ids=["goal", "empty"])
@torch.no_grad()
def test_greedy_generation(goal: list[int]):
    made, text = generation_models.model(), list(PROMPT)
    for _ in range(5):
        text.append(int(paper.heads(made, text, goal)[0][:-1].argmax()))  # not the end token
    given = {"suffix_ids": torch.tensor([goal])} if goal else {}
    how = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    assert made.generate(torch.tensor([PROMPT]), **given, **how)[0].tolist() == text
