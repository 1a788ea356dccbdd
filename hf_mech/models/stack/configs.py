# Copied from hf_mech/models/configs.py by `make format`; edit it there.
"""Configurations that refuse wrong types and values by the family's own error, however they are given."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from math import isfinite
from reprlib import repr as shortened
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from huggingface_hub.errors import StrictDataclassError, StrictDataclassFieldValidationError
from transformers.configuration_utils import PreTrainedConfig
from transformers.utils import logging

logger = logging.get_logger(__name__)

Config = TypeVar("Config", bound=PreTrainedConfig)
Range = tuple[float, float]

#: The exceptions that transformers' own code raises for JSON of another shape.
MALFORMED = (
    StrictDataclassError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
INT64 = (-(2**63), 2**63 - 1)
LABELS = (0, 100_000)  # transformers makes a name for each label


def strict_config(error: type[ValueError], **ranges: Range) -> Callable[[type[Config]], type[Config]]:
    """`huggingface_hub.dataclasses.strict` for a configuration, with the family's errors and with ranges.

    A value of a wrong type, outside its range, or not finite is refused when the configuration is made (by its
    constructor, `from_dict`, `from_pretrained` or `AutoConfig`) and when an attribute is set later, under any of the
    attribute's names. Whatever else transformers raises for a malformed configuration becomes the same error. An
    argument that is nearly a field's name is warned of. Numbers and arrays of numpy become Python's own.

    Args:
        error: the family's error; subclasses of it that `validate_architecture` raises are kept.
        ranges: for every size, the least and the largest value. The largest keeps a small file from making a large
            object, so each size that allocates in the configuration itself needs one. `num_labels` has one already.

    Example:

    ```python
    >>> @strict_config(ValueError, layers=(1, 1000))
    ... class LayersConfig(PreTrainedConfig):
    ...     layers: int = 2

    >>> LayersConfig(layers="two")
    Traceback (most recent call last):
    ...
    ValueError: LayersConfig: layers must be int, got 'two'.
    >>> LayersConfig().layers = 10**9
    Traceback (most recent call last):
    ...
    ValueError: LayersConfig: layers must be at most 1000, got 1000000000.

    ```
    """

    def decorate(cls: type[Config]) -> type[Config]:
        # `from __future__ import annotations` makes the types strings, and `strict` checks no type that is a string.
        # transformers' own fields are such fields; the copies leave its other configurations as they are.
        hints = get_type_hints(cls, localns={"torch": torch})
        for field in map(copy.copy, fields(cls)):
            field.type = hints[field.name]
            cls.__dataclass_fields__[field.name] = field
        types = {field.name: field.type for field in fields(cls)}
        unknown = ranges.keys() - types.keys()
        if unknown:
            raise TypeError(f"{cls.__name__} has no fields {sorted(unknown)} to give a range.")
        bounds = {"num_labels": LABELS, **ranges}
        made: Any = strict(cls)
        strict_init, strict_setattr = made.__init__, made.__setattr__

        @wraps(strict_init)
        def checked_init(self: Any, *args: Any, **kwargs: Any) -> None:
            with _as(error, cls.__name__):
                strict_init(self, *args, **kwargs)
            known = [*types, *self.attribute_map]
            _warn_of_misspelt(cls.__name__, [name for name in kwargs if not hasattr(cls, name)], known)

        def checked_setattr(self: Any, name: str, value: Any) -> None:
            name = self.attribute_map.get(name, name)  # else `strict` would not see the field
            value = _plain(value) if name in types else value
            if fault := _fault(name, value, types, bounds):
                raise error(f"{cls.__name__}: {name} {fault}, got {shortened(value)}.")
            with _as(error, cls.__name__):
                try:
                    strict_setattr(self, name, value)
                except StrictDataclassFieldValidationError as wrong:
                    wanted = _text(types[name])
                    raise error(f"{cls.__name__}: {name} must be {wanted}, got {shortened(value)}.") from wrong

        made.__init__, made.__setattr__ = checked_init, checked_setattr
        made._config_error = error
        return made

    return decorate


def _warn_of_misspelt(config: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Names arguments that are nearly a field's: transformers keeps any other argument as an attribute."""
    for name in given:
        if name not in known and (close := get_close_matches(name, known, 1, cutoff=0.85)):
            logger.warning(f"{config} has no argument {name!r}, which changes nothing; did you mean {close[0]!r}?")


def _plain(value: Any) -> Any:
    """The value with numpy's numbers and arrays as Python's: a gymnasium space has its sizes as an array."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if type(value) in (list, tuple) and any(isinstance(part, np.generic) for part in value):
        return type(value)(map(_plain, value))
    return value


def _fault(name: str, value: Any, types: Mapping[str, Any], ranges: Mapping[str, Range]) -> str | None:
    """Why the value cannot be the field's; None for a value of a type that only `strict` refuses."""
    if name == "num_labels" and type(value) is not int:  # a property of transformers, no field
        return "must be int"
    kind = types.get(name, int)
    numbers = {int, float} & {kind, *get_args(kind)}
    if not (name in types or name in ranges) or type(value) not in numbers:
        return None  # no field, no number, or refused by `strict`
    if isinstance(value, float) and not isfinite(value):
        return "must be finite"
    least, most = ranges.get(name, INT64 if isinstance(value, int) else (value, value))
    if least <= value <= most:
        return None
    return f"must be at least {least}" if value < least else f"must be at most {most}"


@contextmanager
def _as(error: type[ValueError], where: str) -> Iterator[None]:
    """Turns what the block raises into `error`; an `error` that something else wraps comes out as it was."""
    try:
        yield
    except error:
        raise
    except MALFORMED as wrong:
        cause: BaseException | None = wrong
        while cause is not None:
            if isinstance(cause, error):
                raise cause from None
            deepest, cause = cause, cause.__cause__
        kind = "" if isinstance(deepest, ValueError) else f"{type(deepest).__name__}: "
        raise error(f"{where}: {kind}{str(deepest).rstrip('.')}.") from wrong


def _text(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
