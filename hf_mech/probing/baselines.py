"""Models that the papers compare theirs with and that transformers does not have, in plain PyTorch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers.modeling_outputs import MaskedLMOutput, Seq2SeqLMOutput

# ----------------------------------------------------------------------------------------------------------------------
# What the plain PyTorch baselines share: an encoder and a decoder around one embedding, their loss, greedy generation.
#
# The interface is that of transformers' encoder-decoders: `model(input_ids, attention_mask, labels)` gives loss and
# logits, `model.generate(...)` token ids that begin with the token the decoder begins with.


class PlainSeq2Seq(nn.Module, ABC):
    """The base. A subclass has `encode`, `decode` and `decode_next`; embedding and output layer are apart.

    Args:
        vocab_size: tokens.
        hidden: width of the embedding.
        initializer_range: standard deviation of the embedding's new weights.
        pad, bos, eos: ids. Prompts are padded on the right; the decoder begins with `bos`.
    """

    def __init__(self, vocab_size: int, hidden: int, initializer_range: float, *, pad: int, bos: int, eos: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, hidden)
        nn.init.normal_(self.embedding.weight, std=initializer_range)
        self.output = nn.Linear(hidden, vocab_size)
        self.pad, self.bos, self.eos = pad, bos, eos

    @abstractmethod
    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        """What the decoder may look at, of prompts [batch, length]."""

    @abstractmethod
    def decode(self, said: Tensor, memory: Any) -> Tensor:
        """The hidden states [batch, length, hidden] behind the tokens `said` [batch, length], all at once."""

    @abstractmethod
    def decode_next(self, said: Tensor, memory: Any, state: Any) -> tuple[Tensor, Any]:
        """The last of `decode`'s hidden states, [batch, hidden], and the state for the next; state None: the first."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Seq2SeqLMOutput:
        """`loss`, the mean over the labels that are not -100, and `logits` [batch, answer length, vocabulary].

        Args:
            input_ids, attention_mask: prompts, [batch, length].
            labels: answers, [batch, answer length].
        """
        said = F.pad(labels, (1, -1), value=self.bos).masked_fill(F.pad(labels, (1, -1), value=0) == -100, self.pad)
        logits = self.output(self.decode(said, self.encode(input_ids, attention_mask)))
        loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return Seq2SeqLMOutput(loss=loss, logits=logits)

    @torch.no_grad()
    def generate(self, input_ids: Tensor, attention_mask: Tensor, max_new_tokens: int) -> Tensor:
        """The most probable token again and again, until every row has said `eos` or the limit is reached.

        Returns:
            [batch, 1 + at most max_new_tokens]: `bos`, the answer, `pad` behind `eos`.
        """
        memory, state = self.encode(input_ids, attention_mask), None
        said = input_ids.new_full((len(input_ids), 1), self.bos)
        ended = torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        for _ in range(max_new_tokens):
            hidden, state = self.decode_next(said, memory, state)
            token = self.output(hidden).argmax(-1).masked_fill(ended, self.pad)
            said = torch.cat([said, token[:, None]], 1)
            ended |= token == self.eos
            if ended.all():
                break
        return said


def attend(query: Tensor, keys: Tensor, values: Tensor, attention_mask: Tensor) -> Tensor:
    """Attention by the scalar product, [batch, queries, width], over what the mask [batch, keys] does not hide."""
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=attention_mask[:, None].bool(), scale=1.0)


# ----------------------------------------------------------------------------------------------------------------------
# The baseline `lstm_attn`: an LSTM that reads, and one that says with attention to what was read.


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


# ----------------------------------------------------------------------------------------------------------------------
# The baseline `cnn`: convolutional sequence to sequence learning, after Gehring et al. (2017).


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


# ----------------------------------------------------------------------------------------------------------------------
# The recurrent baselines of Table 1: a plain RNN, and the stack-RNN of Joulin and Mikolov (2015).


HIDDEN, CELL = 256, 8
"""The sizes of the paper's baselines, Delétang et al.'s: of the hidden state, and of a cell of the stack."""
_STD_OF_TRUNCATED = 0.87962566
"""The standard deviation of a standard normal variable that is cut off at 2."""


class FormalRNN(nn.Module):
    """A tanh RNN that reads one-hot tokens and says a token at each; with a stack of vectors if `use_stack`.

    The stack is a superposition: at every step it becomes `push * pushed + pop * popped + no-op * unchanged`, the three
    weights a softmax of the hidden state. Its top is part of the RNN's next input. It is as deep as the text is long.

    Args:
        vocab_size: tokens.
        use_stack: whether it has a stack.
    """

    def __init__(self, vocab_size: int, use_stack: bool = False) -> None:
        super().__init__()
        self.vocab_size, self.use_stack = vocab_size, use_stack
        self.rnn = nn.RNN(vocab_size + CELL * use_stack, HIDDEN, batch_first=True)
        self.output = nn.Linear(HIDDEN, vocab_size)
        if use_stack:
            self.cell = nn.Linear(HIDDEN, CELL)
            self.actions = nn.Linear(HIDDEN, 3)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """LeCun normal weights (truncated, of variance 1 / inputs), and no bias.

        torch's own are smaller: what a cell says of the past then hardly reaches the next state.
        """
        for parameter in self.parameters():
            if parameter.dim() == 1:
                nn.init.zeros_(parameter)
            else:
                std = parameter.shape[1] ** -0.5 / _STD_OF_TRUNCATED
                nn.init.trunc_normal_(parameter, std=std, a=-2 * std, b=2 * std)

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> MaskedLMOutput:
        """`loss` (if there are labels, -100 being none) and `logits` [batch, length, vocab_size].

        Args:
            input_ids, labels: [batch, length].
        """
        tokens = F.one_hot(input_ids, self.vocab_size).to(self.output.weight.dtype)
        states = self._with_stack(tokens) if self.use_stack else self.rnn(tokens)[0]
        logits = self.output(states)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return MaskedLMOutput(loss=loss, logits=logits)

    def _with_stack(self, tokens: Tensor) -> Tensor:
        """The hidden states, [batch, length, hidden]."""
        batch, length, _ = tokens.shape
        rnn: Any = self.rnn  # its weights are attributes that torch gives no types
        state = tokens.new_zeros(batch, HIDDEN)
        stack = tokens.new_zeros(batch, length + 1, CELL)  # cell 0 is the top
        # The tokens' share of the input is known beforehand, so that each step has little to do.
        from_tokens = F.linear(tokens, rnn.weight_ih_l0[:, : self.vocab_size], rnn.bias_ih_l0 + rnn.bias_hh_l0)
        from_top = rnn.weight_ih_l0[:, self.vocab_size :]
        states = []
        for token in from_tokens.unbind(1):
            state = torch.tanh(token + F.linear(stack[:, 0], from_top) + F.linear(state, rnn.weight_hh_l0))
            push, pop, no_op = self.actions(state).softmax(-1)[..., None, None].unbind(1)
            pushed = torch.cat([self.cell(state).unsqueeze(1), stack[:, :-1]], 1)
            popped = F.pad(stack[:, 1:], (0, 0, 0, 1))
            stack = push * pushed + pop * popped + no_op * stack
            states.append(state)
        return torch.stack(states, 1)
