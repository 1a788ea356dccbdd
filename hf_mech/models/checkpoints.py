"""Configurations and checkpoints of every family: wrong ones are refused in words, saved ones carry their code.

Every family's folder has a `checkpoints.py` that imports from this file. A checkpoint must load where hf_mech is not
installed, so `save_pretrained` puts this file in the place of that one.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from math import isfinite
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from huggingface_hub.errors import StrictDataclassError, StrictDataclassFieldValidationError
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers.configuration_utils import PreTrainedConfig
from transformers.dynamic_module_utils import custom_object_save
from transformers.models.auto import modeling_auto
from transformers.utils import logging

logger = logging.get_logger(__name__)

Config = TypeVar("Config", bound=PreTrainedConfig)
Range = tuple[float, float]

INT64 = (-(2**63), 2**63 - 1)

# ----------------------------------------------------------------------------------------------------------------------
# Configurations


def strict_config(error: type[ValueError], **ranges: Range) -> Callable[[type[Config]], type[Config]]:
    """`huggingface_hub.dataclasses.strict` for a configuration, with the family's error and with ranges.

    A value of a wrong type, outside its range, or not finite is refused when the configuration is made (by its
    constructor, `from_dict`, `from_pretrained` or `AutoConfig`) and when an attribute is set later, under any of the
    attribute's names. An argument that is nearly a field's name is warned of. Numbers and arrays of numpy become
    Python's own.

    Args:
        error: the family's error, which `validate_architecture` may raise too.
        ranges: for every size, the least and the largest value.

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
        if unknown := ranges.keys() - types.keys():
            raise TypeError(f"{cls.__name__} has no fields {sorted(unknown)} to give a range.")
        made: Any = strict(cls)
        strict_init, strict_setattr, save_pretrained = made.__init__, made.__setattr__, made.save_pretrained

        @wraps(strict_init)
        def checked_init(self: Any, *args: Any, **kwargs: Any) -> None:
            # `pipeline()` runs the checkpoint's code for every task that the configuration names, and asks for trust.
            # Here the package serves its own tasks, as the Auto classes take its models.
            named = kwargs.pop("custom_pipelines", None) or {}
            if others := {task: entry for task, entry in named.items() if task not in made._served_tasks}:
                kwargs["custom_pipelines"] = others
            try:
                strict_init(self, *args, **kwargs)
            except StrictDataclassError as wrong:  # around an error of `validate_architecture`
                if isinstance(wrong.__cause__, error):
                    raise wrong.__cause__ from None
                raise error(f"{cls.__name__}: {str(wrong).rstrip('.')}.") from wrong
            known = [*types, *self.attribute_map]
            _warn_of_misspelt(cls.__name__, [name for name in kwargs if not hasattr(cls, name)], known)

        def checked_setattr(self: Any, name: str, value: Any) -> None:
            name = self.attribute_map.get(name, name)  # else `strict` would not see the field
            value = _plain(value) if name in types else value
            if fault := _fault(types.get(name), value, ranges.get(name)):
                raise error(f"{cls.__name__}: {name} {fault}, got {shortened(value)}.")
            try:
                strict_setattr(self, name, value)
            except StrictDataclassFieldValidationError as wrong:
                raise error(f"{cls.__name__}: {name} must be {_text(types[name])}, got {shortened(value)}.") from wrong

        @wraps(save_pretrained)
        def save_with_code(self: Any, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
            _save_then_push(self, save_pretrained, save_directory, args, kwargs)

        made.__init__, made.__setattr__, made.save_pretrained = checked_init, checked_setattr, save_with_code
        made._config_error, made._config_ranges = error, ranges
        made._served_tasks = frozenset()  # registration names them; where the package is missing, there are none
        return made

    return decorate


def _warn_of_misspelt(config: str, given: Iterable[str], known: list[str]) -> None:
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


def _fault(kind: Any, value: Any, bounds: Range | None) -> str | None:
    """The fault of a number in a field of numbers; `strict` refuses values of other types."""
    if type(value) not in {int, float} & {kind, *get_args(kind)}:
        return None
    if isinstance(value, float) and not isfinite(value):
        return "must be finite"
    least, most = bounds or (INT64 if isinstance(value, int) else (value, value))
    if least <= value <= most:
        return None
    return f"must be at least {least}" if value < least else f"must be at most {most}"


def _text(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


# ----------------------------------------------------------------------------------------------------------------------
# Saving


class CarriesCode:
    """`save_pretrained` of a model, tokenizer or processor whose folder loads without the package.

    Stands before transformers' class in the bases. transformers copies the file of the class and those beside it.
    """

    def save_pretrained(self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any) -> Any:
        """As in transformers."""
        save = super().save_pretrained  # type: ignore[misc]
        return _save_then_push(self, lambda _, *args, **kwargs: save(*args, **kwargs), save_directory, args, kwargs)


_HUB_ARGUMENTS = {
    "repo_id",
    "commit_message",
    "commit_description",
    "private",
    "token",
    "revision",
    "create_pr",
    "tags",
}


def _save_then_push(
    thing: Any, save: Callable[..., Any], folder: str | os.PathLike[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Saves, completes the code, and only then pushes: transformers would upload the stub."""
    push = kwargs.pop("push_to_hub", False)
    hub = {name: kwargs.pop(name) for name in tuple(kwargs) if push and name in _HUB_ARGUMENTS}
    saved = save(thing, folder, *args, **kwargs)
    _complete_code(folder)
    if push:
        thing.push_to_hub(**{"repo_id": Path(folder).name, **hub})
    return saved


def _complete_code(folder: str | os.PathLike[str]) -> None:
    """Puts this file in the place of the one that imports from it."""
    target = Path(folder, "checkpoints.py")
    if target.is_file():
        target.write_bytes(Path(__file__).read_bytes())


def _name_heads(config: PreTrainedConfig, family: type) -> None:
    """`config.auto_map` with all heads of the configuration, which stand in one file: each loads by its Auto class.

    Where the package is missing, the Auto classes know only the heads that were loaded; the checkpoint's map has the
    others. Of a checkpoint from the Hub its entries are `"user/name--file.Class"`.
    """
    package, known = family.__module__.rpartition(".")[0], getattr(config, "auto_map", None)
    heads = {name: text.rpartition("--")[2] for name, text in (known or {}).items() if isinstance(text, str)}
    for name, auto_class in vars(modeling_auto).items():
        mapping = getattr(auto_class, "_model_mapping", None)
        if name.startswith("Auto") and mapping is not None and type(config) in mapping:
            model_class = mapping[type(config)]
            module, _, file = getattr(model_class, "__module__", "").rpartition(".")
            if module == package:
                heads[name] = f"{file}.{model_class.__name__}"
    ours = {file.stem for file in Path(str(sys.modules[family.__module__].__file__)).parent.glob("*.py")}
    config.auto_map = {name: text for name, text in heads.items() if text.partition(".")[0] in ours}


@contextmanager
def _naming(config: PreTrainedConfig, pipelines: Mapping[str, dict[str, Any]]) -> Iterator[None]:
    """Names the pipelines in a configuration while it is saved; see `strict_config` for the one in memory."""
    before = getattr(config, "custom_pipelines", None)
    if pipelines:
        config.custom_pipelines = {**(before or {}), **copy.deepcopy(dict(pipelines))}
    try:
        yield
    finally:
        if pipelines and before is None:
            del config.custom_pipelines
        elif pipelines:
            config.custom_pipelines = before


def _is_of_a_family(cls: type) -> bool:
    """Whether this file, or the stub that stands for it, lies beside a class's own. A notebook has no file."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return file is not None and Path(file).with_name("checkpoints.py").is_file()


# ----------------------------------------------------------------------------------------------------------------------
# Models


class SafeCheckpoints(CarriesCode):
    """`from_pretrained` and `save_pretrained` of a family's models. Stands before transformers' class in the bases."""

    #: The family's error.
    _checkpoint_error: ClassVar[type[ValueError]] = ValueError
    #: Whether weights that a checkpoint lacks are an error; otherwise `_init_weights` draws them.
    _refuses_missing_weights: ClassVar[bool] = False
    #: The pipelines that travel with a checkpoint, as config.json names them: `custom_pipelines`.
    _pipelines: ClassVar[dict[str, dict[str, Any]]] = {}

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Any,
        *model_args: Any,
        config: Any = None,
        ignore_mismatched_sizes: bool = False,
        output_loading_info: bool = False,
        **kwargs: Any,
    ) -> Any:
        """As in transformers, but refuses what is not a checkpoint of this family.

        Raises:
            The family's error: the checkpoint is of another model type; its safetensors file is damaged; a weight has
            another shape than the configuration says, unless `ignore_mismatched_sizes=True`; a weight is missing, where
            the family allows none; a weight is not finite.
        """
        name, error = pretrained_model_name_or_path, cls._checkpoint_error
        where = "The state dict" if name is None else f"Checkpoint {str(name)!r}"
        found: dict[str, Any] = {}
        if name is not None:
            reading = {key: value for key, value in kwargs.items() if key != "trust_remote_code"}  # of the Auto classes
            found, _ = PreTrainedConfig.get_config_dict(name, **reading)
        config, kwargs = cls._configure(where, found, config, kwargs)
        try:
            model, info = super().from_pretrained(  # type: ignore[misc]
                name, *model_args, config=config, ignore_mismatched_sizes=True, output_loading_info=True, **kwargs
            )
        except SafetensorError as damage:
            raise error(
                f"{where} has a damaged safetensors file ({damage}); download it again with force_download=True, or "
                "save it again."
            ) from damage
        if not ignore_mismatched_sizes:
            _check_shapes(error, where, info["mismatched_keys"])
        missing = sorted(set(info["missing_keys"]) - model.all_tied_weights_keys.keys())
        if missing and cls._refuses_missing_weights:
            raise error(f"{where} lacks the weights {missing}; save the model again.")
        _check_finite(error, where, {**dict(model.named_parameters()), **dict(model.named_buffers())})
        return (model, info) if output_loading_info else model

    @classmethod
    def _config_classes(cls) -> tuple[type[PreTrainedConfig], ...]:
        """The configurations whose checkpoints the model loads, its own first."""
        return (cls.config_class,)  # type: ignore[attr-defined]

    @classmethod
    def _configure(cls, where: str, found: dict[str, Any], config: Any, kwargs: dict[str, Any]) -> tuple[Any, dict]:
        """Refuses another family's config.json (`found`; empty if there is none) or configuration."""
        classes = cls._config_classes()
        types = [config_class.model_type for config_class in classes]
        if isinstance(config, PreTrainedConfig) and not (isinstance(config, classes) or config.model_type in types):
            names = " or a ".join(config_class.__name__ for config_class in classes)
            raise cls._checkpoint_error(f"{cls.__name__} takes a {names}, got a {type(config).__name__}.")
        if found and found.get("model_type") not in types:  # an adapter has none and names its base model
            raise cls._checkpoint_error(
                f"{where} has model type {found.get('model_type')!r}, expected {' or '.join(map(repr, types))}; load "
                "it with AutoModel, which picks the class that fits."
            )
        return config, kwargs

    def save_pretrained(self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any) -> Any:
        """As in transformers, but config.json names every head of the configuration, and the pipelines."""
        family = next(cls for cls in type(self).__mro__ if _is_of_a_family(cls))
        _name_heads(self.config, family)  # type: ignore[attr-defined]
        if family is not type(self) and not Path(save_directory).is_file():
            # A subclass of the user's, perhaps of a notebook: transformers copies at most its own file.
            Path(save_directory).mkdir(parents=True, exist_ok=True)
            custom_object_save(family, save_directory)
        with _naming(self.config, self._pipelines):  # type: ignore[attr-defined]
            return super().save_pretrained(save_directory, *args, **kwargs)


def _check_shapes(error: type[ValueError], where: str, mismatched: Iterable[tuple[str, Any, Any]]) -> None:
    said = [f"{name} is {list(old)} and should be {list(new)}" for name, old, new in sorted(mismatched)]
    if said:
        more = f", and {len(said) - 3} more" if len(said) > 3 else ""
        raise error(
            f"{where} has weights of other shapes than the configuration says: {'; '.join(said[:3])}{more}. Give the "
            "configuration that it was saved with, or ignore_mismatched_sizes=True to draw these weights anew."
        )


@torch.no_grad()
def _check_finite(error: type[ValueError], where: str, tensors: Mapping[str, Tensor]) -> None:
    """Refuses NaN and infinity: a sum passes them on, needs no memory, and reads each number once."""
    sums: dict[torch.device, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.is_meta and tensor.element_size() > 1:  # others are quantised
            total = tensor.sum(dtype=torch.float32 if tensor.element_size() == 2 else None)
            sums.setdefault(tensor.device, {})[name] = total.double()
    suspects = [
        name
        for found in sums.values()
        for name, finite in zip(found, torch.stack(list(found.values())).isfinite().tolist(), strict=True)
        if not finite
    ]
    bad = {name: int((~tensors[name].isfinite()).sum()) for name in suspects}  # a sum of large numbers overflows, too
    bad = {name: count for name, count in bad.items() if count}
    if bad:
        said = [f"{count} of {tensors[name].numel()} in {name}" for name, count in bad.items()]
        more = f", and {len(said) - 3} tensors more" if len(said) > 3 else ""
        raise error(
            f"{where} has weights that are not finite: {', '.join(said[:3])}{more}. Training diverged or the file is "
            "damaged; go back to the last good checkpoint, or lower the learning rate."
        )


# ----------------------------------------------------------------------------------------------------------------------
# Adapters of peft. Never `import peft`: transformers takes the imports of a checkpoint's code for packages it needs.


#: By model type, the stock model types whose default targets it has: a belief state model those of its encoders.
_adapters_as: dict[str, dict[str, None]] = {}


def declare_targets(model_type: str, *stock: str) -> None:
    """Gives a model type the default targets of stock model types, and those given before, for every method of peft.

    Does nothing to peft before it is imported; `hf_mech.models.registration` calls this again then.
    """
    known_types = _adapters_as.setdefault(model_type, {})
    known_types |= dict.fromkeys(stock)
    constants = sys.modules.get("peft.utils.constants")
    for name, targets in vars(constants).copy().items() if constants else ():
        if name.startswith("TRANSFORMERS_MODELS_TO_") and isinstance(targets, dict):
            for found in (targets[one] for one in known_types if one in targets):
                known = targets.setdefault(model_type, found)
                if isinstance(known, list) and isinstance(found, list):
                    targets[model_type] = list(dict.fromkeys([*known, *found]))


class AdaptersTrainNewParts:
    """For a model with parts that a stock checkpoint lacks: adapters train and save them whole.

    A part that was drawn at random cannot stay frozen below an adapter, and a change to it does not fit the part that
    the next model draws. peft has a table of default targets by model type, but none of modules to save. It hands its
    configurations to the model after the injection, as `model.peft_config`; there the parts are added.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "peft_config":
            for adapter, config in value.items():
                if hasattr(config, "modules_to_save") and not config.inference_mode:
                    self._add_new_parts(adapter, config)

    def _new_parts(self) -> dict[str, list[nn.Module]]:
        """The parts, by the last name of their paths."""
        raise NotImplementedError

    def _warn_of_targets(self, adapter: str, name: str, parts: list[nn.Module]) -> None:
        """Called for parts that hold the adapter's own targets: it trains and saves only a change to them."""
        raise NotImplementedError

    def _add_new_parts(self, adapter: str, config: Any) -> None:
        peft: Any = sys.modules["peft"]
        for name, parts in self._new_parts().items():
            saved = list(config.modules_to_save or ())
            if name in saved:
                continue
            if any(isinstance(m, peft.tuners.tuners_utils.BaseTunerLayer) for part in parts for m in part.modules()):
                self._warn_of_targets(adapter, name, parts)
                continue
            peft.utils.other._set_trainable(self, adapter, module_names=[name], inference_mode=False)
            config.modules_to_save = [*saved, name]
