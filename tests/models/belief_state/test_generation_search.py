"""The batched search is Algorithm 1 one rollout at a time, and its scores are Eq. 7 and 8."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import LogitsProcessorList, StoppingCriteriaList
from transformers.generation import MaxTimeCriteria, NoRepeatNGramLogitsProcessor

from hf_mech.models.belief_state.belief_state_search import Rollout, SearchOutput, priority_queue, search
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateError

from . import paper
from .generation_models import END, VOCABULARY, model, tokens
from .test_generation import PREFIXES, SUFFIXES, padded

HORIZON = 5


def ending_model(kind: str = "gpt2", **options: Any) -> Any:
    """Says the end token now and then."""
    made = model(kind, seed=1, **options)
    with torch.no_grad():
        made.text_head.next.bias[END] += 6.5 if kind == "gpt2" else 1.8
    return made


def run(made: Any, prefix: torch.Tensor, goal: torch.Tensor | None, **options: Any) -> SearchOutput:
    given = {} if goal is None else {"suffix_ids": goal}
    how = {"max_new_tokens": HORIZON, "pad_token_id": END, "return_dict_in_generate": True}
    return made.generate(prefix, **{"attention_mask": torch.ones_like(prefix), **how, **given, **options})


def texts(output: SearchOutput, row: int = 0) -> list[list[int]]:
    assert output.candidates is not None
    assert output.candidate_lengths is not None
    counts = output.candidate_lengths[row].tolist()
    return [text[:count] for text, count in zip(output.candidates[row].tolist(), counts, strict=True) if count >= 0]


@pytest.mark.parametrize(
    ("kind", "goal", "stop"),
    [
        ("gpt2", False, True),
        ("gpt2", True, False),
        ("llama", True, True),
        pytest.param("gpt2", False, False, marks=pytest.mark.slow),
        pytest.param("gpt2", True, True, marks=pytest.mark.slow),
        pytest.param("qwen3", False, True, marks=pytest.mark.slow),
        pytest.param("qwen3", True, False, marks=pytest.mark.slow),
    ],
)
@torch.no_grad()
def test_batched_search_is_the_listing(kind: str, goal: bool, stop: bool):
    """The same candidates in the same order with the same priorities and scores, for every batch size."""
    made, prefix = ending_model(kind), tokens(1, 6, 1)
    suffix = tokens(1, 4, 2) if goal else None
    listed = [] if suffix is None else suffix[0].tolist()
    prompt = prefix[0].tolist()
    wanted = paper.algorithm1(made, prompt, listed, HORIZON, 15, END if stop else None)
    if stop:
        assert len({len(text) for text, _ in wanted}) > 2
    how = (4, "next") if goal else (HORIZON, "previous")
    scores = torch.tensor([paper.score(made, [*prompt, *text, *listed], *how) for text, _ in wanted])
    for batch_size in (1, 4, 100):
        found = run(made, prefix, suffix, num_rollouts=15, stop_at_end=stop, rollout_batch_size=batch_size)
        assert texts(found) == [text for text, _ in wanted]
        assert_close(found.priorities[0].exp(), torch.tensor([r for _, r in wanted], dtype=torch.float64))
        assert_close(found.scores[0].float(), scores, rtol=1e-5, atol=1e-5)
        best = int(scores.argmax())
        assert found.sequences[0].tolist() == prompt + wanted[best][0]


def test_scores_and_log_probabilities_are_those_of_forward():
    made, prefix, goal = ending_model(), tokens(1, 6, 1), tokens(1, 4, 2)
    found = run(made, prefix, goal, num_rollouts=6, stop_at_end=True)
    for text, said in zip(texts(found), found.log_probs[0], strict=True):
        whole = torch.cat([prefix, torch.tensor([text], dtype=torch.long)], 1)
        logits = made(whole, suffix_ids=goal).logits[0, prefix.shape[1] - 1 : -1].log_softmax(-1)
        assert_close(said[: len(text)], logits.gather(1, whole[0, prefix.shape[1] :, None])[:, 0])
        assert not said[len(text) :].any()


@pytest.mark.parametrize(
    ("head", "count"),
    [
        ("next", 1),
        ("next", 9),
        ("previous", 3),
        ("previous", 40),
        *(pytest.param("next", count, marks=pytest.mark.slow) for count in (3, 40)),
        *(pytest.param("previous", count, marks=pytest.mark.slow) for count in (1, 9)),
    ],
)
def test_either_head_scores_any_number_of_last_tokens(head: str, count: int):
    """With 40, more than the text has: all behind its first token."""
    made, prefix = ending_model(), tokens(1, 6, 1)
    found = run(made, prefix, None, num_rollouts=8, stop_at_end=True, score_with=head, score_tokens=count)
    wanted = [paper.score(made, prefix[0].tolist() + text, count, head) for text in texts(found)]
    assert_close(found.scores[0], torch.tensor(wanted, dtype=torch.float64))
    assert len({len(text) for text in texts(found)}) > 1


@pytest.mark.parametrize("head", [pytest.param("next", marks=pytest.mark.slow), "previous"])
def test_either_head_scores_the_goal(head: str):
    made, prefix, goal = model(), tokens(1, 6, 1), tokens(1, 4, 2)
    found = run(made, prefix, goal, num_rollouts=8, score_with=head)
    wanted = [paper.score(made, (prefix[0].tolist() + text + goal[0].tolist()), 4, head) for text in texts(found)]
    assert_close(found.scores[0], torch.tensor(wanted, dtype=torch.float64))


@pytest.mark.parametrize(
    ("proposals", "stop"),
    [
        ("queue", True),
        ("beam", False),
        pytest.param("queue", False, marks=pytest.mark.slow),
        pytest.param("beam", True, marks=pytest.mark.slow),
    ],
)
def test_padded_batches_are_rows_alone(proposals: str, stop: bool):
    made = ending_model()
    prefixes, mask = padded(PREFIXES, left=True)
    for left in (False, True):
        suffixes, suffix_mask = padded(SUFFIXES, left)
        how = {"num_rollouts": 7, "stop_at_end": stop, "proposals": proposals}
        together = run(made, prefixes, suffixes, attention_mask=mask, suffix_attention_mask=suffix_mask, **how)
        for row, (prefix, goal) in enumerate(zip(PREFIXES, SUFFIXES, strict=True)):
            alone = run(made, torch.tensor([prefix]), torch.tensor([goal]), **how)
            assert texts(together, row) == texts(alone)
            assert_close(together.scores[row], alone.scores[0])
            best = together.sequences[row, prefixes.shape[1] :].tolist()
            one = alone.sequences[0, len(prefix) :].tolist()
            assert best[: len(one)] == one
            assert set(best[len(one) :]) <= {END}


def test_all_texts_are_found_once_and_no_more():
    """Every text has one last token that is not the greedy one, so the rollouts are a list of all texts."""
    made = model()
    found = run(made, tokens(1, 3), None, num_rollouts=1000, max_new_tokens=2)
    assert sorted(texts(found)) == [[a, b] for a in range(VOCABULARY) for b in range(VOCABULARY)]
    assert (found.priorities[0].diff() <= 1e-9).all()


def test_an_end_token_in_the_goal_is_its_end():
    made, prefix, goal = model(), tokens(1, 6, 1), tokens(1, 4, 2)
    ended = torch.cat([goal, torch.tensor([[END]])], 1)
    assert_close(run(made, prefix, goal, num_rollouts=4).scores, run(made, prefix, ended, num_rollouts=4).scores)
    empty = run(made, prefix, torch.tensor([[END]]), num_rollouts=4)
    assert_close(empty.scores, run(made, prefix, None, num_rollouts=4).scores)


@pytest.mark.parametrize("seed", range(20))
def test_rollouts_ahead_change_nothing(seed: int):
    """The queue alone, on a random tree with many equal losses, against the listing's order."""
    generator = torch.Generator().manual_seed(seed)
    cache: dict[tuple[int, ...], Rollout] = {}

    def one(begun: list[int]) -> Rollout:
        key = tuple(begun)
        if key not in cache:
            rest = torch.randint(0, 4, (6 - len(begun),), generator=generator).tolist()
            losses = torch.randint(0, 5, (6 - len(begun), 4), generator=generator).double().tolist()
            text = begun + rest
            cache[key] = Rollout(
                text,
                [(losses[c - len(begun)][x], c, x) for c in range(len(begun), 6) for x in range(4) if x != text[c]],
            )
        return cache[key]

    wanted = priority_queue(lambda batch: [one(begun) for begun in batch], 60, 1)
    for size in (2, 7, 60):
        assert priority_queue(lambda batch: [one(begun) for begun in batch], 60, size) == wanted
    assert len({tuple(text) for _, text in wanted}) == 60


@pytest.mark.parametrize("suffix", [pytest.param(False, marks=pytest.mark.slow), True])
def test_beams_are_algorithm_2(suffix: bool):
    """transformers' beam search, where the end token is like any other, finds the listing's texts."""
    made, prefix = ending_model(), tokens(1, 5, 1)
    goal = tokens(1, 4, 2) if suffix else None
    wanted = paper.algorithm2(made, prefix[0].tolist(), [] if goal is None else goal[0].tolist(), HORIZON, 9)
    found = run(made, prefix, goal, num_rollouts=9, proposals="beam", stop_at_end=False)
    assert texts(found) == [text for text, _ in wanted]
    assert any(END in text for text in texts(found))
    assert_close(found.log_probs[0].sum(1).exp(), torch.tensor([r for _, r in wanted], dtype=torch.float64))
    assert found.priorities is None


def test_samples_are_scored_and_differ_by_seed():
    made, prefix, goal = model(), tokens(1, 5, 1), tokens(1, 4, 2)
    drawn = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        drawn.append(run(made, prefix, goal, num_rollouts=12, proposals="sample", stop_at_end=False))
    assert texts(drawn[0]) == texts(drawn[1]) != texts(drawn[2])
    wanted = [paper.score(made, prefix[0].tolist() + t + goal[0].tolist(), 4, "next") for t in texts(drawn[0])]
    assert_close(drawn[0].scores[0], torch.tensor(wanted, dtype=torch.float64))


def test_processors_and_minimal_lengths_are_honoured():
    made, prefix = ending_model(), tokens(1, 5, 1)
    processors = LogitsProcessorList([NoRepeatNGramLogitsProcessor(1)])
    for text in texts(run(made, prefix, None, num_rollouts=20, logits_processor=processors, max_new_tokens=3)):
        assert len({*prefix[0].tolist(), *text}) == len({*prefix[0].tolist()}) + 3
    shortest = run(made, prefix, None, num_rollouts=20, stop_at_end=True, min_new_tokens=3)
    assert min(map(len, texts(shortest))) >= 3


def test_search_is_a_custom_generation_of_transformers():
    made, prefix = model(), tokens(1, 5, 1)
    how = {"attention_mask": torch.ones_like(prefix), "max_new_tokens": HORIZON, "num_rollouts": 5}
    plain = made.generate(prefix, **how, pad_token_id=END)
    assert torch.equal(plain, run(made, prefix, None, num_rollouts=5).sequences)
    how["custom_generate"] = how.pop("num_rollouts") and search
    assert made.generate(prefix, **how, pad_token_id=END).shape == (1, 5 + HORIZON)


def test_whether_texts_end_is_learned_with_gap_1():
    """Only a model trained on prefixes and suffixes that meet says the end token there."""
    prefix = tokens(1, 6, 1)
    for gap, ends in ((1, True), (2, False)):
        found = run(ending_model(least_gap=gap), prefix, None, num_rollouts=20)
        assert any(len(text) < HORIZON for text in texts(found)) == ends


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"num_rollouts": 0}, "num_rollouts must be a whole number of at least 1, got 0"),
        ({"num_rollouts": 2.5}, "num_rollouts must be a whole number of at least 1, got 2.5"),
        ({"rollout_batch_size": 0}, "rollout_batch_size must be a whole number of at least 1, got 0"),
        ({"score_with": "both"}, "must be 'next' or 'previous', got 'both'"),
        ({"score_tokens": 0}, "score_tokens must be at least 1, got 0"),
        ({"suffix_ids": tokens(1, 3), "score_tokens": 2}, "leave score_tokens out"),
        ({"proposals": "tree"}, "'tree'"),
        ({"num_beams": 3}, "num_beams"),
        ({"num_return_sequences": 3}, "num_return_sequences"),
        ({"use_cache": False}, "use_cache"),
        ({"output_scores": True}, "output_scores"),
        ({"position_ids": tokens(1, 4)}, "position_ids"),
        ({"do_sample": True}, "proposals='sample'"),
        ({"suffix_state": torch.zeros(1, 1, 16)}, "give suffix_ids"),
        ({"stopping_criteria": StoppingCriteriaList([MaxTimeCriteria(1.0)])}, "MaxTimeCriteria"),
    ],
)
def test_refuses_searches_that_cannot_be_done(given: dict[str, Any], text: str):
    with pytest.raises(BeliefStateError, match=text):
        run(model(), tokens(1, 4), None, **{"num_rollouts": 3, **given})


def test_refuses_a_head_that_the_model_lacks():
    with pytest.raises(BeliefStateError, match="predict_previous=False"):
        run(model(predict_previous=False), tokens(1, 4), None, num_rollouts=3)
    assert run(model(predict_previous=False), tokens(1, 4), None, num_rollouts=3, score_with="next").scores.shape == (
        1,
        3,
    )


def test_refuses_texts_longer_than_the_encoder():
    with pytest.raises(BeliefStateError, match="reads 48 tokens, got 20 of the prefix, 5 new ones and 30 of the goal"):
        run(model(), tokens(1, 20), tokens(1, 30), num_rollouts=3)


def test_a_search_without_a_backward_encoder():
    found = run(model(use_backward=False), tokens(1, 4), None, num_rollouts=3, score_with="next")
    assert found.candidates.shape == (1, 3, HORIZON)
