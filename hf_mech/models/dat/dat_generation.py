"""Generation: the cache of whole states, (71), and greedy words without logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache
from transformers.generation import GenerationMixin
from transformers.generation.logits_process import SuppressTokensLogitsProcessor
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria

from .dat_machine import History
from .dat_program import END_OF_PROMPT, NIL, DATError
from .dat_rows import RowGroup
from .dat_states import check_length

# ---------------------------------------------------------------------------------------------------------------- cache


class DATCache(Cache):
    """The cells' states between the steps of `generate()`. Registers that a layer does not change use no memory."""

    is_compileable = False

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.history: History[Any] = History()
        self.tokens = 0
        self.keys: Tensor | None = None  # each token's cell, see `States`

    def keys_with(self, ranks: Tensor) -> Tensor:
        """The cells of all tokens so far, and of further words, numbered by `ranks` [batch, length] or -1."""
        assert self.keys is not None
        return torch.cat([self.keys, torch.where(ranks >= 0, ranks + self.history.width, -1)], 1)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """The number of tokens read so far, including padding."""
        return self.tokens

    def get_max_length(self, layer_idx: int | None = None) -> int:
        """-1: it grows."""
        return -1

    def get_max_cache_shape(self, layer_idx: int | None = None) -> int:
        """The name of `get_max_length` before transformers 5.23."""
        return self.get_max_length(layer_idx)

    @property
    def is_initialized(self) -> bool:
        return bool(self.history.groups)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keeps these rows of the batch, [rows], in this order."""
        self._select(beam_idx)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keeps these rows of the batch, [rows], in this order."""
        self._select(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeats every row."""
        if self.keys is not None:
            self._select(torch.arange(len(self.keys)).repeat_interleave(repeats))

    def crop(self, tokens_to_remove: int) -> None:
        """Removes the last tokens; their number is given as a negative number, as in all caches.

        Raises:
            DATError: a positive number, or one that reaches into the prompt, which is parsed as a whole.
        """
        behind = max(0, len(self.history.groups) - 1)
        if tokens_to_remove > 0 or -tokens_to_remove > behind:
            raise DATError(
                f"tokens_to_remove must be between {-behind} (minus the tokens after the prompt) and 0, got "
                f"{tokens_to_remove}; to forget the prompt, call reset()."
            )
        if tokens_to_remove < 0:
            del self.history.groups[tokens_to_remove:]
            self.tokens += tokens_to_remove
            self.keys = None if self.keys is None else self.keys[:, : self.tokens]

    def reset(self) -> None:
        """Removes everything."""
        self.history, self.tokens, self.keys = History(), 0, None

    def _select(self, rows: Tensor) -> None:
        if self.keys is not None:
            self.history.groups = [group.select(rows) for group in self.history.groups]
            self.keys = self.keys.index_select(0, rows.to(self.keys.device))

    def memory(self) -> int:
        """The bytes of all states held."""
        found: dict[int, int] = {}
        for group in self.history.groups:
            found |= group.memory()
        return sum(found.values()) + (0 if self.keys is None else self.keys.numel() * self.keys.element_size())


def as_dat_cache(cache: object) -> DATCache:
    """The cache itself.

    Raises:
        DATError: it is a cache of another kind.
    """
    if not isinstance(cache, DATCache):
        raise DATError(
            f"past_key_values must be a DATCache, got {type(cache).__name__}; leave it out, and generate() makes one."
        )
    return cache


# --------------------------------------------------------------------------------------------------------- greedy words

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
            and not (model.unembed._forward_hooks or model.unembed._forward_pre_hooks)
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
