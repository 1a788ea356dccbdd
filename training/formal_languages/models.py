"""The model of a run, and what it can be taught besides the answer: short texts, partial results, use of the stacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_model as save_weights
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer
from torch.utils.data import Dataset
from transformers import PreTrainedModel

from hf_mech.hub.checkpoint import load_checkpoint
from hf_mech.languages import formal_language_tokenizer, fresh_batch
from hf_mech.languages.rows import BOS, MASK, PAD, SEP, SPECIAL_TOKENS, vocabulary
from hf_mech.models.stack import (
    StackRobertaConfig,
    StackRobertaForCausalLM,
    StackRobertaForMaskedLM,
    balance_loss,
    entropy_loss,
    push_loss,
)
from hf_mech.probing.baselines import FormalRNN

from ..engine.optimizers import muon_and_adamw
from .settings import STACKS, TRANSFORMERS, Run

POSITIONS = 512
"""More than the longest text of the score has: 100 symbols, their answer, and the special tokens. Models without
learned positions read longer ones, too."""


def make_model(run: Run, symbols: int | None = None, positions: int = POSITIONS) -> nn.Module:
    """The untrained model; its weights come from torch's random numbers.

    Args:
        run: its settings.
        symbols: tokens of the user's vocabulary; by default the task's.
        positions: the most that a row has.

    The paper's transformer (§4.2, App. B.1): d 64, 8 heads, feed-forward 256 with ReLU, layer norm after each
    sub-layer, embedding and output layer apart. `mlm` sees the whole text, `alm` the past alone.
    """
    vocabulary = symbols or len(formal_language_tokenizer(run.task))
    if run.model not in TRANSFORMERS:
        return FormalRNN(vocabulary, use_stack=run.model == "stack_rnn")
    causal = run.layout == "alm"
    config = StackRobertaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        num_hidden_layers=run.num_hidden_layers,
        num_attention_heads=8,
        intermediate_size=256,
        hidden_act="relu",
        hidden_dropout_prob=run.dropout,
        attention_probs_dropout_prob=run.attention_dropout,
        initializer_range=run.initializer_range,
        max_position_embeddings=positions,
        type_vocab_size=1,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=None,
        tie_word_embeddings=False,
        is_decoder=causal,
        use_cache=False,  # nothing is generated while training
        use_stack=run.model != "vanilla",
        stack_values="recurrent" if run.model == "recurrent_stack" else "hidden",
        stack_values_noise=run.noise if run.model == "recurrent_stack" else 0.0,
        multi_pop=run.multi_pop,
        stack_gate=run.stack_gate,
        stack_actions_from=run.stack_actions_from,
        stack_actions_start=run.stack_actions_start,
        position_embedding_type=run.encoding,
        stack_bottom="bos_token",  # as in the paper
    )
    return (StackRobertaForCausalLM if causal else StackRobertaForMaskedLM)(config)


def make_optimizer(model: nn.Module, run: Run) -> Optimizer:
    """Adam; or with it Muon for the matrices of a transformer's layers, but not for those of the actions."""
    if run.optimizer == "adam" or run.model not in TRANSFORMERS:
        return torch.optim.AdamW(model.parameters(), lr=run.learning_rate, weight_decay=run.weight_decay, fused=True)
    named = dict(model.named_parameters())
    of_layers = (name for name in named if ".layer." in name and ".action." not in name)
    rates = {name: run.muon_learning_rate for name in of_layers if named[name].dim() == 2}
    return muon_and_adamw(named, rates, weight_decay=run.weight_decay, lr=run.learning_rate, fused=True)


def save_model(model: nn.Module, run: Run, folder: Path, tokenizer: Any = None) -> None:
    """Saves a trained model: a transformer with its tokenizer, of a recurrent baseline the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    model.eval()
    if isinstance(model, PreTrainedModel):
        model.config.use_cache = run.layout == "alm"
        model.save_pretrained(folder)
        (tokenizer or formal_language_tokenizer(run.task)).save_pretrained(folder)
    else:
        save_weights(model, str(folder / "model.safetensors"))


def load_model(folder: Path) -> PreTrainedModel:
    """The transformer that [`save_model`] saved, in evaluation mode."""
    return load_checkpoint(folder).eval()


# -------------------------------------------------------------------------------------------------------------- lessons


_BOS, _PAD, _SEP, _MASK = (SPECIAL_TOKENS.index(token) for token in (BOS, PAD, SEP, MASK))
_LONGER = 4
"""Symbols by which the longest text grows."""
_AT_LEAST = 50
"""Steps before it does again."""
_MEMORY = 0.98
"""Of the running mean of that share."""
_STRUCTURE = 1_000_000
"""Added to the seed for the texts without labels."""
_PUSHES = 5.0
"""The weight of the missing pushes."""


@dataclass
class Growth:
    """The longest training text so far.

    Attributes:
        longest: in symbols.
        right: the share of right answers lately.
        since: steps since the last change.
    """

    longest: int
    right: float = 0.0
    since: int = 0

    @classmethod
    def of(cls, run: Run, most: int | None = None) -> Growth:
        """That of a run which begins; its texts have at most so many symbols."""
        most = most or run.max_train_length
        return cls(min(run.first_train_length or most, most))

    def become(self, other: Growth) -> None:
        """Takes over another state; the batches and the model hold this object."""
        vars(self).update(vars(other))

    def see(self, right: float, most: int, learned: float) -> None:
        """Takes the share of right answers of one step; the texts grow up to `most` where it is `learned` lately."""
        self.right, self.since = _MEMORY * self.right + (1 - _MEMORY) * right, self.since + 1
        if self.right > learned and self.since > _AT_LEAST and self.longest < most:
            self.longest, self.since, self.right = min(most, self.longest + _LONGER), 0, learned - 0.05


class FreshBatches(Dataset[dict[str, Tensor]]):
    """The training batches of a run by step: each a pure function of the seed, the step and the longest text."""

    def __init__(self, run: Run, growth: Growth) -> None:
        self.run, self.growth = run, growth

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        run = self.run
        batch = fresh_batch(
            run.task,
            run.layout,
            seed=run.seed,
            step=step,
            batch_size=run.batch_size,
            max_length=self.growth.longest,
            partial_results=run.partial_results,
        )
        if run.model in STACKS and run.stack_texts:
            longest = fresh_batch(
                run.task,
                run.layout,
                seed=run.seed + _STRUCTURE,
                step=step,
                batch_size=run.stack_texts,
                max_length=run.max_train_length,
            )
            batch["structure"] = longest["input_ids"]
        return without_empty_mask(batch)


class Taught(nn.Module):
    """A model with the loss of all lessons: that of the answer, as large a part for all partial results together,
    and those of its stacks (`balance`, `least_push`).

    Args:
        model: that is taught.
        run: how it is trained.
        growth: sees the share of right answers of every step.
        ids: of the user's tokens; by default the task's.
        most: symbols of the longest text.
    """

    def __init__(
        self, model: nn.Module, run: Run, growth: Growth, ids: dict[str, int] | None = None, most: int | None = None
    ) -> None:
        super().__init__()
        self.model, self.run, self.growth, self.most = model, run, growth, most or run.max_train_length
        # Of the text for the losses of the stacks.
        self.end = (ids or vocabulary(run.task)).get(run.balance_ends)

    def forward(self, input_ids: Tensor, labels: Tensor, structure: Tensor | None = None, **batch: Any) -> Any:
        """The model's output with that loss.

        Args:
            input_ids: [batch, N].
            labels: [batch, N].
            structure: texts without labels, for the losses of the stacks, [texts, M]; without them, `input_ids` are.
            batch: other arguments of the model.
        """
        run = self.run
        has_stack = run.model in STACKS and bool(run.balance or run.least_push or run.entropy)
        if has_stack and structure is None:
            batch["output_stack_attentions"] = True
        output = self.model(input_ids=input_ids, **batch)
        logits, asked = output.logits, ~_text(input_ids) & (input_ids != _SEP)  # where the answer stands or is said
        if run.layout == "alm":
            logits, labels, asked = logits[:, :-1], labels[:, 1:], asked[:, 1:]
        answers = asked & (labels >= 0)
        output.loss = cross_entropy(logits[answers], labels[answers])
        if run.partial_results and bool((between := ~asked & (labels >= 0)).any()):
            output.loss = output.loss + cross_entropy(logits[between], labels[between])
        if has_stack:
            output.loss = output.loss + self._of_stacks(output, input_ids, structure)
        right = float((logits.argmax(-1) == labels)[answers].float().mean())
        self.growth.see(right, self.most, run.grow_at)
        return output

    def _of_stacks(self, output: Any, input_ids: Tensor, structure: Tensor | None) -> Tensor:
        run, ids = self.run, input_ids
        if structure is not None:
            ids, output = structure, self.model(input_ids=structure, output_stack_attentions=True)
        text = _text(ids)
        if self.end is not None:
            text = text & ((ids == self.end).cumsum(1) == 0)
        loss = _PUSHES * push_loss(output.stack_actions, text, run.least_push)
        if run.balance:
            loss = loss + run.balance * balance_loss(output.stack_attentions, output.stack_actions, text)
        if run.entropy and self.growth.right > run.grow_at:  # before, it would keep the first actions, right or wrong
            everywhere = (ids != _BOS) & (ids != _PAD)
            loss = loss + run.entropy * entropy_loss(output.stack_actions, everywhere)
        return loss


def _text(input_ids: Tensor) -> Tensor:
    """Where the symbols of the task's input stand, [batch, N]."""
    ends = (input_ids == _SEP) | (input_ids == _MASK)
    return (ends.cumsum(1) == 0) & (input_ids != _BOS) & (input_ids != _PAD)


def without_empty_mask(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The batch without an attention mask that hides nothing: attention without one is faster."""
    return {name: tensor for name, tensor in batch.items() if name != "attention_mask" or not bool(tensor.all())}
