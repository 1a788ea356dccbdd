"""`generate()`: the suffix is read once a call, and a search can replace plain decoding (Sections 2.2 and 5)."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.generation import GenerationMixin

from .belief_state_errors import PrefixError, SearchError, SuffixError
from .belief_state_generation_backwards import BeliefSamples, sample_from_belief
from .belief_state_rows import suffixes_of
from .belief_state_search import SearchOutput, search

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
#: What config.json says of the pipeline, so that `pipeline("infilling", model=..., trust_remote_code=True)` finds it.
PIPELINES = {
    "infilling": {"impl": "belief_state_infilling.InfillingPipeline", "pt": ["AutoModelForCausalLM"], "type": "text"}
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
            SuffixError: no token in a row, more tokens than the backward encoder reads, or no backward encoder.
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
            PrefixError, SuffixError, SearchError: see there.
        """
        config = kwargs.get("generation_config") or self.generation_config
        for name, reason in REFUSED.items():
            if kwargs.get(name, getattr(config, name, None)) is not None:
                raise SearchError(f"A Belief State Transformer cannot generate with {name}: {reason}. Leave it out.")
        if num_rollouts is None:
            given = {"score_with": score_with, "score_tokens": score_tokens, "stop_at_end": stop_at_end}
            named = [name for name, value in given.items() if value is not None]
            if named or proposals != "queue":
                raise SearchError(f"{named or 'proposals'} belong to a search; give num_rollouts, for example 120.")
            return super().generate(inputs, *args, **kwargs)
        if proposals not in PROPOSALS:
            raise SearchError(f"proposals must be one of {list(PROPOSALS)}, got {proposals!r}.")
        for name, plain in ALONE.items():
            if name in kwargs and kwargs[name] is not plain:
                raise SearchError(
                    f"num_rollouts cannot be combined with {name}; proposals chooses how continuations are proposed, "
                    "and return_dict_in_generate=True returns all of them with their scores."
                )
        if proposals != "sample" and kwargs.get("do_sample"):
            raise SearchError("do_sample=True needs proposals='sample'; the queue and the beams are greedy.")
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
            raise PrefixError("A prefix needs a token: without one there is no state to go on from; give bos_token_id.")
        suffix_ids, state = model_kwargs.get("suffix_ids"), model_kwargs.get("suffix_state")
        if suffix_ids is not None and state is not None:
            raise SuffixError("Give suffix_ids or suffix_state, not both.")
        if state is None:
            state = self.suffix_state(suffix_ids, model_kwargs.get("suffix_attention_mask"))
        if state is not None:
            if len(state) not in (1 if suffix_ids is None else len(inputs), len(inputs)):
                raise SuffixError(f"Every prefix needs a suffix: got {len(inputs)} prefixes, {len(state)} suffixes.")
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


def check_suffix(config: Any, suffix_ids: Tensor, mask: Tensor | None, limit: int | None) -> None:
    """Refuses suffixes that cannot be read.

    Args:
        limit: the number of positions that the backward encoder has learned; None without a limit.

    Raises:
        SuffixError: see [`BeliefStateGeneration.suffix_state`].
    """
    if not config.use_backward:
        raise SuffixError(
            "This model has no backward encoder (use_backward=False), so no suffix can condition it; leave suffix_ids "
            "out, or load a model with one."
        )
    if suffix_ids.dim() != 2:
        raise SuffixError(f"suffix_ids must be [batch, suffix length], got {list(suffix_ids.shape)}.")
    if mask is not None and mask.shape != suffix_ids.shape:
        raise SuffixError(f"suffix_attention_mask must be {list(suffix_ids.shape)}, got {list(mask.shape)}.")
    if suffix_ids.shape[1] == 0 or (mask is not None and not bool(mask.bool().any(1).all())):
        raise SuffixError("A suffix has no token; for the empty suffix give none, or the end token alone.")
    longest = suffix_ids.shape[1] if mask is None else int(mask.bool().sum(1).max())
    if limit is not None and longest + 1 > limit:  # with its end token
        raise SuffixError(f"The backward encoder reads {limit} tokens with the end token, got {longest}; shorten it.")
