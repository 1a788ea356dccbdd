"""Greedy generation without logits: a program leaves no choice, the next word is that of the output register.

For one prompt the logits of a word, and what transformers does with them, cost more than the program does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers.generation import GenerationMixin
from transformers.generation.logits_process import SuppressTokensLogitsProcessor
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria

from .dat_cache import DATCache
from .dat_history import History
from .dat_inputs import check_length
from .dat_rows import RowGroup
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
        cache, most = kwargs["past_key_values"], max(1, longest - input_ids.shape[1])
        ends = (*model.dat.program.stops, END_OF_PROMPT)
        words = self._next_words(input_ids, kwargs.get("attention_mask"), cache, kwargs.get("register_values"), ends)
        said = [input_ids, words]
        if isinstance(cache.history.groups[-1], RowGroup):
            return torch.cat([*said, self._say_by_row(words, cache, ends, most - 1)], 1)
        while len(said) <= most and bool((words != NIL).any()):
            words = self._next_words(words, None, cache, None, ends)
            said.append(words)
        return torch.cat(said, 1)

    def _say_by_row(self, words: Tensor, cache: DATCache, ends: Sequence[int], most: int) -> Tensor:
        """The words after these, up to nil, without any tensor on the way; [batch, words]."""
        model: Any = self
        machine = model.dat._machine(words.device, True, None)
        output, limit = model.dat.program.parts["output"], model.config.max_position_embeddings
        groups, width = list(cache.history.groups), cache.history.width
        now, said, keys = words[:, 0].tolist(), list[list[int]](), list[list[int]]()
        while len(said) < most and any(now):
            rows = zip(groups[-1].last, now, strict=True)
            check_length(max(row.first + row.size + (word != NIL) for row, word in rows), limit)
            group = machine.read_values([None if word == NIL else word for word in now], groups[-1])
            keys.append([-1 if word == NIL else width + len(keys) for word in now])
            groups.append(group)
            now = [NIL if row is None or row.final[output][-1] in ends else row.final[output][-1] for row in group.rows]
            said.append(now)
        assert cache.keys is not None
        new = cache.keys.new_tensor(keys).reshape(-1, len(words)).T
        cache.history, cache.keys = History(groups), torch.cat([cache.keys, new], 1)
        cache.tokens += len(said)
        return words.new_tensor(said).reshape(-1, len(words)).T

    def _next_words(self, tokens: Tensor, mask: Any, cache: DATCache, given: Any, ends: Sequence[int]) -> Tensor:
        """Each row's word after these tokens, [batch, 1], nil in place of `ends`."""
        model: Any = self
        states = model.dat.run(tokens, mask, cache, register_values=given)
        model.dat._cached(cache, True, states, tokens)
        return states.last_words(model.dat.program.parts["output"], ends)


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
