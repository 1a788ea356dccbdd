"""What a family tells the contract suite about one of its models, and what the suite reads off the model's class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.pytorch_utils import Conv1D
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils.generic import find_labels

from .batches import Batch, pad

LORA_LAYERS = (nn.Linear, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.Conv3d, Conv1D)


@dataclass(frozen=True)
class Formula:
    """A fast function and the plain one that follows the paper; `arguments(seed)` are random ones for both.

    Floating-point arguments are float64 and get gradients.
    """

    name: str
    fast: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class ContractCase:
    """One registered model as the contract suite sees it. The configuration is tiny and without dropout.

    Args:
        model_class: the model.
        config: makes a new tiny configuration.
        inputs: `inputs(batch, length, seed)` are forward's keyword arguments, every tensor [batch, length, ...] or
            [batch] and unpadded, with an attention mask if the model takes one, and with labels that can be learned if
            it has any.
        padding: the value of padding in each of them.
        length_dim: the dimension of length in the inputs; 2 if they are [batch, choices, length, ...].
        tokens_per_position: how many tokens the model makes of a position; attentions are between tokens.
        columns: the inputs that hold numbers of positions, as the labels of question answering do.
        position_outputs: the output's fields that are [batch, length, ...].
        row_outputs: the output's fields that are [batch, ...], one for a whole row.
        learning_rate: AdamW's, with which 30 steps on 16 examples lower the loss by a tenth at least.
        eager_dtype: the type in which eager attention is compared with sdpa: float32 where the stock model's eager
            softmax is always in float32, so that in float64 rows of padding become NaN.
        compile_dtype: the type in which the compiled model is compared: float64 where float32's own rounding, of large
            gradients, is more than the bounds.
        bf16_tolerance: how far the outputs in bfloat16 may be from those in float32, absolutely.
        stream: `stream(model, inputs)` reads the inputs one position after the other and returns the position outputs
            that it streams, by name; None if the model cannot.
        formulas: each fast function of the family with its reference.
        no_gradient: for every parameter on which the loss does not depend, the reason. Checked, not believed.
        refuses_partial: the error that a checkpoint lacking a weight raises; None if such weights are drawn anew.
        processing: makes a configuration and a tokenizer that fit together, the tokenizer as users have it. None if
            transformers has no pipeline for the model.
        texts: what a user would give to such a pipeline, of different lengths.
        refused_tasks: for every pipeline of its Auto class that cannot serve this configuration, the reason. Checked,
            not believed.
        first_position: the position id of a sequence's first token.
        lacks: for every capability that the model does not have, the reason. Checked, not believed.
        variant: what the configuration sets that another case of the model does not.
    """

    model_class: type[PreTrainedModel]
    config: Callable[[], PreTrainedConfig]
    inputs: Callable[[int, int, int], Batch]
    padding: Mapping[str, float]
    position_outputs: tuple[str, ...]
    row_outputs: tuple[str, ...] = ()
    length_dim: int = 1
    tokens_per_position: int = 1
    columns: tuple[str, ...] = ()
    learning_rate: float = 1e-2
    eager_dtype: torch.dtype = torch.float64
    compile_dtype: torch.dtype = torch.float32
    bf16_tolerance: float = 0.05
    stream: Callable[[Any, Batch], Mapping[str, Tensor]] | None = None
    formulas: tuple[Formula, ...] = ()
    no_gradient: Mapping[str, str] = field(default_factory=dict)
    refuses_partial: type[Exception] | None = None
    processing: Callable[[], tuple[PreTrainedConfig, PreTrainedTokenizerBase]] | None = None
    texts: tuple[str, ...] = ()
    refused_tasks: Mapping[str, str] = field(default_factory=dict)
    first_position: int = 0
    lacks: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.model_class.__name__, self.variant)))

    @property
    def outputs(self) -> tuple[str, ...]:
        """All the output's fields that the suite compares."""
        return self.position_outputs + self.row_outputs

    def model(self, seed: int = 0, **config: Any) -> PreTrainedModel:
        """A model with weights drawn from the seed, ready for inference."""
        torch.manual_seed(seed)
        made = self.config()
        for key, value in config.items():
            setattr(made, key, value)
        return self.model_class(made).eval()

    def eager_model(self) -> PreTrainedModel:
        """With the plain form of attention, which also returns its weights."""
        return self.model(_attn_implementation="eager") if self.has("sdpa") else self.model()

    @property
    def stock(self) -> type[PreTrainedModel] | None:
        """The model of transformers that this one extends, if any."""
        bases = self.model_class.__mro__[1:]
        return next((base for base in bases if base.__module__.startswith("transformers.models.")), None)

    @property
    def arguments(self) -> Mapping[str, inspect.Parameter]:
        """The arguments of forward."""
        return inspect.signature(self.model_class.forward).parameters

    def questions(self, batch: int, length: int, seed: int) -> Batch:
        """The inputs without the labels."""
        return self.without_labels(self.inputs(batch, length, seed))

    def without_labels(self, batch: Batch) -> Batch:
        labels = find_labels(self.model_class)
        return {name: tensor for name, tensor in batch.items() if name not in labels}

    def pad(self, batch: Batch, amount: int, side: Literal["left", "right"]) -> Batch:
        """The batch with `amount` more positions of padding."""
        return pad(batch, amount, side, self.padding, self.length_dim, self.columns)

    def sequences(self) -> list[Batch]:
        """Three sequences of different lengths, without padding and hence without a mask, with position ids."""
        batches = [self.questions(1, length, seed) for seed, length in enumerate((5, 3, 7))]
        for batch in batches:
            batch.pop("attention_mask", None)
            shape = batch[self.model_class.main_input_name].shape[: self.length_dim + 1]
            batch["position_ids"] = (torch.arange(shape[-1]) + self.first_position).expand(shape)
        return batches

    def packed(self, sequences: list[Batch]) -> Batch:
        """The sequences in one row; each begins where the position ids begin anew."""
        return {
            name: torch.cat([batch[name] for batch in sequences], self.length_dim)
            for name, tensor in sequences[0].items()
            if tensor.dim() > self.length_dim
        }

    def has(self, capability: str) -> bool:
        return _has(self, capability)


def _same(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@cache
def _has(case: ContractCase, capability: str) -> bool:
    return CAPABILITIES[capability](case)


@cache
def _answers(case: ContractCase, argument: str) -> bool:
    """Whether forward takes an argument; a model that does not take it refuses it by name."""
    try:
        with torch.no_grad():
            case.eager_model()(**case.questions(2, 5, 0), **{argument: True})
    except (TypeError, ValueError) as refusal:
        if argument not in str(refusal):
            raise
        return False
    return True


@cache
def _packs(case: ContractCase) -> bool:
    """Whether forward takes several sequences in one row."""
    try:
        with torch.no_grad():
            case.model()(**case.packed(case.sequences()))
    except (TypeError, ValueError):
        return False
    return True


CAPABILITIES: dict[str, Callable[[ContractCase], bool]] = {
    "loss": lambda case: bool(find_labels(case.model_class)),
    "generation": lambda case: case.model_class.can_generate(),
    "sdpa": lambda case: case.model_class._supports_sdpa,
    "checkpointing": lambda case: case.model_class.supports_gradient_checkpointing,
    "lora": lambda case: any(isinstance(module, LORA_LAYERS) for module in case.model().modules()),
    "stream": lambda case: case.stream is not None,
    "formulas": lambda case: bool(case.formulas),
    "partial_checkpoints": lambda case: case.refuses_partial is None,
    "pipeline": lambda case: case.processing is not None,
    "packing": lambda case: _packs(case),
    "export": lambda case: "export" not in case.lacks,  # an export takes long: its test checks what the case says
    "output_embeddings": lambda case: (
        not case.model_class.can_generate() or case.model().get_output_embeddings() is not None
    ),
    "hidden_states": lambda case: _answers(case, "output_hidden_states"),
    "attentions": lambda case: _answers(case, "output_attentions"),
    "random_weights": lambda case: not _same(case.model(seed=1), case.model(seed=2)),
}
