"""`generate()` reads the suffix once a call, and a search can replace plain decoding (Sections 2.2 and 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.generation import GenerationMixin
from transformers.utils import ModelOutput

from .belief_state_inputs import check_suffix, suffixes_of
from .belief_state_search import SearchOutput, read_backwards, search
from .configuration_belief_state import BeliefStateError

#: Ways of decoding that need another model, or layers with a head each, by the argument that asks for them.
REFUSED = {
    "assistant_model": "an assistant would have to read the suffix by a backward encoder of its own",
    "dola_layers": "the text head reads two states, not those of the forward encoder's layers alone",
    "penalty_alpha": "contrastive search expects a head on the forward encoder's states alone",
}
#: Arguments that are read once a call, before the first token.
READ = ("suffix_ids", "suffix_attention_mask")
PROPOSALS = ("queue", "beam", "sample")
#: Arguments that a search would ignore, with the values that ask for nothing.
ALONE = {
    "num_beams": 1,
    "num_return_sequences": 1,
    "use_cache": True,
    **dict.fromkeys(("output_scores", "output_logits", "output_attentions", "output_hidden_states"), False),
    **dict.fromkeys(
        ("streamer", "custom_generate", "past_key_values", "cache_implementation", "position_ids", "inputs_embeds")
    ),
    "prompt_lookup_num_tokens": None,
}


class BeliefStateGeneration(GenerationMixin):
    """Generation with a suffix. It stands before transformers' `GenerationMixin` in a model's bases.

    The suffix's state is computed once a call and kept no longer, so it never belongs to other weights.
    """

    def suffix_state(self, suffix_ids: Tensor | None = None, suffix_attention_mask: Tensor | None = None) -> Any:
        """B of whole suffixes, as `forward` takes it (Eq. 1).

        Args:
            suffix_ids: [batch, suffix length]; None for the empty suffix, the end token alone. The end token is added
                where it is missing.
            suffix_attention_mask: 0 at padding on either side, [batch, suffix length].

        Returns:
            [batch, 1, hidden]; for the empty suffix [1, 1, hidden], and None without a backward encoder.

        Raises:
            BeliefStateError: no token in a row, more tokens than the backward encoder reads, or no backward encoder.
        """
        model: Any = self
        if suffix_ids is None:
            return model.model.empty_suffix(model.device)
        check_suffix(model.config, suffix_ids, suffix_attention_mask, model.model.learned_positions[-1])
        sequences = suffixes_of(suffix_ids, suffix_attention_mask, model.config.end_token)
        return sequences.first_of(model.model.suffix_states(sequences))

    def generate(
        self,
        inputs: Tensor | None = None,
        *args: Any,
        num_rollouts: int | None = None,
        proposals: str = "queue",
        score_with: str | None = None,
        score_tokens: int | None = None,
        stop_at_end: bool | None = None,
        rollout_batch_size: int = 8,
        **kwargs: Any,
    ) -> Tensor | SearchOutput | Any:
        """transformers' `generate()` with two additions: a suffix, and Algorithm 1.

        Without `num_rollouts` every decoding of transformers works as usual, conditioned on `suffix_ids` (or on the
        empty suffix). With it, `num_rollouts` continuations are proposed, each is scored as a whole, and the best one
        is returned (Section 5.1; with the empty suffix Section 5.2).

        Args:
            inputs: prefixes, [batch, length], padded on the left with an `attention_mask`.
            num_rollouts: how many continuations to propose for each prefix; the paper's n is 120.
            proposals: `"queue"` for Algorithm 1, `"beam"` for Algorithm 2 with as many beams ("Belief Beamsearch" in
                Section 5.3), `"sample"` for independent samples.
            score_with: the head that scores, `"next"` or `"previous"`. Defaults to `"next"` with a suffix (Eq. 7) and
                `"previous"` without (Eq. 8); `"next"` without a suffix is "Belief Next Score" in Section 5.3.
            score_tokens: without a suffix, the number of last tokens whose probability is the score. Defaults to
                `max_new_tokens`. With a suffix, its tokens are scored.
            stop_at_end: whether a continuation ends before the end token, and no alternative is the end token. False
                is the listing: all continuations have `max_new_tokens` tokens, and the end token is like any other.
                Defaults to whether the model was trained to say the end token where prefix and suffix meet
                (`least_gap=1`).
            rollout_batch_size: rollouts that are computed at once. It changes the time and the memory alone.
            suffix_ids, suffix_attention_mask: the goals, [batch, suffix length], padded on either side.
            suffix_state: in their place, the result of [`suffix_state`]. A search needs the tokens.

        Returns:
            The prefixes and their continuations, without the suffix, [batch, length + new]; after a search with
            `return_dict_in_generate=True` a [`SearchOutput`].

        Raises:
            BeliefStateError: prefixes, suffixes or a search that cannot be.
        """
        config = kwargs.get("generation_config") or self.generation_config
        for name, reason in REFUSED.items():
            if kwargs.get(name, getattr(config, name, None)) is not None:
                raise BeliefStateError(
                    f"A Belief State Transformer cannot generate with {name}: {reason}. Leave it out."
                )
        if num_rollouts is None:
            given = {"score_with": score_with, "score_tokens": score_tokens, "stop_at_end": stop_at_end}
            named = [name for name, value in given.items() if value is not None]
            if named or proposals != "queue":
                raise BeliefStateError(
                    f"{named or 'proposals'} belong to a search; give num_rollouts, for example 120."
                )
            return super().generate(inputs, *args, **kwargs)
        if proposals not in PROPOSALS:
            raise BeliefStateError(f"proposals must be one of {list(PROPOSALS)}, got {proposals!r}.")
        for name, plain in ALONE.items():
            if name in kwargs and kwargs[name] is not plain:
                raise BeliefStateError(
                    f"num_rollouts cannot be combined with {name}; proposals chooses how continuations are proposed, "
                    "and return_dict_in_generate=True returns all of them with their scores."
                )
        if proposals != "sample" and kwargs.get("do_sample"):
            raise BeliefStateError("do_sample=True needs proposals='sample'; the queue and the beams are greedy.")
        options = {
            "num_rollouts": num_rollouts,
            "proposals": proposals,
            "score_with": score_with,
            "score_tokens": score_tokens,
            "stop_at_end": stop_at_end,
            "rollout_batch_size": rollout_batch_size,
        }
        # A call's own settings win over those of the checkpoint's generation_config.json.
        plainly = {"num_beams": 1, "num_return_sequences": 1, "do_sample": proposals == "sample"}
        return super().generate(inputs, *args, custom_generate=search, **{**kwargs, **plainly, **options})

    def sample_from_belief(self, states: Tensor, max_new_tokens: int, **options: Any) -> BeliefSamples:
        """Continuations of texts whose belief states alone are given (Theorem 2); see the function of this name.

        Args:
            states: the last hidden state of each text's last token, [batch, hidden].
        """
        return sample_from_belief(self, states, max_new_tokens, **options)

    def infilling_pipeline(self, tokenizer: Any, **options: Any) -> Any:
        """The pipeline `"infilling"` with this model, before it is saved."""
        from .belief_state_infilling import InfillingPipeline  # pipelines load much

        return InfillingPipeline(model=self, tokenizer=tokenizer, task="infilling", **options)

    def _prepare_model_inputs(self, inputs: Any, bos_token_id: Any, model_kwargs: dict[str, Any]) -> Any:
        """transformers calls this once a call of `generate()`: the place to read the suffix."""
        inputs, name, model_kwargs = super()._prepare_model_inputs(inputs, bos_token_id, model_kwargs)
        mask = model_kwargs.get("attention_mask")
        if inputs.shape[1] == 0 or (mask is not None and not bool(mask.bool().any(1).all())):
            raise BeliefStateError(
                "A prefix needs a token: without one there is no state to go on from; give bos_token_id."
            )
        suffix_ids, state = model_kwargs.get("suffix_ids"), model_kwargs.get("suffix_state")
        if suffix_ids is not None and state is not None:
            raise BeliefStateError("Give suffix_ids or suffix_state, not both.")
        if state is None:
            state = self.suffix_state(suffix_ids, model_kwargs.get("suffix_attention_mask"))
        if state is not None:
            if len(state) not in (1 if suffix_ids is None else len(inputs), len(inputs)):
                raise BeliefStateError(
                    f"Every prefix needs a suffix: got {len(inputs)} prefixes, {len(state)} suffixes."
                )
            # A row each, because transformers repeats rows for beams and samples.
            model_kwargs["suffix_state"] = state.expand(len(inputs), -1, -1)
        return inputs, name, model_kwargs

    def prepare_inputs_for_generation(
        self, input_ids: Tensor, *args: Any, inputs_embeds: Tensor | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """As in transformers, with the suffix's state in place of the suffix.

        `inputs_embeds` is named, because `generate()` asks for it; the tokenizer of `stop_strings`, which transformers
        passes to every model, is left out.
        """
        kwargs = {key: value for key, value in kwargs.items() if key not in (*READ, "tokenizer")}
        return super().prepare_inputs_for_generation(input_ids, *args, inputs_embeds=inputs_embeds, **kwargs)


#: Texts that an enumeration may hold.
ENUMERABLE = 1_000_000


@dataclass
class BeliefSamples(ModelOutput):
    """Continuations sampled from belief states.

    Args:
        sequences (`Tensor` of shape `[batch, length]`): the new tokens in reading order, padded on the right with the
            end token.
        lengths (`Tensor` of shape `[batch]`): how many they are.
        joined (`Tensor` of shape `[batch]`): whether the text is whole. False if the model had not said that prefix
            and suffix meet when there was no more room; the tokens are then the text's last ones.
        log_probs (`Tensor` of shape `[batch]`): the logarithm of each sample's probability.
    """

    sequences: Tensor | None = None
    lengths: Tensor | None = None
    joined: Tensor | None = None
    log_probs: Tensor | None = None


@torch.no_grad()
def sample_from_belief(
    model: Any,
    states: Tensor,  # [batch, hidden]
    max_new_tokens: int,
    *,
    stop_at_end: bool | None = None,
    generator: torch.Generator | None = None,
) -> BeliefSamples:
    """Samples x_T by T_p(. | f, B(empty suffix)), x_T-1 by T_p(. | f, B(x_T)), and so on (the proof of Theorem 2).

    Args:
        model: a `BeliefStateForCausalLM`.
        states: belief states f, F of a prefix's last token; the prefix itself is not read.
        max_new_tokens: T - t. With `stop_at_end` it is the most.
        stop_at_end: whether the end token, said before a suffix, means that the text is whole. Defaults to whether the
            model was trained on prefixes and suffixes that meet (`least_gap=1`); other models cannot say it.
        generator: of random numbers.

    Raises:
        BeliefStateError: a model without T_p or B, or no room for tokens.
    """
    stop = _checked(model, max_new_tokens, stop_at_end)
    end, batch = model.config.end_token, len(states)
    cache = DynamicCache(config=model.model.backward_encoder.config)
    token = torch.full((batch, 1), end, device=states.device)
    lengths = torch.full((batch,), max_new_tokens, device=states.device)
    total = torch.zeros(batch, device=states.device, dtype=torch.float64)
    drawn: list[Tensor] = []
    for step in range(max_new_tokens + stop):
        said = _log_probabilities(model, states, read_backwards(model, token, cache)[:, -1])
        token = torch.multinomial(said.exp(), 1, generator=generator)
        going = lengths == max_new_tokens
        total += said.gather(1, token)[:, 0].double() * going if step < max_new_tokens else 0
        if stop:
            lengths = torch.where(going & (token[:, 0] == end), step, lengths)
        drawn.append(token)
        if bool((lengths <= step).all()):
            break
    backwards = torch.cat(drawn, 1)
    joined = lengths < max_new_tokens
    if not stop:
        joined = torch.ones_like(joined)
    elif backwards.shape[1] > max_new_tokens:  # whether the text is whole when there is no more room
        last = backwards[:, max_new_tokens] == end
        total = torch.where(~joined & last, total + said.gather(1, token)[:, 0].double(), total)
        joined = joined | last
    places = lengths[:, None] - 1 - torch.arange(max_new_tokens, device=states.device)
    inside = places >= 0
    sequences = backwards.gather(1, places.clamp(0, backwards.shape[1] - 1)).where(inside, end)
    return BeliefSamples(sequences=sequences, lengths=lengths, joined=joined, log_probs=total)


@torch.no_grad()
def belief_distribution(
    model: Any,
    state: Tensor,  # [hidden]
    max_new_tokens: int,
    *,
    stop_at_end: bool | None = None,
) -> dict[tuple[int, ...], float]:
    """The exact distribution of [`sample_from_belief`], by enumeration of all texts.

    Returns:
        The probability of each whole text. With `stop_at_end` they sum to less than 1 if texts may be longer.

    Raises:
        BeliefStateError: as there, or more than a million texts.
    """
    stop = _checked(model, max_new_tokens, stop_at_end)
    end, size = model.config.end_token, model.text_head.next.out_features
    if size**max_new_tokens > ENUMERABLE:
        raise BeliefStateError(
            f"{size} tokens at {max_new_tokens} places make more than {ENUMERABLE} texts; sample them with "
            "sample_from_belief, or ask for fewer max_new_tokens."
        )
    found: dict[tuple[int, ...], float] = {}
    suffixes = torch.full((1, 0), 0, device=state.device)
    total = torch.zeros(1, device=state.device, dtype=torch.float64)
    for length in range(max_new_tokens + stop):
        backwards = torch.nn.functional.pad(suffixes.flip(1), (1, 0), value=end)
        said = _log_probabilities(
            model, state.expand(len(suffixes), -1), read_backwards(model, backwards)[:, -1]
        ).double()
        if stop:
            whole = (total + said[:, end]).tolist()
            found |= {tuple(text): math.exp(p) for text, p in zip(suffixes.tolist(), whole, strict=True)}
        if length == max_new_tokens:
            break
        tokens = torch.arange(size, device=state.device)
        tokens = tokens[tokens != end] if stop else tokens
        total = (total[:, None] + said[:, tokens]).flatten()
        before = tokens.repeat(len(suffixes))[:, None]
        suffixes = torch.cat([before, suffixes.repeat_interleave(len(tokens), 0)], 1)
    if not stop:
        found = {tuple(text): math.exp(p) for text, p in zip(suffixes.tolist(), total.tolist(), strict=True)}
    return found


def _checked(model: Any, max_new_tokens: int, stop_at_end: bool | None) -> bool:
    if model.model.backward_encoder is None or model.text_head.prev is None:
        raise BeliefStateError(
            "Sampling from a belief state needs B and T_p; this model lacks one (use_backward=False or "
            "predict_previous=False)."
        )
    limit = model.model.learned_positions[-1]
    if max_new_tokens < 1 or (limit is not None and max_new_tokens >= limit):
        most = "" if limit is None else f" to {limit - 1}"
        raise BeliefStateError(f"max_new_tokens must be from 1{most}, got {max_new_tokens}.")
    return model.config.least_gap == 1 if stop_at_end is None else stop_at_end


def _log_probabilities(model: Any, prefixes: Tensor, suffixes: Tensor) -> Tensor:
    r"""\log T_p(. | f, B), [batch, vocabulary]."""
    _, before = model.text_head(prefixes, suffixes)
    return (before.float() if before.element_size() < 4 else before).log_softmax(-1)
