"""The models against the paper's formulas, written from its text and from public outputs alone (`paper`)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoModel

from hf_mech.models.belief_state.belief_state_generation_backwards import belief_distribution

from . import generation_models, models, paper
from .models import END, KINDS, PAD

LENGTHS = (7, 2, 5)


def texts() -> list[list[int]]:
    return [models.tokens(1, length, length)[0].tolist() for length in LENGTHS]


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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "options",
    [
        {"least_gap": 2},
        {"least_gap": 1},
        {"least_gap": 2, "pair_weights": "gap"},
        {"least_gap": 1, "pair_weights": "sequence"},
        {"least_gap": 1, "predict_previous": False},
        {"least_gap": 2, "use_backward": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_loss_is_eq_2(kind: str, options: dict[str, Any], layout: str):
    """Texts of different lengths, each with its end token if it is to be learned."""
    made = models.model(kind, **options)
    weights = made.config.weights_of_pairs
    total, tokens = torch.zeros((), dtype=torch.float64), 0
    for text in texts():
        trained = len(text) - 1 + (options["least_gap"] == 1)
        total, tokens = total + trained * paper.loss(made, text, weights)[0], tokens + trained
    rows = [[*text, END] for text in texts()] if options["least_gap"] == 1 else texts()
    assert_close(made(**LAYOUTS[layout](rows)).loss, total / tokens)


@torch.no_grad()
def test_an_untrained_prompt_is_eq_2_behind_it():
    made, text = models.model(), texts()[0]
    ids = torch.tensor([[*text, END]])
    labels = ids.clone()
    labels[:, :3] = -100
    expected, number = paper.loss(made, text, "sequence", prompt=3)
    assert number == 10
    assert_close(made(ids, labels=labels).loss, expected)


PROMPT, GOAL, NEW = [3, 1, 4], [1, 5], 3


def searched(made: Any, goal: list[int], **how: Any) -> Any:
    given = {"suffix_ids": torch.tensor([goal])} if goal else {}
    prompt = torch.tensor([PROMPT])
    options = {"max_new_tokens": NEW, "return_dict_in_generate": True, "stop_at_end": False, "pad_token_id": 0}
    return made.generate(prompt, attention_mask=torch.ones_like(prompt), **given, **{**options, **how})


@pytest.mark.parametrize("kind", generation_models.ENCODERS)
@pytest.mark.parametrize("goal", [GOAL, []], ids=["goal", "empty"])
@torch.no_grad()
def test_algorithm_1_with_eq_7_and_8(kind: str, goal: list[int]):
    made = generation_models.model(kind)
    found = searched(made, goal, num_rollouts=15)
    wanted = paper.algorithm1(made, PROMPT, goal, NEW, 15)
    assert found.candidates[0].tolist() == [new for new, _ in wanted]
    assert_close(found.priorities[0].exp().double(), torch.tensor([r for _, r in wanted]).double(), rtol=1e-5, atol=0)
    assert found.sequences[0].tolist() == PROMPT + wanted[int(found.scores[0].argmax())][0]
    for (new, _), score in zip(wanted, found.scores[0].tolist(), strict=True):
        text = PROMPT + new + goal
        if text[-1] != generation_models.END:  # `forward` would take it for the end of the text itself
            assert score == pytest.approx(paper.eq7(made, text, len(text) - 2) if goal else paper.eq8(made, text, NEW))


@pytest.mark.parametrize("goal", [GOAL, []], ids=["goal", "empty"])
@torch.no_grad()
def test_beams_are_algorithm_2(goal: list[int]):
    made = generation_models.model()
    found = searched(made, goal, num_rollouts=6, proposals="beam")
    wanted = paper.algorithm2(made, PROMPT, goal, NEW, 6)
    assert sorted(found.candidates[0].tolist()) == sorted(wanted)


@pytest.mark.parametrize("kind", generation_models.ENCODERS)
@torch.no_grad()
def test_the_belief_distribution_is_that_of_theorem_2(kind: str):
    made = generation_models.model(kind, use_cache=False)
    state = made.model(torch.tensor([PROMPT])).last_hidden_state[0, -1]
    found, wanted = belief_distribution(made, state, 2), paper.backwards(made, PROMPT, 2)
    assert len(found) == len(wanted) == generation_models.VOCABULARY**2
    for text, p in wanted.items():
        if text[-1] != generation_models.END:  # `forward` would take it for the end of the text itself
            assert found[text] == pytest.approx(p)


@pytest.mark.parametrize("goal", [GOAL, []], ids=["goal", "empty"])
@torch.no_grad()
def test_greedy_generation(goal: list[int]):
    made, text = generation_models.model(), list(PROMPT)
    for _ in range(5):
        text.append(int(paper.heads(made, text, goal)[0][:-1].argmax()))  # not the end token
    given = {"suffix_ids": torch.tensor([goal])} if goal else {}
    how = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    assert made.generate(torch.tensor([PROMPT]), **given, **how)[0].tolist() == text
