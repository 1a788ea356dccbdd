"""Generation as a graph: one token at a time, with the cache as plain tensors, for `torch.export` and ONNX.

An exporter takes a cache apart into keys and values and has no place for a stack. Here the stack of a layer is its
levels (see `stack_levels.py`): one level for each position so far, the lowest of which is position 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache

from .stack_cache import FixedStackState, StackDynamicLayer, following_levels


class TensorStackState(FixedStackState):
    """A stack whose state are two tensors that grow with every position.

    Args:
        stored: the levels after the positions so far, [batch, past, hidden + 1].
        newest: what the last position holds and, in the last column, the probability of its push,
            [batch, 1, hidden + 1].
    """

    def __init__(self, stored: Tensor, newest: Tensor) -> None:
        super().__init__(0)
        self.begun, self.stored, self.newest = True, stored, newest

    def add(
        self, actions: Tensor, values: Tensor, start: Tensor | None, length: int | Tensor = 0, *, several: bool = False
    ) -> None:
        """Adds one position, as [`StackState.add`]."""
        place = torch.arange(1, device=actions.device) + length
        with_one = pad(values, (0, 1), value=1)
        bottom = pad(self.stored, (0, 0, 1, 0))[:, -1:]  # nothing, before the first position
        self.stored = following_levels(self.stored, bottom, actions, with_one, start, place, more=1)
        self.newest = torch.cat([values.to(actions.dtype), actions[..., :1]], 2)

    def tops(self, start: Tensor | None, new: int) -> Tensor:
        return pad(self.stored, (0, 0, 0, 1))[:, :new, :-1]  # the first position has nothing below it

    def last(self, length: int | Tensor) -> tuple[Tensor, Tensor]:
        return self.newest[:, :, -1], self.newest[..., :-1]


class StackStep(nn.Module):
    """A causal language model as a function of one token and of plain tensors that hold all before it.

    `torch.onnx.export(step, **step.export_arguments(), dynamo=True)` makes an ONNX program of it, in evaluation mode.

    Args:
        model: a causal language model, each of whose layers keeps keys and values, with or without a stack.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    @torch.no_grad()
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, past: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The logits [batch, 1, vocabulary] of the token after this one, and the tensors with this one added.

        Without a gradient.

        Args:
            input_ids: [batch, 1].
            attention_mask: of the positions so far and of this one, [batch, past + 1].
            past: as of [`nothing`], with `past` positions instead of none.
        """
        cache = DynamicCache()
        for i in range(self.model.config.get_text_config().num_hidden_layers):
            cache.update(past[f"{i}.keys"], past[f"{i}.values"], i)
            if f"{i}.levels" in past:
                cache.layers[i] = StackDynamicLayer.holding(cache.layers[i], 0.0)
                cache.layers[i].stack = TensorStackState(past[f"{i}.levels"], past[f"{i}.newest"])
        logits = self.model(input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True).logits
        present: dict[str, Tensor] = {}
        layers: list[Any] = cache.layers
        for i, layer in enumerate(layers):
            present |= {f"{i}.keys": layer.keys, f"{i}.values": layer.values}
            if f"{i}.levels" in past:
                present |= {f"{i}.levels": layer.stack.stored, f"{i}.newest": layer.stack.newest}
        return logits, present

    def nothing(self, batch: int) -> dict[str, Tensor]:
        """What `forward` takes before the first token, by names that begin with the layer's index.

        `keys` and `values` are [batch, heads, 0, size]. Layers with a stack have its `levels`, [batch, 0, hidden + 1],
        and what the last position held and pushed, `newest`, [batch, 1, hidden + 1].
        """
        return self._past(batch, 0)

    def export_arguments(self) -> dict[str, Any]:
        """The arguments of `torch.onnx.export` that leave the batch and the number of positions free.

        The file's inputs are `input_ids`, `attention_mask` and the names of [`nothing`] behind `past.`; its outputs
        `logits` and the same names behind `present.`.
        """
        past, free = self._past(2, 4), torch.export.Dim.DYNAMIC
        mask = torch.ones(2, 5, dtype=torch.long, device=self.model.device)
        shapes = {
            name: {0: free} if name.endswith("newest") else {0: free, tensor.dim() - 2: free}
            for name, tensor in past.items()
        }
        return {
            "kwargs": {"input_ids": mask.new_zeros(2, 1), "attention_mask": mask, "past": past},
            "dynamic_shapes": {"input_ids": {0: free}, "attention_mask": {0: free, 1: free}, "past": shapes},
            "input_names": ["input_ids", "attention_mask", *(f"past.{name}" for name in past)],
            "output_names": ["logits", *(f"present.{name}" for name in past)],
        }

    @torch.no_grad()
    def _past(self, batch: int, length: int) -> dict[str, Tensor]:
        """Zeros as of [`nothing`], for so many positions."""
        first = torch.full((batch, 1), self.model.config.get_text_config().bos_token_id or 0, device=self.model.device)
        layers: list[Any] = self.model(first, use_cache=True).past_key_values.layers
        past: dict[str, Tensor] = {}
        for i, layer in enumerate(layers):
            for name, kept in (("keys", layer.keys), ("values", layer.values)):
                past[f"{i}.{name}"] = kept.new_zeros(batch, kept.shape[1], length, kept.shape[3])
            if hasattr(layer, "stack"):
                held = torch.zeros_like(layer.stack.values, dtype=layer.stack.actions.dtype)
                past[f"{i}.levels"], past[f"{i}.newest"] = held.new_zeros(batch, length, held.shape[2]), held
        return past
