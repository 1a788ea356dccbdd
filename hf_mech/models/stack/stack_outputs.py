"""transformers' outputs with the stacks, and decorators that add the stack's arguments to its forward methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers.modeling_outputs import (
    BaseModelOutputWithPastAndCrossAttentions,
    BaseModelOutputWithPoolingAndCrossAttentions,
    CausalLMOutputWithCrossAttentions,
    MaskedLMOutput,
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutputWithPast,
    TokenClassifierOutput,
)
from transformers.utils import ModelOutput


@dataclass
class StackModelOutput(BaseModelOutputWithPastAndCrossAttentions):
    """With `stack_attentions`, one [batch, new, length] a layer, and `stack_actions`, one [batch, new, 2 + K]."""

    stack_attentions: tuple[Tensor, ...] | None = None
    stack_actions: tuple[Tensor, ...] | None = None


@dataclass
class StackModelOutputWithPooling(BaseModelOutputWithPoolingAndCrossAttentions):
    """With `stack_attentions`, one [batch, new, length] a layer, and `stack_actions`, one [batch, new, 2 + K]."""

    stack_attentions: tuple[Tensor, ...] | None = None
    stack_actions: tuple[Tensor, ...] | None = None


@dataclass
class StackCausalLMOutput(CausalLMOutputWithCrossAttentions):
    """With `stack_attentions`, one [batch, new, length] a layer, and `stack_actions`, one [batch, new, 2 + K]."""

    stack_attentions: tuple[Tensor, ...] | None = None
    stack_actions: tuple[Tensor, ...] | None = None


@dataclass
class StackMaskedLMOutput(MaskedLMOutput):
    """With `stack_attentions`, one [batch, length, length] a layer, and `stack_actions`, one [batch, length, 2 + K]."""

    stack_attentions: tuple[Tensor, ...] | None = None
    stack_actions: tuple[Tensor, ...] | None = None


@dataclass
class StackSequenceClassifierOutput(SequenceClassifierOutputWithPast):
    """With `stack_attentions`, one [batch, length, length] a layer, and `stack_actions`, one [batch, length, 2 + K]."""

    of_rows: ClassVar[bool] = True  # one answer for every row: several sequences in a row are refused

    stack_attentions: tuple[Tensor, ...] | None = None
    stack_actions: tuple[Tensor, ...] | None = None


@dataclass
class StackTokenClassifierOutput(TokenClassifierOutput):
    """With `stack_attentions`, one [batch, length, length] a layer, and `stack_actions`, one [batch, length, 2 + K]."""

    stack_attentions: tuple[Tensor, ...] | None = None
    stack_actions: tuple[Tensor, ...] | None = None


@dataclass
class StackQuestionAnsweringOutput(QuestionAnsweringModelOutput):
    """With `stack_attentions`, one [batch, length, length] a layer, and `stack_actions`, one [batch, length, 2 + K]."""

    of_rows: ClassVar[bool] = True  # one answer for every row: several sequences in a row are refused

    stack_attentions: tuple[Tensor, ...] | None = None
    stack_actions: tuple[Tensor, ...] | None = None


@dataclass
class StackMultipleChoiceOutput(MultipleChoiceModelOutput):
    """With `stack_attentions` and `stack_actions`, one a layer, [batch * choices, length, length] and [..., 2 + K]."""

    of_rows: ClassVar[bool] = True  # one answer for every row: several sequences in a row are refused

    stack_attentions: tuple[Tensor, ...] | None = None
    stack_actions: tuple[Tensor, ...] | None = None


#: The stack's arguments of a forward method, and those that a head passes to its base model.
STACK_ARGUMENTS = ("stack_operations", "output_stack_attentions")
_OF_HEADS = ("stack_record", "stack_of_rows")


def returns_stacks(output_class: type[ModelOutput]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a forward method the stack's arguments and an output class with fields for the stacks.

    `stack_operations` is passed down with the other keyword arguments. So is the list `stack_record`, if
    `output_stack_attentions` is set; the stack sub-layers append to it. So is `stack_of_rows`, if the output class has
    a true `of_rows`: the models then refuse several sequences in a row.
    """

    def decorate(forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        def wrapper(
            self: Any,
            *args: Any,
            output_stack_attentions: bool | None = None,
            return_dict: bool | None = None,
            **kwargs: Any,
        ) -> Any:
            if unknown := [name for name in kwargs if "stack" in name and name not in STACK_ARGUMENTS + _OF_HEADS]:
                known = " and ".join(STACK_ARGUMENTS)
                raise TypeError(f"{type(self).__name__} has no argument {unknown[0]!r}; the stack's are {known}.")
            wanted = self.config.output_stack_attentions if output_stack_attentions is None else output_stack_attentions
            record: list[tuple[Tensor, Tensor]] = []
            if wanted:
                kwargs["stack_record"] = record
            if getattr(output_class, "of_rows", False) and self.config.use_stack:
                kwargs["stack_of_rows"] = True
            if "stack_record" in kwargs:
                kwargs["output_stack_attentions"] = False  # for the inner models, which pass the record down
            outputs = forward(self, *args, return_dict=True, **kwargs)
            alphas, actions = zip(*record, strict=True) if record else (None, None)
            outputs = output_class(**outputs, stack_attentions=alphas, stack_actions=actions)
            return outputs if (self.config.return_dict if return_dict is None else return_dict) else outputs.to_tuple()

        wrapper.__signature__ = _with_stack_arguments(inspect.signature(forward))  # type: ignore[attr-defined]
        return wrapper

    return decorate


def _with_stack_arguments(signature: inspect.Signature) -> inspect.Signature:
    """The signature with the stack's arguments: Trainer keeps the columns of a data set that are in it."""
    known = signature.parameters
    new = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in (("stack_operations", "Tensor | None"), ("output_stack_attentions", "bool | None"))
        if name not in known
    ]
    *others, last = known.values()  # the last one is **kwargs
    return signature.replace(parameters=[*others, *new, last])


def counts_items(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a head's loss honour `num_items_in_batch`, so that Trainer accumulates gradients exactly.

    The loss functions of transformers do so; RoBERTa's masked LM and GPT-2's token classification head compute a mean
    of their own. Apply it under [`returns_stacks`].
    """

    @functools.wraps(forward)
    def wrapper(self: Any, *args: Any, labels: Tensor | None = None, **kwargs: Any) -> Any:
        items = kwargs.pop("num_items_in_batch", None)
        outputs = forward(self, *args, **kwargs)
        if labels is not None:
            outputs.loss = self.loss_function(
                outputs.logits,
                labels.to(outputs.logits.device),
                vocab_size=self.config.vocab_size,
                config=self.config,
                num_items_in_batch=items,
            )
        return outputs

    return wrapper


def ignores_padding(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a question answering loss ignore the logits of padding, if the model has stacks.

    transformers' own loss lets every column compete for start and end, so that a row's loss depends on its padding.
    The logits are returned as they are. Apply it under [`returns_stacks`].
    """

    @functools.wraps(forward)
    def wrapper(
        self: Any,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,  # [batch, length]
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        start_positions: Tensor | None = None,  # [batch], columns; outside [0, length): ignored
        end_positions: Tensor | None = None,  # [batch]
        **kwargs: Any,
    ) -> Any:
        outputs = forward(self, input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, **kwargs)
        if start_positions is not None and end_positions is not None:
            logits = [outputs.start_logits, outputs.end_logits]
            if self.config.use_stack and attention_mask is not None and attention_mask.dim() == 2:
                lowest = torch.finfo(logits[0].dtype).min
                logits = [values.masked_fill(attention_mask == 0, lowest) for values in logits]
            outputs.loss = self.loss_function(*logits, start_positions, end_positions)
        return outputs

    return wrapper
