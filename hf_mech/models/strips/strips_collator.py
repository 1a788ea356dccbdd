"""Traces of actions with objects as tensors: their encoding, and a collator that pads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from .configuration_strips import StripsTransformerConfig
from .strips_domain import StripsError
from .strips_lifted import parse_action


def encode_trace(config: StripsTransformerConfig, trace: Sequence[Any]) -> dict[str, Any]:
    """A trace of a lifted model as ids; for `Dataset.map(lambda row: encode_trace(config, row["actions"]))`.

    Args:
        config: a lifted configuration.
        trace: ground actions, as `parse_action` takes them: `"stack b1 b2"`, `"stack(b1,b2)"`, `["stack", "b1", "b2"]`.

    Returns:
        `input_ids`: the actions, [length]; `objects`: the objects of each action, [length, places], numbered by their
        first place in the trace, -1 where an action has none.

    Raises:
        StripsError: the configuration is propositional; an unknown action, or one with too few or too many objects.

    Example:

    ```python
    >>> from hf_mech.models.strips import StripsTransformerConfig, encode_trace

    >>> config = StripsTransformerConfig(
    ...     parameters={"stack": ["block", "block"], "drop": ["block"]}, predicates={"on": ["block", "block"]}
    ... )
    >>> encode_trace(config, ["stack b7 b2", "drop b2"])
    {'input_ids': [0, 1], 'objects': [[0, 1], [1, -1]]}

    ```
    """
    return encode_with_names(config, trace)[0]


def encode_with_names(config: StripsTransformerConfig, trace: Sequence[Any]) -> tuple[dict[str, Any], list[str]]:
    """The trace as `encode_trace` gives it, and the names of its objects by their numbers. Raises the same."""
    if not config.lifted:
        raise StripsError("encode_trace is for lifted models; a propositional one takes its actions' indices.")
    indices = {name: index for index, name in enumerate(config.actions or ())}
    parameters = config.parameters or {}
    places = max(map(len, parameters.values()))
    numbers: dict[str, int] = {}
    ids, objects = [], []
    for position, given in enumerate(trace):
        action = parse_action(given, position)
        types = parameters.get(action.name)
        if types is None or len(types) != len(action.objects):
            wanted = f"the model knows {', '.join(parameters)}"
            if types is not None:
                wanted = f"it takes {len(types)} objects, {action.name}({','.join(types)})"
            raise StripsError(f"Action {str(action)!r} at position {position}: {wanted}.")
        ids.append(indices[action.name])
        own = [numbers.setdefault(name, len(numbers)) for name in action.objects]
        objects.append(own + [-1] * (places - len(own)))
    return {"input_ids": ids, "objects": objects}, list(numbers)


class StripsDataCollator:
    """Pads traces to one length, those of lifted models with their objects; for Trainer and DataLoader.

    Each row has `input_ids` [length], of a lifted model `objects` [length, places] (`encode_trace` makes both), and may
    have `labels` and `failed`, [length]. Other columns are left out.

    Args:
        config: of the model.
        padding_side: where shorter rows are padded.

    Raises:
        StripsError: a row without `input_ids`, or with columns of different lengths.
    """

    def __init__(self, config: StripsTransformerConfig, padding_side: Literal["left", "right"] = "right"):
        self.padding: dict[str, Any] = {"input_ids": config.pad_token_id, "objects": -1, "labels": -100, "failed": 0}
        self.places = max(map(len, (config.parameters or {"": []}).values()))
        self.padding_side = padding_side

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """The batch: every column [rows, longest], `objects` [rows, longest, places], and `attention_mask`."""
        if not rows or "input_ids" not in rows[0]:
            raise StripsError(f"A row needs input_ids, got {sorted(rows[0]) if rows else 'no rows'}; see encode_trace.")
        lengths = [len(row["input_ids"]) for row in rows]
        longest = max(lengths)
        spans = [(longest - n, longest) if self.padding_side == "left" else (0, n) for n in lengths]
        batch = {"attention_mask": torch.zeros(len(rows), longest, dtype=torch.long)}
        for number, (start, end) in enumerate(spans):
            batch["attention_mask"][number, start:end] = 1
        for name, value in self.padding.items():
            if name not in rows[0]:
                continue
            shape = (len(rows), longest, self.places) if name == "objects" else (len(rows), longest)
            batch[name] = torch.full(shape, value)
            for number, (start, end) in enumerate(spans):
                own = torch.as_tensor(rows[number][name]).long()
                if own.shape != (end - start, *shape[2:]):
                    raise StripsError(
                        f"Row {number}: {name} must have the shape {[end - start, *shape[2:]]}, got {list(own.shape)}."
                    )
                batch[name][number, start:end] = own
        return batch
