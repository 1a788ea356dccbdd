"""The recurrent baselines of Table 1: a plain RNN, and the stack-RNN of Joulin and Mikolov (2015)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import MaskedLMOutput

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
