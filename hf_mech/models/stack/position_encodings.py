"""The positional encodings of Appendix C that GPT-2 and RoBERTa do not have.

Two replace the position embeddings and are added to the token embeddings ("none", "sinusoidal"). Three act inside every
self-attention on queries, keys and scores ("relative", "rotary", "alibi"). These three depend only on the distance
between query and key, so padding on the left changes nothing. None has a maximum length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.models.llama.modeling_llama import rotate_half

from .configuration_stack import StackError


def sinusoids(positions: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Sine and cosine of positions [...] at wavelengths from 2 pi to 10,000 x 2 pi: [..., size], size even."""
    steps = torch.arange(0, size, 2, device=positions.device, dtype=torch.float32)
    angles = positions[..., None].float() * torch.exp(steps * (-math.log(10_000.0) / size))
    return torch.cat([angles.sin(), angles.cos()], -1).to(dtype)


# ---------------------------------------------------------------------------------- instead of position embeddings


class NoPositions(nn.Module):
    """Adds nothing to the embeddings; called like `nn.Embedding`."""

    def __init__(self) -> None:
        super().__init__()
        self.like = nn.Buffer(torch.empty(0), persistent=False)  # only tells the model's type and device

    def forward(self, position_ids: Tensor) -> Tensor:
        return self.like.new_zeros(1)


class SinusoidalPositions(nn.Module):
    """The sines and cosines of Vaswani et al. (2017), Section 3.5; called like `nn.Embedding`."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.like = nn.Buffer(torch.empty(0), persistent=False)  # only tells the model's type and device

    def forward(self, position_ids: Tensor) -> Tensor:
        return sinusoids(position_ids, self.size, self.like.dtype)


def position_embedding(kind: str, size: int) -> nn.Module:
    """The module that replaces the position embeddings, for every encoding but `"learned"`."""
    return SinusoidalPositions(size) if kind == "sinusoidal" else NoPositions()


# ------------------------------------------------------------------------------------------- inside self-attention

Encoded = tuple[Tensor, Tensor, Tensor | None]


class RotaryEncoding(nn.Module):
    """Su et al. (2023): queries and keys are rotated by an angle that grows with their position."""

    def __init__(self, hidden_size: int, heads: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, key: Tensor, offset: int | Tensor, scaling: float) -> Encoded:
        return self._turned(query, offset), self._turned(key, 0), None

    @staticmethod
    def _turned(states: Tensor, offset: int | Tensor) -> Tensor:
        size = states.shape[-1]
        sine, cosine = sinusoids(_positions(states, offset), size, states.dtype).chunk(2, -1)
        return states * cosine.repeat(1, 2) + rotate_half(states) * sine.repeat(1, 2)


class AlibiEncoding(nn.Module):
    """Press et al. (2022): a score decreases with the distance, at a different rate in every head."""

    def __init__(self, hidden_size: int, heads: int) -> None:
        super().__init__()
        whole = 2 ** math.floor(math.log2(heads))  # other numbers of heads use every second rate of the next power
        rates = [2 ** (-8 * (h + 1) / whole) for h in range(whole)]
        self.rates = rates + [2 ** (-4 * (2 * h + 1) / whole) for h in range(heads - whole)]

    def forward(self, query: Tensor, key: Tensor, offset: int | Tensor, scaling: float) -> Encoded:
        rates = torch.tensor(self.rates, device=query.device, dtype=torch.float32)
        bias = -rates[:, None, None] * _distances(query, key, offset).abs()
        return query, key, bias.to(query.dtype)[None]


class RelativeEncoding(nn.Module):
    """Transformer-XL (Dai et al., 2019), Section 3.3: terms (b), (c) and (d) of the score, besides content."""

    def __init__(self, hidden_size: int, heads: int) -> None:
        super().__init__()
        self.distance = nn.Linear(hidden_size, hidden_size, bias=False)  # W_{k,R}
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, hidden_size // heads))  # u
        self.distance_bias = nn.Parameter(torch.zeros(heads, 1, hidden_size // heads))  # v

    def forward(self, query: Tensor, key: Tensor, offset: int | Tensor, scaling: float) -> Encoded:
        queries, keys = query.shape[2], key.shape[2]
        heads, size = self.content_bias.shape[0], self.content_bias.shape[2]
        # The distances i - j are between -(keys - 1) and keys - 1: project each one once, then gather.
        known = torch.arange(1 - keys, keys, device=query.device)
        projected = self.distance(sinusoids(known, heads * size, query.dtype)).view(-1, heads, size).permute(1, 2, 0)
        scores = (query + self.distance_bias) @ projected  # [batch, heads, queries, 2 keys - 1]
        index = (_distances(query, key, offset) + keys - 1).expand(*query.shape[:2], queries, keys)
        return query + self.content_bias, key, scores.gather(-1, index) * scaling


ENCODINGS: dict[str, Callable[[int, int], nn.Module]] = {
    "relative": RelativeEncoding,
    "rotary": RotaryEncoding,
    "alibi": AlibiEncoding,
}


def init_encoding(module: nn.Module) -> None:
    """Sets the biases of [`RelativeEncoding`] to zero; its matrix is initialised like every other Linear."""
    if isinstance(module, RelativeEncoding):
        init.zeros_(module.content_bias)
        init.zeros_(module.distance_bias)


def encode(attention: Any, query: Tensor, key: Tensor, mask: Tensor | None, cache_length: int | Tensor) -> Encoded:
    """Queries, keys and additive mask of a self-attention with the encoding in `attention.encoding`.

    Args:
        attention: has `encoding`, `scaling`, `is_causal` and `config`.
        query: [batch, heads, queries, size], for the last positions.
        key: [batch, heads, keys, size], the cached ones first.
        mask: boolean (True: visible) or additive, broadcastable to [batch, heads, queries, keys]; None if only
            `is_causal` restricts the visible keys.
        cache_length: the number of all positions, including the queries'.

    Raises:
        StackError: an attention implementation that takes no additive mask.
    """
    offset = cache_length - query.shape[2]
    query, key, bias = attention.encoding(query, key, offset, attention.scaling)
    if bias is None:
        return query, key, mask
    implementation = attention.config._attn_implementation
    if implementation not in ("eager", "sdpa"):
        raise StackError(
            f"position_embedding_type={attention.config.position_embedding_type!r} adds to the attention scores, which "
            f"attn_implementation={implementation!r} cannot; use 'sdpa' or 'eager'."
        )
    if mask is None and attention.is_causal:
        mask = _distances(query, key, offset) >= 0
    if mask is None:
        return query, key, bias
    if mask.dtype == torch.bool:
        return query, key, bias.masked_fill(~mask, torch.finfo(bias.dtype).min)
    return query, key, torch.where(mask < 0, mask, bias + mask)  # a sum could leave the type's range


def _positions(states: Tensor, offset: int | Tensor) -> Tensor:
    return torch.arange(states.shape[2], device=states.device) + offset


def _distances(query: Tensor, key: Tensor, offset: int | Tensor) -> Tensor:
    """i - j of every query and key, [queries, keys]."""
    return _positions(query, offset)[:, None] - _positions(key, 0)
