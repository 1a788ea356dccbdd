"""transformers' outputs with the stacks, the stack's arguments of its forward methods, and losses on the stacks."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, get_args

import torch
from torch import Tensor
from transformers.utils import ModelOutput

from .configuration_stack import StackError

_made: dict[type[ModelOutput], type[ModelOutput]] = {}


def with_stacks(kind: type[ModelOutput]) -> type[ModelOutput]:
    """The class of outputs with `stack_attentions`, one [batch, new, length] for each layer with a stack, and
    `stack_actions`, one [batch, new, 2 + K] each, from transformers' class.
    """
    if kind not in _made:
        more: dict[str, Any] = {"stack_attentions": None, "stack_actions": None}
        kinds = dict.fromkeys(more, "tuple[Tensor, ...] | None")
        names = {"__annotations__": kinds, "__module__": __name__, "__reduce__": _as_arguments}
        _made[kind] = dataclass(type(f"Stack{kind.__name__}", (kind,), {**more, **names}))
    return _made[kind]


def _make_those_of(forward: Callable[..., Any]) -> None:
    """Makes the classes of a forward method's outputs, which `torch.compile` could not, from its annotation."""
    with contextlib.suppress(NameError):  # of a name that only type checkers know
        said = inspect.signature(forward, eval_str=True).return_annotation
        for kind in (said, *get_args(said)):
            if isinstance(kind, type) and issubclass(kind, ModelOutput):
                with_stacks(kind)


def _as_arguments(outputs: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """For pickle, which finds no class by its name that is made on demand."""
    return _from_arguments, (type(outputs).__bases__[0], *(getattr(outputs, field.name) for field in fields(outputs)))


def _from_arguments(kind: type[ModelOutput], *values: Any) -> ModelOutput:
    return with_stacks(kind)(*values)


#: The stack's arguments of a forward method, and those that a head passes to its base model.
STACK_ARGUMENTS = ("stack_operations", "output_stack_attentions")
_OF_HEADS = ("stack_record", "stack_of_rows")


def returns_stacks(*, of_rows: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a forward method the stack's arguments, and its outputs fields for the stacks.

    `stack_operations` is passed down with the other keyword arguments. So is the list `stack_record`, if
    `output_stack_attentions` is set; the stack sub-layers append to it. So is `stack_of_rows`, if `of_rows` says that
    the outputs are one answer for every row: the models then refuse several sequences in a row.
    """

    def decorate(forward: Callable[..., Any]) -> Callable[..., Any]:
        _make_those_of(forward)

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
            if of_rows and self.config.use_stack:
                kwargs["stack_of_rows"] = True
            if "stack_record" in kwargs:
                kwargs["output_stack_attentions"] = False  # for the inner models, which pass the record down
            outputs = forward(self, *args, return_dict=True, **kwargs)
            alphas, actions = zip(*record, strict=True) if record else (None, None)
            outputs = with_stacks(type(outputs))(**outputs, stack_attentions=alphas, stack_actions=actions)
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


# ------------------------------------------------------------------------------------------ losses on the stacks
#
# Losses without labels that teach a stack to be used: structural priors, for texts that are known to have structure.
# They say nothing about which symbols push and which pop.

_PUSH, _POP = 0, 1
_SURPLUS = 2.0


def balance_loss(stack_attentions: Sequence[Tensor], stack_actions: Sequence[Tensor], text: Tensor) -> Tensor:
    """How far each layer's stack is from balanced nesting over a text: it ends empty and is never popped when empty.

    A stack that does nothing is balanced, too; see [`push_loss`].

    Args:
        stack_attentions: of a model with `output_stack_attentions=True`, each [batch, N, N].
        stack_actions: the same, each [batch, N, 2 + K].
        text: True at the positions of the balanced text, [batch, N]; each row has at least one. The position before the
            first is the empty stack, so that none is at the first column.

    Returns:
        A number from 0 on, summed over the layers and averaged over the rows: the probability that the stack is not
        empty after the text; the mean probability that a position of the text pops the empty stack; and twice the
        difference between the shares of pushes and pops, a pop of k counted k times, which says how far from empty a
        stack is that is surely not.

    Raises:
        StackError: a text of another shape or type, without a position, or that begins at the first column.
    """
    _check(text, stack_actions)
    if bool(text[:, 0].any()):
        raise StackError("A balanced text begins behind the empty stack: text must be False at the first position.")
    places = torch.arange(text.shape[1], device=text.device)
    bottom = text.int().argmax(1) - 1
    last = torch.where(text, places, -1).amax(1)
    rows = torch.arange(len(text), device=text.device)
    total = torch.zeros((), device=text.device)
    for alpha, actions in zip(stack_attentions, stack_actions, strict=True):
        empty = alpha.gather(2, bottom[:, None, None].expand(-1, alpha.shape[1], 1))[..., 0]  # [batch, N]
        popped = actions[:, 1:, _POP:-1].sum(-1) * empty[:, :-1] * text[:, 1:]
        pops = actions[..., _POP:-1] @ torch.arange(1.0, actions.shape[-1] - 1, device=text.device).to(actions)
        surplus = ((actions[..., _PUSH] - pops) * text).sum(1).abs()
        total = total + (1 - empty[rows, last]).mean() + ((popped.sum(1) + _SURPLUS * surplus) / text.sum(1)).mean()
    return total


def push_loss(stack_actions: Sequence[Tensor], text: Tensor, least: float) -> Tensor:
    """The share of pushes that each layer's actions lack: the sum over the layers of max(0, least - share).

    Args:
        stack_actions: of a model with `output_stack_attentions=True`, each [batch, N, 2 + K].
        text: True at the positions that count, [batch, N].
        least: the share of pushes that is enough, 0 to 1.

    Raises:
        StackError: a text of another shape or type, or without a position; a share out of its range.
    """
    _check(text, stack_actions)
    if not 0 <= least <= 1:
        raise StackError(f"least is a share of the positions, 0 to 1, got {least}.")
    shares = [(actions[..., _PUSH] * text).sum() / text.sum() for actions in stack_actions]
    return torch.stack([(least - share).clamp(min=0) for share in shares]).sum()


def entropy_loss(stack_actions: Sequence[Tensor], text: Tensor) -> Tensor:
    """The mean entropy of each layer's actions, in nats, summed over the layers: 0 if every operation is certain.

    An almost certain action is right on the trained lengths, and its errors add up on longer texts.

    Args:
        stack_actions: of a model with `output_stack_attentions=True`, each [batch, N, 2 + K].
        text: True at the positions that count, [batch, N].

    Raises:
        StackError: a text of another shape or type, or without a position.
    """
    _check(text, stack_actions)
    smallest = torch.finfo(stack_actions[0].dtype).tiny  # the logarithm of 0 has no gradient
    logs = [(actions * actions.clamp(min=smallest).log()).sum(-1) for actions in stack_actions]
    return -torch.stack([log[text].mean() for log in logs]).sum()


def _check(text: Tensor, stack_actions: Sequence[Tensor]) -> None:
    if not len(stack_actions):
        raise StackError("There are no actions; ask a model with a stack for them, with output_stack_attentions=True.")
    shape = list(stack_actions[0].shape[:2])
    if text.dtype != torch.bool or list(text.shape) != shape:
        raise StackError(f"text must be boolean and {shape}, as the actions; got {text.dtype}, {list(text.shape)}.")
    if not bool(text.any(1).all()):
        raise StackError("Each row of text needs a position that is True.")
