"""Each layout against its row written out, and against a stock model's loss and generation."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.data.random_numbers import Dice
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.star_graphs import StarGraph, inference_prompts, lay_out, read_paths
from hf_mech.lookahead.star_graphs.layouts import width_of

GRAPH = StarGraph(2, 5)
LAYOUTS = ("plain", "augmented", "fim", "teacherless")
PROMPT, LENGTH = GRAPH.prompt_length, GRAPH.length


def rows(count: int = 400) -> np.ndarray:
    return GRAPH.draw(count, np.random.default_rng(0))


def split_up(row) -> tuple[list[int], int, list[int]]:
    """The part before the goal, the goal, and the path."""
    row = row.tolist()
    return row[: PROMPT - 2], row[PROMPT - 2], row[PROMPT:-1]


def test_plain():
    drawn = rows()
    laid_out = lay_out(GRAPH, "plain", drawn, Dice(0))
    assert (laid_out["input_ids"] == drawn).all()
    assert (laid_out["labels"][:, :PROMPT] == -100).all()
    assert (laid_out["labels"][:, PROMPT:] == drawn[:, PROMPT:]).all()


def test_augmented():
    drawn = rows(4000)
    goals: Counter[int] = Counter()
    laid_out = lay_out(GRAPH, "augmented", drawn, np.random.default_rng(1))
    for before, after, labels in zip(drawn, laid_out["input_ids"], laid_out["labels"].tolist(), strict=True):
        head, goal, path = split_up(before)
        assert split_up(after)[::2] == (head, path)
        goals[path.index(split_up(after)[1])] += 1
        assert path[-1] == goal
        assert labels == [-100] * PROMPT + [*path, 54]
    assert set(goals) == {1, 2, 3, 4}  # n2, n3, n4 as subgoals, n5 as the goal
    assert abs(goals[4] - 2000) < 5 * 1000**0.5
    assert all(abs(goals[place] - 2000 / 3) < 5 * (2000 / 3) ** 0.5 for place in (1, 2, 3))


def test_fim():
    drawn = rows(4000)
    sizes: Counter[int] = Counter()
    laid_out = lay_out(GRAPH, "fim", drawn, np.random.default_rng(1))
    for before, *columns in zip(drawn, *laid_out.values(), strict=True):
        input_ids, labels, mask = (column.tolist() for column in columns)
        head, goal, path = split_up(before)
        size = input_ids.index(51) - PROMPT
        sizes[size] += 1
        answer = [*path, 54]
        question = [*head, goal, 53, *path[LENGTH - size :], 51]
        padding = width_of(GRAPH, "fim") - len(question) - len(answer)
        assert input_ids == question + answer + [55] * padding
        assert labels == [-100] * len(question) + answer + [-100] * padding
        assert mask == [1] * (len(question) + len(answer)) + [0] * padding
    assert set(sizes) == {1, 2, 3, 4}
    assert all(abs(n - 1000) < 5 * 1000**0.5 for n in sizes.values())


def test_teacherless():
    drawn = rows()
    laid_out = lay_out(GRAPH, "teacherless", drawn, Dice(0))
    assert (laid_out["input_ids"][:, :PROMPT] == drawn[:, :PROMPT]).all()
    assert (laid_out["input_ids"][:, PROMPT:] == 53).all()
    assert (laid_out["labels"] == lay_out(GRAPH, "plain", drawn)["labels"]).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_for_testing_begins_with_the_inference_prompt(layout):
    drawn = rows()
    laid_out, prompts = lay_out(GRAPH, layout, drawn), inference_prompts(GRAPH, layout, drawn)
    assert laid_out["input_ids"].shape == (400, width_of(GRAPH, layout))
    assert (laid_out["input_ids"][:, : prompts.shape[1]] == prompts).all()
    assert (inference_prompts(GRAPH, layout, drawn[:, :PROMPT]) == prompts).all()
    if layout == "teacherless":
        assert prompts.shape[1] == PROMPT + LENGTH
    else:
        assert (laid_out["labels"][:, : prompts.shape[1]] == -100).all()
        assert (laid_out["labels"][:, prompts.shape[1] :][:, :LENGTH] == GRAPH.paths_of(drawn)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_labels_and_answers_stand_where_a_stock_model_looks_for_them(layout):
    """Train a small model on four graphs until it knows them by heart, then ask it as at inference."""
    torch.manual_seed(0)
    drawn = rows(4)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=56, n_positions=64, n_embd=32, n_layer=2, n_head=2, bos_token_id=54, eos_token_id=54,
            pad_token_id=55, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        )
    )  # fmt: skip
    batch = {name: torch.from_numpy(values) for name, values in lay_out(GRAPH, layout, drawn).items()}
    output = model(**batch)
    path = torch.from_numpy(drawn[:, PROMPT:])
    first = {"fim": PROMPT + 1}.get(layout, PROMPT - 1)  # the position of the equals sign
    logits = output.logits[:, first : first + LENGTH + 1]
    torch.testing.assert_close(output.loss, cross_entropy(logits.flatten(0, 1), path.flatten()))

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    prompts = torch.from_numpy(inference_prompts(GRAPH, layout, drawn))
    with torch.no_grad():
        if layout == "teacherless":
            tokens = model(prompts).logits.argmax(-1)
        else:
            mask = torch.ones_like(prompts)
            tokens = model.generate(prompts, attention_mask=mask, max_new_tokens=LENGTH, do_sample=False)
    assert read_paths(GRAPH, layout, tokens).tolist() == GRAPH.paths_of(drawn).tolist()


def test_no_path_is_seen_without_a_teacher():
    drawn = rows(2)
    other = drawn.copy()
    other[:, PROMPT:-1] = 0
    one, two = (lay_out(GRAPH, "teacherless", these)["input_ids"] for these in (drawn, other))
    assert (one == two).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_edges_stay_and_the_rows_given_are_left_alone(layout):
    drawn = rows(50)
    kept = drawn.copy()
    laid_out = lay_out(GRAPH, layout, drawn, np.random.default_rng(0))
    assert (drawn == kept).all()
    assert (GRAPH.edges_of(laid_out["input_ids"]) == GRAPH.edges_of(drawn)).all()
    for path in GRAPH.paths_of(drawn).tolist():
        assert len(set(pairwise(path))) == LENGTH - 1


def test_paths_of_two_nodes():
    short = StarGraph(3, 2, 9)
    drawn = short.draw(5, np.random.default_rng(0))
    with pytest.raises(LookaheadError, match="length of 3 or more, got 2"):
        lay_out(short, "augmented", drawn)
    laid_out = lay_out(short, "fim", drawn, np.random.default_rng(0))["input_ids"]
    assert (laid_out[:, short.prompt_length - 1] == 12).all()
    assert (read_paths(short, "fim", laid_out) == short.paths_of(drawn)).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: lay_out(GRAPH, "backwards", rows(1)), "one of plain, augmented, fim, teacherless, got 'backwards'"),
        (lambda: width_of(GRAPH, "alm"), "got 'alm'"),
        (lambda: lay_out(GRAPH, "plain", rows(2)[:, :-1]), r"\[count, 33\], got \[2, 32\]"),
        (lambda: lay_out(GRAPH, "plain", rows(1)[0]), r"got \[33\]"),
        (lambda: inference_prompts(GRAPH, "fim", rows(2)[:, :26]), r"\[count, 27 or more\], got \[2, 26\]"),
        (lambda: read_paths(GRAPH, "fim", rows(2)[:, :29]), r"\[count, 30 or more\]"),
    ],
)
def test_what_does_not_fit_is_refused(call, says):
    with pytest.raises(LookaheadError, match=says):
        call()
