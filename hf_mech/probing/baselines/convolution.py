"""The baseline `cnn`: convolutional sequence to sequence learning, after Gehring et al. (2017)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hf_mech.probing.baselines.seq2seq import PlainSeq2Seq, attend

_HALF = 0.5**0.5  # keeps the variance of a sum of two


class Seen(NamedTuple):
    """What the encoder hands on: keys and values, [batch, length, hidden], and the mask [batch, length]."""

    keys: Tensor
    values: Tensor
    attention_mask: Tensor


class ConvolutionalSeq2Seq(PlainSeq2Seq):
    """Gated convolutions with residuals in encoder and decoder; every layer of the decoder attends to the encoder.

    Positions are embedded, and added to the words. The encoder's convolutions see both sides, the decoder's the past.

    Args:
        filter: width of the convolutions.
        layers: of the encoder, and of the decoder.
        kernel: how many neighbours a convolution sees; odd.
        positions: the longest prompt or answer.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden: int,
        filter: int,
        layers: int,
        kernel: int,
        positions: int,
        dropout: float = 0.0,
        **more: Any,
    ) -> None:
        super().__init__(vocab_size, hidden, **more)
        if kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, so that the encoder sees as much on either side, got {kernel}.")
        self.kernel = kernel
        self.positions = nn.ModuleDict({name: nn.Embedding(positions, hidden) for name in ("encoder", "decoder")})
        for table in self.positions.parameters():
            nn.init.normal_(table, std=more["initializer_range"])
        self.enter = nn.ModuleDict({name: nn.Linear(hidden, filter) for name in ("encoder", "decoder")})
        self.leave = nn.ModuleDict({name: nn.Linear(filter, hidden) for name in ("encoder", "decoder")})
        self.encoder = nn.ModuleList(nn.Conv1d(filter, 2 * filter, kernel, padding=kernel // 2) for _ in range(layers))
        self.decoder = nn.ModuleList(nn.Conv1d(filter, 2 * filter, kernel) for _ in range(layers))
        self.query = nn.ModuleList(nn.Linear(filter, hidden) for _ in range(layers))
        self.context = nn.ModuleList(nn.Linear(hidden, filter) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Seen:
        embedded = self._embed("encoder", input_ids, 0)
        real = attention_mask[..., None].to(embedded.dtype)
        states = self.enter["encoder"](embedded)
        for convolution in self.encoder:
            gated = _gated(convolution, self.dropout(states * real))  # padding is as empty as what lies beyond it
            states = (gated + states) * _HALF
        keys = self.leave["encoder"](states)
        return Seen(keys, (keys + embedded) * _HALF, attention_mask)

    def decode(self, said: Tensor, memory: Seen) -> Tensor:
        return self._decode(said, memory, 0)

    def decode_next(self, said: Tensor, memory: Seen, state: None) -> tuple[Tensor, None]:
        window = said[:, -(len(self.decoder) * (self.kernel - 1) + 1) :]  # all that the last position depends on
        return self._decode(window, memory, said.shape[1] - window.shape[1])[:, -1], None

    def _decode(self, said: Tensor, memory: Seen, first: int) -> Tensor:
        """The hidden states of tokens of which the first stands at position `first`."""
        embedded = self._embed("decoder", said, first)
        states = self.enter["decoder"](embedded)
        for convolution, query, context in zip(self.decoder, self.query, self.context, strict=True):
            gated = _gated(convolution, F.pad(self.dropout(states), (0, 0, self.kernel - 1, 0)))
            asked = (query(gated) + embedded) * _HALF
            told = context(attend(asked, memory.keys, memory.values, memory.attention_mask))
            states = ((gated + told) * _HALF + states) * _HALF
        return self.dropout(self.leave["decoder"](states))

    def _embed(self, side: str, tokens: Tensor, first: int) -> Tensor:
        positions = torch.arange(first, first + tokens.shape[1], device=tokens.device)
        return self.dropout(self.embedding(tokens) + self.positions[side](positions))


def _gated(convolution: nn.Module, states: Tensor) -> Tensor:
    """A convolution over [batch, length, filter] and its gated linear unit, of the same width."""
    return F.glu(convolution(states.transpose(1, 2)), 1).transpose(1, 2)
