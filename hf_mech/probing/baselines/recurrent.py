"""The baseline `lstm_attn`: an LSTM that reads, and one that says with attention to what was read."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hf_mech.probing.baselines.seq2seq import PlainSeq2Seq, attend


class Read(NamedTuple):
    """What the encoder hands on."""

    states: Tensor  # [batch, length, hidden], of the uppermost layer
    attention_mask: Tensor  # [batch, length]
    last: tuple[Tensor, Tensor]  # h and c of every layer, each [layers, batch, hidden], at the prompt's last token


class LSTMWithAttention(PlainSeq2Seq):
    """Encoder and decoder of `layers` layers each, in one direction (Table 11), attention by Luong et al. (2015).

    The paper names no form of attention. Here: `general`, score = h_decoder W h_encoder, and what is said comes from
    tanh(W' [context; h_decoder]), which is not fed back.
    """

    def __init__(self, vocab_size: int, hidden: int, layers: int, dropout: float = 0.0, **more: Any) -> None:
        super().__init__(vocab_size, hidden, **more)
        between = dropout if layers > 1 else 0.0
        self.encoder = nn.LSTM(hidden, hidden, layers, batch_first=True, dropout=between)
        self.decoder = nn.LSTM(hidden, hidden, layers, batch_first=True, dropout=between)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.combine = nn.Linear(2 * hidden, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Read:
        lengths = attention_mask.sum(1).cpu()  # packing wants them there
        embedded = self.dropout(self.embedding(input_ids))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, last = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=input_ids.shape[1])
        return Read(states, attention_mask, last)

    def decode(self, said: Tensor, memory: Read) -> Tensor:
        return self._decode(said, memory, memory.last)[0]

    def decode_next(self, said: Tensor, memory: Read, state: Any) -> tuple[Tensor, Any]:
        hidden, state = self._decode(said[:, -1:], memory, memory.last if state is None else state)
        return hidden[:, -1], state

    def _decode(self, said: Tensor, memory: Read, state: Any) -> tuple[Tensor, Any]:
        states, state = self.decoder(self.dropout(self.embedding(said)), state)
        context = attend(self.query(states), memory.states, memory.states, memory.attention_mask)
        return self.dropout(torch.tanh(self.combine(torch.cat([context, states], -1)))), state
