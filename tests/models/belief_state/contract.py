"""The belief state models as the contract suite sees them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from hf_mech.models.belief_state import (
    BeliefStateConfig,
    BeliefStateForCausalLM,
    BeliefStateModel,
    Sequences,
    TextHead,
    belief_state_loss,
    belief_state_loss_reference,
)
from tests.contract.batches import Batch
from tests.contract.case import ContractCase, Formula
from tests.stock import TEXTS, gpt2_tokenizer

BOS, PAD, END = 0, 1, 2
VOCABULARY = 16  # times 4 bytes: all tensors of a file are aligned, or products of loaded weights round differently


def config(**options: Any) -> BeliefStateConfig:
    sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 32, "vocab_size": VOCABULARY, "head_width": 32}
    special = {"bos_token_id": BOS, "eos_token_id": END, "pad_token_id": PAD}
    return BeliefStateConfig(**{**sizes, **special, "initializer_range": 0.2, "block_size": 64, **options})


def inputs(batch: int, length: int, seed: int) -> Batch:
    """BOS, and then symbols that count upwards from a random one."""
    generator = torch.Generator().manual_seed(seed)
    symbols = VOCABULARY - 3
    first = torch.randint(0, symbols, (batch, 1), generator=generator)
    ids = 3 + (first + torch.arange(length)) % symbols
    ids[:, 0] = BOS
    return {"input_ids": ids, "attention_mask": torch.ones(batch, length, dtype=torch.long)}


def with_suffixes(batch: int, length: int, seed: int) -> Batch:
    """A suffix for each row, with its end token, so that the backward encoder works too."""
    made, suffix = inputs(batch, length, seed), inputs(batch, length, seed + 1)
    suffix["input_ids"][:, -1] = END
    return {**made, "suffix_ids": suffix["input_ids"], "suffix_attention_mask": suffix["attention_mask"]}


def training(batch: int, length: int, seed: int) -> Batch:
    made = inputs(batch, length, seed)
    return {**made, "labels": made["input_ids"].masked_fill(made["input_ids"] == BOS, -100)}


def stock() -> tuple[BeliefStateConfig, PreTrainedTokenizerBase]:
    """As for any GPT-2: the tokenizer has no padding token, so the end token pads."""
    tokenizer = gpt2_tokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    end = tokenizer.eos_token_id
    sizes = {"vocab_size": len(tokenizer), "n_positions": 64}
    return config(**sizes, eos_token_id=end, pad_token_id=end, bos_token_id=end), tokenizer


def objective(loss: Any, gap: int) -> Any:
    """The loss as a function of states and of the head's weights, with untrained tokens and padding."""

    def run(prefixes: Tensor, suffixes: Tensor, *weights: Tensor) -> Tensor:
        head = TextHead(4, 6, 3, VOCABULARY).double()
        tokens = torch.arange(2 * 7).reshape(2, 7) % (VOCABULARY - 3) + 3
        tokens[:, -2] = END
        sequence = torch.zeros_like(tokens)
        sequence[:, -1] = -1
        trained = (sequence >= 0) & (tokens % 5 != 0)
        state = dict(zip(dict(head.named_parameters()), weights, strict=True))
        called = Called(head, loss, gap, Sequences(tokens, trained, sequence, END))
        total, count = torch.func.functional_call(
            called, {f"head.{name}": value for name, value in state.items()}, (prefixes, suffixes)
        )
        return total / count

    return run


class Called(torch.nn.Module):
    """A head and an objective, as one module whose weights can be replaced."""

    def __init__(self, head: TextHead, loss: Any, gap: int, sequences: Sequences) -> None:
        super().__init__()
        self.head, self.loss, self.gap, self.sequences = head, loss, gap, sequences

    def forward(self, prefixes: Tensor, suffixes: Tensor) -> tuple[Tensor, Tensor]:
        return self.loss(prefixes, suffixes, self.head, self.sequences, self.gap)


def arguments(seed: int) -> tuple[Tensor, ...]:
    """Random states [batch, length, size] of prefixes and suffixes, and random weights of the head."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(2, 7, 4), (2, 7, 4), *(weight.shape for weight in TextHead(4, 6, 3, VOCABULARY).parameters())]
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)


FORMULAS = (
    Formula("Eq. 2", objective(belief_state_loss, 2), objective(belief_state_loss_reference, 2), arguments),
    Formula("Eq. 2 at gap 1", objective(belief_state_loss, 1), objective(belief_state_loss_reference, 1), arguments),
)
COMMON: dict[str, Any] = {
    "config": config,
    "padding": {"input_ids": PAD, "attention_mask": 0, "labels": -100, "suffix_ids": PAD, "suffix_attention_mask": 0},
    "bf16_tolerance": 0.2,
    "processing": stock,
    "texts": TEXTS[:3],
}
NO_STREAM = "generation keeps its state in transformers' cache"

CASES = (
    ContractCase(
        model_class=BeliefStateModel,
        inputs=with_suffixes,
        position_outputs=("last_hidden_state", "suffix_hidden_state"),
        lacks={
            "loss": "no head on top",
            "generation": "no head on top",
            "stream": NO_STREAM,
            "packing": "with `suffix_ids`, which are one a row, several sequences in a row are refused",
            "formulas": "those of the model with the text head",
        },
        **COMMON,
    ),
    ContractCase(
        model_class=BeliefStateForCausalLM,
        inputs=training,
        position_outputs=("logits",),
        formulas=FORMULAS,
        lacks={
            "stream": NO_STREAM,
            "output_embeddings": "no matrix turns hidden states into logits, and TRL computes its own loss from one",
        },
        **COMMON,
    ),
)
