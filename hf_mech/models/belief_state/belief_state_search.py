"""Algorithm 1: continuations from a priority queue of relative suboptimality, scored as wholes (Section 5)."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.generation import EosTokenCriteria, GenerationMixin, LogitsProcessorList, MaxLengthCriteria
from transformers.utils import ModelOutput

from .belief_state_errors import SearchError
from .belief_state_search_rollouts import Rollouts
from .belief_state_search_scores import Prompt, Score, score_candidates


@dataclass
class SearchOutput(ModelOutput):
    """The result of a search.

    Args:
        sequences (`Tensor` of shape `[batch, length + new]`): each prefix with its best continuation, padded.
        candidates (`Tensor` of shape `[batch, candidates, horizon]`): all continuations, padded on the right, in the
            order of the rollouts. There are fewer than `num_rollouts` if no more exist.
        candidate_lengths (`Tensor` of shape `[batch, candidates]`): their numbers of tokens; -1 where a row has fewer
            candidates than another.
        scores (`Tensor` of shape `[batch, candidates]`): the logarithm of Eq. 7 or 8; -inf where there is no candidate.
        priorities (`Tensor` of shape `[batch, candidates]`): the logarithm of the relative suboptimality r with which
            the candidate's rollout left the queue, 0 for the greedy one; None for beams and samples.
        log_probs (`Tensor` of shape `[batch, candidates, horizon]`): of each new token by T_n, given the goal; 0 at
            padding.
    """

    sequences: Tensor | None = None
    candidates: Tensor | None = None
    candidate_lengths: Tensor | None = None
    scores: Tensor | None = None
    priorities: Tensor | None = None
    log_probs: Tensor | None = None


@dataclass
class Found:
    """The candidates of one prefix: tokens [candidates, horizon], lengths, scores and priorities [candidates]."""

    tokens: Tensor
    lengths: Tensor
    priorities: Tensor | None
    scores: Tensor
    log_probs: Tensor


def priority_queue(
    continue_: Callable[[list[list[int]]], list[Any]], num_rollouts: int, batch_size: int
) -> list[tuple[float, list[int]]]:
    """Lines 1 to 11 of Algorithm 1: the continuations in the order in which the listing finds them.

    The listing computes a rollout when its beginning leaves the queue. Here the beginnings behind it in the queue are
    continued in the same batch. Their results are used only when, and if, the listing comes to them, so the batch size
    does not change the candidates. A beginning behind as many others as there are rollouts left never leaves the queue:
    r falls along a text, so later entries only push it back. Beginnings of equal r leave in the order of their rollout,
    position and token.

    Args:
        continue_: the rollouts of a batch of beginnings ([`Rollouts`]).

    Returns:
        log r and the tokens of each continuation.
    """
    queue: list[tuple[float, int, int, int]] = [(0.0, -1, 0, -1)]  # -log r, rollout, position, token
    done: list[tuple[float, list[int]]] = []
    ready: dict[tuple[float, int, int, int], Any] = {}

    def beginning(entry: tuple[float, int, int, int]) -> list[int]:
        _, rollout, position, token = entry
        return [] if rollout < 0 else [*done[rollout][1][:position], token]

    while queue and len(done) < num_rollouts:
        entry = heapq.heappop(queue)
        if entry not in ready:
            ahead = heapq.nsmallest(num_rollouts - len(done) - 1, queue)
            batch = [entry, *(other for other in ahead if other not in ready)][:batch_size]
            ready.update(zip(batch, continue_([beginning(one) for one in batch]), strict=True))
        rollout = ready.pop(entry)
        for loss, position, token in rollout.alternatives:
            heapq.heappush(queue, (entry[0] + loss, len(done), position, token))
        done.append((-entry[0], rollout.tokens))
    return done


def search(
    model: Any,
    input_ids: Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: Any,
    generation_config: Any,
    num_rollouts: int = 120,
    proposals: str = "queue",
    score_with: str | None = None,
    score_tokens: int | None = None,
    stop_at_end: bool | None = None,
    rollout_batch_size: int = 8,
    **model_kwargs: Any,
) -> Tensor | SearchOutput:
    """Algorithm 1 as a decoding method of transformers: `generate(..., custom_generate=search)`.

    With other `proposals` than "queue", the candidates are those of beam search (Algorithm 2) or of sampling (Section
    5.3). `generate(..., num_rollouts=n)` calls it; see there for the arguments.

    Raises:
        SearchError: fewer than one rollout, no room for new tokens, stopping criteria of the caller's own.
    """
    setting = Setting.of(model, input_ids, generation_config, stopping_criteria, num_rollouts, rollout_batch_size)
    stop = model.config.least_gap == 1 if stop_at_end is None else stop_at_end
    end = model.config.end_token if stop else None
    found = []
    for prefix, goal, state in rows_of(model, input_ids, model_kwargs):
        prompt = Prompt.read(model, prefix, goal, state, setting.horizon)
        score = Score.of(model, goal, score_with, score_tokens, setting.horizon)
        priorities = None
        if proposals == "queue":
            rollouts = Rollouts(model, prompt, setting.horizon, logits_processor, end, num_rollouts - 1)
            done = priority_queue(rollouts, num_rollouts, rollout_batch_size)
            texts = [tokens for _, tokens in done]
            priorities = torch.tensor([priority for priority, _ in done], dtype=torch.float64, device=prefix.device)
        else:
            texts = decoded(model, prompt, setting, logits_processor, end, sample=proposals == "sample")
        found.append(setting.scored(model, prompt, texts, priorities, score))
    return setting.output(input_ids, found)


def decoded(
    model: Any, prompt: Prompt, setting: Setting, logits_processor: LogitsProcessorList, end: int | None, sample: bool
) -> list[list[int]]:
    """Continuations by transformers' own decoding: samples, or as many beams (Algorithm 2)."""
    prefix = prompt.prefix[None]
    said = GenerationMixin.generate(
        model,
        prefix,
        attention_mask=torch.ones_like(prefix),
        suffix_state=prompt.suffix_state,
        max_new_tokens=setting.horizon,
        num_return_sequences=setting.rollouts,
        do_sample=sample,
        num_beams=1 if sample else setting.rollouts,
        logits_processor=logits_processor,
        eos_token_id=end,
        pad_token_id=model.config.end_token,
    )[:, prefix.shape[1] :].tolist()
    return [line[: line.index(end)] if end in line else line for line in said]


def rows_of(model: Any, input_ids: Tensor, kwargs: dict[str, Any]) -> Any:
    """Every row's prefix [t], goal [goal length] and B of the goal [1, 1, hidden], without padding."""
    mask, goals, goal_mask = (kwargs.get(key) for key in ("attention_mask", "suffix_ids", "suffix_attention_mask"))
    states = kwargs.get("suffix_state")
    if goals is None and states is not None and not torch.equal(states[:1], model.suffix_state()):
        raise SearchError("A search scores the goal's tokens: give suffix_ids in place of suffix_state.")
    for row, ids in enumerate(input_ids):
        prefix = ids if mask is None else ids[mask[row].bool()]
        goal = prefix[:0] if goals is None else goals[row] if goal_mask is None else goals[row][goal_mask[row].bool()]
        if len(goal) and goal[-1] == model.config.end_token:
            goal = goal[:-1]
        yield prefix, goal, None if states is None else states[row : row + 1]


@dataclass
class Setting:
    """The sizes of a search that are the same in all rows."""

    horizon: int
    rollouts: int
    batch_size: int
    pad: int
    as_dict: bool

    @classmethod
    def of(cls, model: Any, input_ids: Tensor, config: Any, criteria: Any, rollouts: int, batch_size: int) -> Setting:
        """Checked. The horizon is `max_new_tokens`, the paper's k - 1."""
        horizon = config.max_length - input_ids.shape[1]
        for name, value in {
            "num_rollouts": rollouts,
            "rollout_batch_size": batch_size,
            "max_new_tokens": horizon,
        }.items():
            if not isinstance(value, int) or value < 1:
                raise SearchError(f"{name} must be a whole number of at least 1, got {value!r}.")
        own = [type(one).__name__ for one in criteria if not isinstance(one, MaxLengthCriteria | EosTokenCriteria)]
        if own:
            raise SearchError(f"A search ends at max_new_tokens or the end token; leave out {own}.")
        pad = model.config.end_token if config.pad_token_id is None else int(config.pad_token_id)
        return cls(horizon, rollouts, batch_size, pad, bool(config.return_dict_in_generate))

    def scored(
        self, model: Any, prompt: Prompt, texts: list[list[int]], priorities: Tensor | None, score: Score
    ) -> Found:
        """Line 12 of Algorithm 1, without its argmax."""
        device = prompt.prefix.device
        lengths = torch.tensor([len(text) for text in texts], device=device)
        tokens = torch.tensor([text + [self.pad] * (self.horizon - len(text)) for text in texts], device=device)
        scores, log_probs = score_candidates(model, prompt, tokens, lengths, score, self.batch_size)
        return Found(tokens, lengths, priorities, scores, log_probs)

    def output(self, input_ids: Tensor, found: list[Found]) -> Tensor | SearchOutput:
        """The best candidate of every row behind its prefix, and all of them if asked for."""
        best = [row.scores.argmax() for row in found]
        longest = max(int(row.lengths[at]) for row, at in zip(found, best, strict=True))
        new = torch.stack([row.tokens[at][:longest] for row, at in zip(found, best, strict=True)])
        sequences = torch.cat([input_ids, new], 1)
        if not self.as_dict:
            return sequences

        def padded(parts: list[Tensor], value: float) -> Tensor:
            return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=value)

        priorities = [row.priorities for row in found if row.priorities is not None]
        return SearchOutput(
            sequences=sequences,
            candidates=padded([row.tokens for row in found], self.pad),
            candidate_lengths=padded([row.lengths for row in found], -1),
            scores=padded([row.scores for row in found], -torch.inf),
            priorities=padded(priorities, -torch.inf) if priorities else None,
            log_probs=padded([row.log_probs for row in found], 0),
        )
