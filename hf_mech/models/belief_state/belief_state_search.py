"""Algorithm 1: continuations from a priority queue of relative suboptimality, scored as wholes (Section 5).

In the order of reading: `search` (the algorithm), `priority_queue` (lines 1 to 11), `Rollouts` (lines 5 to 10, many at
once), `score_candidates` (Eq. 7 and 8).
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.generation import EosTokenCriteria, GenerationMixin, LogitsProcessorList, MaxLengthCriteria
from transformers.utils import ModelOutput

from .configuration_belief_state import BeliefStateError


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
    5.3). `generate(..., num_rollouts=n)` calls it; see there for the arguments. The horizon is `max_new_tokens`, the
    paper's k - 1.

    Raises:
        BeliefStateError: fewer than one rollout, no room for new tokens, stopping criteria of the caller's own.
    """
    horizon = generation_config.max_length - input_ids.shape[1]
    sizes = {"num_rollouts": num_rollouts, "rollout_batch_size": rollout_batch_size, "max_new_tokens": horizon}
    for name, value in sizes.items():
        if not isinstance(value, int) or value < 1:
            raise BeliefStateError(f"{name} must be a whole number of at least 1, got {value!r}.")
    own = [one for one in stopping_criteria if not isinstance(one, MaxLengthCriteria | EosTokenCriteria)]
    if own:
        names = [type(one).__name__ for one in own]
        raise BeliefStateError(f"A search ends at max_new_tokens or the end token; leave out {names}.")
    stop = model.config.least_gap == 1 if stop_at_end is None else stop_at_end
    end = model.config.end_token if stop else None
    pad = model.config.end_token if generation_config.pad_token_id is None else int(generation_config.pad_token_id)

    found = []  # of each prefix: tokens [candidates, horizon], lengths, scores, priorities, log-probabilities
    for prefix, goal, state in _rows(model, input_ids, model_kwargs):
        prompt = Prompt.read(model, prefix, goal, state, horizon)
        score = Score.of(model, goal, score_with, score_tokens, horizon)
        priorities = None
        if proposals == "queue":
            rollouts = Rollouts(model, prompt, horizon, logits_processor, end, num_rollouts - 1)
            done = priority_queue(rollouts, num_rollouts, rollout_batch_size)
            texts = [tokens for _, tokens in done]
            priorities = torch.tensor([priority for priority, _ in done], dtype=torch.float64, device=prefix.device)
        else:
            texts = _decoded(model, prompt, num_rollouts, horizon, logits_processor, end, sample=proposals == "sample")
        lengths = torch.tensor([len(text) for text in texts], device=prefix.device)
        tokens = torch.tensor([text + [pad] * (horizon - len(text)) for text in texts], device=prefix.device)
        scores, log_probs = score_candidates(model, prompt, tokens, lengths, score, rollout_batch_size)
        found.append((tokens, lengths, scores, priorities, log_probs))

    best = [scores.argmax() for _, _, scores, _, _ in found]  # line 12
    longest = max(int(lengths[at]) for (_, lengths, *_), at in zip(found, best, strict=True))
    new = torch.stack([tokens[at][:longest] for (tokens, *_), at in zip(found, best, strict=True)])
    sequences = torch.cat([input_ids, new], 1)
    if not generation_config.return_dict_in_generate:
        return sequences
    fields = list(zip(*found, strict=True))
    return SearchOutput(
        sequences=sequences,
        candidates=_padded(fields[0], pad),
        candidate_lengths=_padded(fields[1], -1),
        scores=_padded(fields[2], -torch.inf),
        priorities=_padded(fields[3], -torch.inf) if proposals == "queue" else None,
        log_probs=_padded(fields[4], 0),
    )


def _rows(model: Any, input_ids: Tensor, kwargs: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
    """Every row's prefix [t], goal [goal length] and B of the goal [1, 1, hidden], without padding."""
    mask, goals, goal_mask = (kwargs.get(key) for key in ("attention_mask", "suffix_ids", "suffix_attention_mask"))
    states = kwargs.get("suffix_state")
    if goals is None and states is not None and not torch.equal(states[:1], model.suffix_state()):
        raise BeliefStateError("A search scores the goal's tokens: give suffix_ids in place of suffix_state.")
    for row, ids in enumerate(input_ids):
        prefix = ids if mask is None else ids[mask[row].bool()]
        goal = prefix[:0] if goals is None else goals[row] if goal_mask is None else goals[row][goal_mask[row].bool()]
        if len(goal) and goal[-1] == model.config.end_token:
            goal = goal[:-1]
        yield prefix, goal, None if states is None else states[row : row + 1]


def _decoded(
    model: Any,
    prompt: Prompt,
    count: int,
    horizon: int,
    logits_processor: LogitsProcessorList,
    end: int | None,
    sample: bool,
) -> list[list[int]]:
    """Continuations by transformers' own decoding: `count` samples, or as many beams (Algorithm 2)."""
    prefix = prompt.prefix[None]
    said = GenerationMixin.generate(
        model,
        prefix,
        attention_mask=torch.ones_like(prefix),
        suffix_state=prompt.suffix_state,
        max_new_tokens=horizon,
        num_return_sequences=count,
        do_sample=sample,
        num_beams=1 if sample else count,
        logits_processor=logits_processor,
        eos_token_id=end,
        pad_token_id=model.config.end_token,
    )[:, prefix.shape[1] :].tolist()
    return [line[: line.index(end)] if end in line else line for line in said]


def _padded(parts: Any, value: float) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True, padding_value=value)


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


@dataclass
class Prompt:
    """A prefix and its goal, read once for all rollouts.

    Attributes:
        prefix: x_1:t, [t].
        goal: x_t+k:T without the end token, [goal length]; of length 0 for the empty suffix.
        states: F after every token of the prefix, [1, t, hidden].
        cache: the forward encoder's keys and values of the prefix.
        suffix_state: B of the goal, [1, 1, hidden]; None without a backward encoder.
    """

    prefix: Tensor
    goal: Tensor
    states: Tensor
    cache: Any
    suffix_state: Tensor | None

    @classmethod
    def read(cls, model: Any, prefix: Tensor, goal: Tensor, suffix_state: Tensor | None, horizon: int) -> Prompt:
        """Reads the prefix.

        Raises:
            BeliefStateError: the whole text is longer than the forward encoder reads.
        """
        limit = model.model.learned_positions[0]
        if limit is not None and len(prefix) + horizon + len(goal) > limit:
            raise BeliefStateError(
                f"The forward encoder reads {limit} tokens, got {len(prefix)} of the prefix, {horizon} new ones and "
                f"{len(goal)} of the goal; shorten one of them."
            )
        read = model.model(prefix[None], use_cache=True)
        return cls(prefix, goal, read.last_hidden_state, read.past_key_values, suffix_state)

    def caches(self, copies: int) -> Any:
        """The prefix's keys and values for so many continuations."""
        cache = copy.deepcopy(self.cache)
        cache.batch_repeat_interleave(copies)
        return cache


@dataclass
class Rollout:
    """A beginning with its greedy continuation (lines 5 to 10).

    Attributes:
        tokens: the new tokens, the beginning included.
        alternatives: what goes to the queue: the loss log T_max - log T(x) >= 0, the position and the token x, only as
            many as can ever leave it.
    """

    tokens: list[int]
    alternatives: list[tuple[float, int, int]]


class Rollouts:
    """Continues beginnings greedily to the horizon, in one batch with a cache.

    The prefix is read once for all batches. Column c of a batch holds every text's token c, given or chosen, so
    nothing is padded, and the columns that all beginnings have are read at once.

    Args:
        horizon: the new tokens of a text, the paper's k - 1.
        processors: of `generate()`, applied to the logits.
        end: the end token if a text ends before it, else None.
        keep: the number of alternatives of a rollout that can leave the queue at all.
    """

    def __init__(
        self,
        model: Any,
        prompt: Prompt,
        horizon: int,
        processors: LogitsProcessorList,
        end: int | None,
        keep: int,
    ) -> None:
        self.model, self.prompt, self.horizon = model, prompt, horizon
        self.processors, self.end, self.keep = processors, end, keep
        self.first = head_logits(model, prompt.states[:, -1:], prompt.suffix_state, "next")[:, -1]

    @torch.no_grad()
    def __call__(self, beginnings: list[list[int]]) -> list[Rollout]:
        """The rollouts of beginnings of at most `horizon` tokens."""
        going = [begun for begun in beginnings if len(begun) < self.horizon]
        continued = iter(self._continue(going) if going else [])
        return [next(continued) if len(begun) < self.horizon else Rollout(begun, []) for begun in beginnings]

    def _continue(self, beginnings: list[list[int]]) -> list[Rollout]:
        device, begin, batch = self.prompt.prefix.device, len(self.prompt.prefix), len(beginnings)
        given = torch.tensor([len(begun) for begun in beginnings], device=device)
        text = self.prompt.prefix.expand(batch, -1)
        text = torch.nn.functional.pad(text, (0, self.horizon))
        for row, begun in enumerate(beginnings):
            text[row, begin : begin + len(begun)] = torch.tensor(begun, dtype=text.dtype, device=device)
        cache = self.prompt.caches(batch)
        column = min(map(len, beginnings))
        logits = self.first.expand(batch, -1)
        if column:
            logits = self._read(text[:, begin : begin + column], cache)
        lengths = torch.full_like(given, self.horizon)
        found: list[tuple[Tensor, ...]] = []
        while True:
            own = (column >= given) & (column < lengths)
            best, losses, tokens = self._choose(text[:, : begin + column], logits)
            losses = losses.where(own[:, None], torch.inf)
            found.append((losses, torch.full_like(tokens, column), tokens))
            text[:, begin + column] = torch.where(own, best, text[:, begin + column])
            if self.end is not None:
                lengths = torch.where(own & (best == self.end), column, lengths)
            column += 1
            if column == self.horizon or (self.end is not None and bool((lengths < column).all())):
                break
            logits = self._read(text[:, begin + column - 1 : begin + column], cache)
        return self._collect(text[:, begin:], lengths, found)

    def _read(self, tokens: Tensor, cache: Any) -> Tensor:
        """The logits behind the last of the tokens, [batch, vocabulary]."""
        read = self.model.model(tokens, past_key_values=cache, use_cache=True).last_hidden_state[:, -1:]
        return head_logits(self.model, read, self.prompt.suffix_state, "next")[:, -1]

    def _choose(self, text: Tensor, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x_max [batch], and the losses and tokens of the best alternatives, [batch, alternatives] (lines 6 to 9)."""
        logits = self.processors(text, logits.float() if logits.element_size() < 4 else logits.clone())
        highest, best = logits.max(-1)
        losses = highest[:, None] - logits  # the same as with probabilities: T_max / T = exp(loss)
        losses.scatter_(1, best[:, None], torch.inf)
        if self.end is not None:
            losses[:, self.end] = torch.inf
        nearest = losses.topk(min(self.keep, losses.shape[1]), largest=False)
        return best, nearest.values, nearest.indices

    def _collect(self, texts: Tensor, lengths: Tensor, found: list[tuple[Tensor, ...]]) -> list[Rollout]:
        losses, columns, tokens = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
        nearest = losses.topk(min(self.keep, losses.shape[1]), largest=False)
        parts = [part.gather(1, nearest.indices).tolist() for part in (losses.double(), columns, tokens)]
        rows = zip(texts.tolist(), lengths.tolist(), *parts, strict=True)
        return [
            Rollout(text[:length], [one for one in zip(*three, strict=True) if one[0] < torch.inf])
            for text, length, *three in rows
        ]


@dataclass
class Score:
    """How continuations are scored.

    Attributes:
        head: `"next"` for T_n, `"previous"` for T_p.
        tokens: the number of the text's last tokens whose probabilities are multiplied.
    """

    head: str
    tokens: int

    @classmethod
    def of(cls, model: Any, goal: Tensor, head: str | None, tokens: int | None, horizon: int) -> Score:
        """Eq. 7 for a goal, Eq. 8 for the empty suffix, as far as nothing else is asked for.

        Raises:
            BeliefStateError: an unknown head, one that the model lacks, or fewer than one token.
        """
        head = ("next" if len(goal) else "previous") if head is None else head
        if head not in ("next", "previous"):
            raise BeliefStateError(f"score_with must be 'next' or 'previous', got {head!r}.")
        if head == "previous" and model.text_head.prev is None:
            raise BeliefStateError("The model has no T_p (predict_previous=False); score with score_with='next'.")
        if len(goal) and tokens is not None:
            raise BeliefStateError("With a goal, the goal's tokens are scored; leave score_tokens out.")
        tokens = len(goal) or (horizon if tokens is None else tokens)
        if tokens < 1:
            raise BeliefStateError(f"score_tokens must be at least 1, got {tokens}.")
        return cls(head, tokens)


@torch.no_grad()
def score_candidates(
    model: Any, prompt: Prompt, middles: Tensor, lengths: Tensor, score: Score, batch_size: int
) -> tuple[Tensor, Tensor]:
    r"""Eq. 7 or 8 of every candidate, and the log-probability of each of its new tokens.

    Eq. 7 is the product of T_n(x_i | F(x_1:i-1), B(x_i+1:T)) over the goal's tokens x_i; Eq. 8 is that of T_p over the
    text's last tokens. Both heads are given a prefix and a suffix with just x_i between them.

    Args:
        middles: new tokens, padded on the right, [candidates, horizon].
        lengths: how many they are, [candidates].
        batch_size: candidates at once.

    Returns:
        The logarithm of the product, [candidates], over fewer tokens only where the text has fewer behind its first
        one. \log T_n(x_i | F(x_1:i-1), B(goal)) of the new tokens, 0 at padding, [candidates, horizon].
    """
    pairs = max(score.tokens, middles.shape[1])
    size = max(1, min(batch_size, model.config.block_size // pairs))
    parts = [
        _score(model, prompt, rows, counts, score)
        for rows, counts in zip(middles.split(size), lengths.split(size), strict=True)
    ]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def _score(model: Any, prompt: Prompt, middles: Tensor, lengths: Tensor, score: Score) -> tuple[Tensor, Tensor]:
    batch, horizon = middles.shape
    device, begin, after = middles.device, len(prompt.prefix), len(prompt.goal)
    # Every text is the prefix, the new tokens and the goal, one directly behind the other; padding is at its end.
    columns = torch.arange(horizon + after, device=device).expand(batch, -1)
    both = torch.cat([middles, prompt.goal.expand(batch, -1)], 1)
    place = torch.where(columns < lengths[:, None], columns, columns - lengths[:, None] + horizon)
    tail = both.gather(1, place.clamp(max=horizon + after - 1))
    text = torch.cat([prompt.prefix.expand(batch, -1), tail], 1)
    read = model.model(tail, past_key_values=prompt.caches(batch), use_cache=True).last_hidden_state
    states = torch.cat([prompt.states.expand(batch, -1, -1), read], 1)

    at = begin + lengths[:, None] + after - 1 - torch.arange(score.tokens, device=device)  # x_T, x_T-1, ...
    scored = at >= 1  # F reads one token at least
    at = at.clamp(min=1)
    end = torch.full((batch, 1), model.config.end_token, device=device)
    behind = torch.cat([end, text.gather(1, at[:, :-1])], 1)  # the suffixes of x_T, x_T-1, ..., from their end
    if after and score.tokens == after:
        behind = behind[:1]  # the goal's suffixes are the same in every row
    suffixes = read_backwards(model, behind)
    prefixes = states.gather(1, (at - 1)[..., None].expand(-1, -1, states.shape[-1]))
    logits = head_logits(model, prefixes, suffixes, score.head)
    total = (_log_probability(logits, text.gather(1, at)) * scored).sum(1)

    before = states[:, begin - 1 : begin - 1 + horizon]
    said = _log_probability(head_logits(model, before, prompt.suffix_state, "next"), middles)
    return total, said * (torch.arange(horizon, device=device) < lengths[:, None])


def read_backwards(model: Any, tokens: Tensor, cache: Any = None) -> Any:
    """B after each of the tokens of a text read from its end, [batch, length, hidden]; None without such an encoder."""
    encoder = model.model.backward_encoder
    if encoder is None:
        return None
    embeds = model.model.embed_tokens(tokens)
    return encoder(inputs_embeds=embeds, past_key_values=cache, use_cache=cache is not None).last_hidden_state


def head_logits(model: Any, prefixes: Tensor, suffixes: Tensor | None, head: str) -> Tensor:
    """T_n's or T_p's logits, [..., vocabulary]."""
    following, previous = model.text_head(prefixes, suffixes, previous=head == "previous")
    return following if head == "next" else previous


def _log_probability(logits: Tensor, tokens: Tensor) -> Tensor:
    logits = logits.float() if logits.element_size() < 4 else logits
    return logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
