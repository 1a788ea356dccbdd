"""What the plain PyTorch baselines share: an encoder and a decoder around one embedding, their loss, greedy generation.

The interface is that of transformers' encoder-decoders: `model(input_ids, attention_mask, labels)` gives loss and
logits, `model.generate(...)` token ids that begin with the token the decoder begins with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import Seq2SeqLMOutput


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
