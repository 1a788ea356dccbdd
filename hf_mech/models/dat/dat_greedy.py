"""Greedy generation without logits: a program leaves no choice, the next word is that of the output register.

For one prompt the logits of a word, and what transformers does with them, cost more than the program does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers.generation import GenerationMixin
from transformers.generation.logits_process import SuppressTokensLogitsProcessor
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria

from .dat_cache import DATCache
from .dat_values import END_OF_PROMPT, NIL

_READ = {"attention_mask", "past_key_values", "register_values", "use_cache", "logits_to_keep"}
"""The arguments of the model that generation without logits reads, or needs not."""


class GreedyWords(GenerationMixin):
    """`generate()` of a compiled program."""

    def _sample(
        self, input_ids: Tensor, logits_processor: Any, stopping_criteria: Any, generation_config: Any, **kwargs: Any
    ) -> Any:
        """As in transformers; without logits if nobody asks for them, chooses by them, or looks on."""
        streamer, synced = kwargs.pop("streamer", None), kwargs.pop("synced_gpus", False)
        alone = streamer is None and not synced and self._leaves_no_choice() and _is_new(kwargs)
        if (
            alone
            and _is_greedy(generation_config)
            and all(_forbids_the_end(processor) for processor in logits_processor)
            and all(_ends_with_nil(criterion) for criterion in stopping_criteria)
            and stopping_criteria.max_length is not None
        ):
            return self._say(input_ids, stopping_criteria.max_length, kwargs)
        return super()._sample(
            input_ids,
            logits_processor,
            stopping_criteria,
            generation_config,
            synced_gpus=synced,
            streamer=streamer,
            **kwargs,
        )

    def _leaves_no_choice(self) -> bool:
        """Whether the backend computes the program exactly, and the call of the model is nobody else's."""
        model: Any = self
        looking_on = [model._forward_hooks, model._forward_pre_hooks, model.dat._forward_hooks]
        return (
            model.config.backend == "gather"
            and not any([*looking_on, model.dat._forward_pre_hooks, *model.dat._wanted(None, None)])
            and "forward" not in vars(model)
            and nn.Module.__call__ is type(model).__call__
        )

    def _say(self, input_ids: Tensor, longest: int, kwargs: Mapping[str, Any]) -> Tensor:
        """The prompts and what the program says, up to nil; `longest` counts the prompts' tokens, too."""
        model: Any = self
        cache: DATCache = kwargs["past_key_values"]
        given, mask, tokens = kwargs.get("register_values"), kwargs.get("attention_mask"), input_ids
        ends = (*model.dat.program.stops, END_OF_PROMPT)
        said = [input_ids]
        going = torch.ones(len(input_ids), 1, dtype=torch.bool, device=input_ids.device)
        for _ in range(max(1, longest - input_ids.shape[1])):
            states = model.dat.run(tokens, mask, cache, register_values=given)
            model.dat._cached(cache, True, states, tokens)
            words = states.last_words(model.dat.program.parts["output"], ends)
            tokens, mask, given = words * going, None, None
            said.append(tokens)
            going = going & (words != NIL)
            if not bool(going.any()):
                break
        return torch.cat(said, 1)


def _is_new(kwargs: Mapping[str, Any]) -> bool:
    """Whether the model's arguments are those of a new text, and all are known here."""
    cache = kwargs.get("past_key_values")
    asked = {name for name, value in kwargs.items() if value is not None and value is not False}
    return isinstance(cache, DATCache) and not cache.is_initialized and "use_cache" in asked and asked <= _READ


def _is_greedy(config: Any) -> bool:
    """Whether the likeliest word is wanted, and only it; then rows that have ended are padded with nil."""
    padding = getattr(config, "_pad_token_tensor", None)
    return not (config.do_sample or config.return_dict_in_generate) and padding is not None and int(padding) == NIL


def _forbids_the_end(processor: Any) -> bool:
    """Whether it only forbids the end of the prompt, which no program says."""
    return type(processor) is SuppressTokensLogitsProcessor and processor.suppress_tokens.tolist() == [END_OF_PROMPT]


def _ends_with_nil(criterion: Any) -> bool:
    """Whether it ends a row at nil, or at a length."""
    if type(criterion) is EosTokenCriteria:
        return criterion.eos_token_id.tolist() == [NIL]
    return type(criterion) is MaxLengthCriteria


__all__ = ["GreedyWords"]
