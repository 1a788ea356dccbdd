# Copied from hf_mech/models/checkpoints.py by `make format`; edit it there.
"""Checkpoints: refused before they allocate or compute anything wrong, saved with the code of every head."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from traceback import walk_tb
from typing import Any, ClassVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers.configuration_utils import PreTrainedConfig
from transformers.dynamic_module_utils import get_relative_import_files
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.utils.hub import get_checkpoint_shard_files

#: Numbers and weights that a model may have besides those in its file, for new heads; more need a file of that size.
NEW_NUMBERS, NEW_WEIGHTS = 2**24, 1_000
Shapes = Mapping[str, tuple[int, ...]]


class SafeCheckpoints:
    """`from_pretrained` and `save_pretrained` of a family's models. Stands before transformers' classes in the bases.

    Loading takes all arguments of transformers' own. Nothing of the configuration's sizes is allocated before they are
    compared with the file's: transformers builds the model on the meta device, and this class checks it there.
    """

    #: The family's error.
    _checkpoint_error: ClassVar[type[ValueError]] = ValueError
    #: Whether weights that a checkpoint lacks are an error; otherwise `_init_weights` draws them.
    _refuses_missing_weights: ClassVar[bool] = False

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *model_args: Any, config: Any = None, **kwargs: Any):
        """As in transformers, but refuses what is not a checkpoint of this family.

        Raises:
            The family's checkpoint error: the checkpoint is of another model type; its config.json is malformed; its
            safetensors file, or the index of several, is damaged; a weight has another shape than the configuration
            says, unless `ignore_mismatched_sizes=True`; the configuration is far larger than the file; a weight is
            missing, where the family allows none; a weight is not finite.
        """
        where = _where(pretrained_model_name_or_path)
        found: Any = {}
        if pretrained_model_name_or_path is not None:
            reading = {key: value for key, value in kwargs.items() if key != "trust_remote_code"}  # of the Auto classes
            try:
                found, _ = PreTrainedConfig.get_config_dict(pretrained_model_name_or_path, **reading)
                malformed = None if isinstance(found, dict) else type(found).__name__
            except (AttributeError, RecursionError, TypeError) as error:
                malformed = str(error)
            if malformed is not None:
                raise cls._checkpoint_error(
                    f"{where} has a config.json that is malformed ({malformed}); expected an object with the model's "
                    "configuration. Save the model again."
                )
        config, kwargs = cls._configure(where, found, config, kwargs)
        try:
            return super().from_pretrained(  # type: ignore[misc]
                pretrained_model_name_or_path, *model_args, config=config, **kwargs
            )
        except SafetensorError as error:
            raise cls._checkpoint_error(
                f"{where} has a damaged safetensors file ({error}); download it again with force_download=True, or "
                "save it again."
            ) from error
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            reading_index = get_checkpoint_shard_files.__code__
            if all(frame.f_code is not reading_index for frame, _ in walk_tb(error.__traceback__)):
                raise
            raise cls._checkpoint_error(
                f"{where} has an index of its weights' files that is malformed ({type(error).__name__}: {error}); "
                "download it again with force_download=True, or save it again."
            ) from error

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

    @staticmethod
    def _load_pretrained_model(
        model: Any, state_dict: Any, checkpoint_files: list[str] | None, load_config: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """transformers' step between the model on the meta device and the allocation of all that no file holds."""
        error, where = type(model)._checkpoint_error, _where(load_config.pretrained_model_name_or_path)
        tensors = dict(_tensors(model))
        if not load_config.ignore_mismatched_sizes and load_config.hf_quantizer is None:
            held = {
                _bare(model, _renamed(name, load_config.weight_mapping)): shape
                for name, shape in _shapes(checkpoint_files)
            }
            _check_shapes(
                error,
                where,
                [
                    (name, held[_bare(model, name)], tuple(tensor.shape))
                    for name, tensor in tensors.items()
                    if tensor.is_meta and held.get(_bare(model, name), tensor.shape) != tuple(tensor.shape)
                ],
            )
        info, offloaded = PreTrainedModel._load_pretrained_model(
            model, state_dict, checkpoint_files, load_config, **kwargs
        )
        tensors = dict(_tensors(model))
        lacking = {
            name: tensors[name]
            for name in sorted(info.missing_keys - model.all_tied_weights_keys.keys())
            if name in tensors and tensors[name].is_meta
        }
        if not load_config.ignore_mismatched_sizes:
            _check_shapes(error, where, [(name, tuple(old), tuple(new)) for name, old, new in info.mismatched_keys])
            _check_growth(error, where, tensors, {**lacking, **dict(_unsaved(model))})
        if lacking and type(model)._refuses_missing_weights:
            raise error(f"{where} lacks the weights {list(lacking)}; save the model again.")
        _check_finite(error, where, tensors)
        return info, offloaded

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], is_main_process: bool = True, *args: Any, **kwargs: Any
    ) -> None:
        """As in transformers, but `auto_map` names every head of the configuration, and the code of all is copied.

        Any head can then be loaded by its Auto class with `trust_remote_code=True` where the package is missing.
        """
        if is_main_process and not Path(save_directory).is_file():
            _save_heads(self.config, Path(save_directory))  # type: ignore[attr-defined]
        super().save_pretrained(save_directory, is_main_process, *args, **kwargs)  # type: ignore[misc]


# -------------------------------------------------------------------------------------------------------------- loading


def _where(name: Any) -> str:
    return "The state dict" if name is None else f"Checkpoint {str(name)!r}"


def _tensors(model: Any) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _unsaved(model: Any) -> Iterator[tuple[str, Tensor]]:
    """The buffers that no checkpoint holds, as far as they are not yet allocated."""
    saved = model.state_dict().keys()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if buffer.is_meta and name not in saved)


def _bare(model: Any, name: str) -> str:
    """A tensor's name in the model without a head, which may have saved the file."""
    return name.removeprefix(f"{model.base_model_prefix}.")


def _renamed(name: str, renamings: Iterable[Any] | None) -> str:
    """The model's name of a tensor, after `key_mapping` and transformers' own renamings."""
    for renaming in renamings or ():
        name, _ = renaming.rename_source_key(name)
    return name


def _shapes(files: Iterable[str] | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names and shapes in the headers of safetensors files."""
    for file in files or ():
        if str(file).endswith(".safetensors"):
            with safe_open(file, framework="pt") as header:
                for name in header.keys():  # noqa: SIM118  (it is no mapping)
                    yield name, tuple(header.get_slice(name).get_shape())


def _check_shapes(error: type[ValueError], where: str, other: list[tuple[str, Any, Any]]) -> None:
    if other:
        said = [f"{name} is {list(old)} and should be {list(new)}" for name, old, new in sorted(other)]
        more = f", and {len(said) - 3} more" if len(said) > 3 else ""
        raise error(
            f"{where} has weights of other shapes than the configuration says: {'; '.join(said[:3])}{more}. Give the "
            "configuration that it was saved with, or ignore_mismatched_sizes=True to draw these weights anew."
        )


def _check_growth(
    error: type[ValueError], where: str, tensors: Mapping[str, Tensor], new: Mapping[str, Tensor]
) -> None:
    held = {name: tensor for name, tensor in tensors.items() if name not in new}
    numbers, wanted = (sum(tensor.numel() for tensor in some.values()) for some in (held, new))
    if wanted > numbers + NEW_NUMBERS or len(new) > len(held) + NEW_WEIGHTS:
        largest = max(new, key=lambda name: new[name].numel())
        raise error(
            f"{where} holds {len(held)} weights of {numbers:,} numbers, and its configuration asks for {len(new)} more "
            f"of {wanted:,} numbers, {largest} {list(new[largest].shape)} first of all; it is not the configuration of "
            "these weights. Pass ignore_mismatched_sizes=True to draw them anew all the same."
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


# --------------------------------------------------------------------------------------------------------------- saving


def _save_heads(config: PreTrainedConfig, folder: Path) -> None:
    """Completes `config.auto_map`, and copies the files that it names."""
    sources = [Path(str(sys.modules[type(config).__module__].__file__)).parent]
    sources += [Path(config.name_or_path)] if config.name_or_path else []
    known = getattr(config, "auto_map", None)
    complete: dict[str, Any] = {}
    for auto_class, reference in {**(known if isinstance(known, Mapping) else {}), **_registered(config)}.items():
        # Of a checkpoint from the Hub it is "user/name--file.Class", and a tokenizer's are two in a list.
        local = reference.rpartition("--")[2] if isinstance(reference, str) else ""
        found = _files(local.partition(".")[0], sources)
        for file in found:
            folder.mkdir(parents=True, exist_ok=True)
            if file.parent.resolve() != folder.resolve():
                shutil.copyfile(file, folder / file.name)
        if found:
            complete[auto_class] = local
        elif not local or local != reference:
            complete[auto_class] = reference
    if complete:
        config.auto_map = complete


def _registered(config: PreTrainedConfig) -> dict[str, str]:
    """`{"AutoModel...": "file.Class"}` for all models beside the configuration that the Auto classes know for it.

    Where the package is missing, they know only what was loaded; `config.auto_map` has the others.
    """
    package = type(config).__module__.rpartition(".")[0]
    heads = {}
    for name, auto_class in vars(modeling_auto).items():
        mapping = getattr(auto_class, "_model_mapping", None)
        if name.startswith("Auto") and mapping is not None and type(config) in mapping:
            model_class = mapping[type(config)]
            module, _, file = getattr(model_class, "__module__", "").rpartition(".")
            if module == package:
                heads[name] = f"{file}.{model_class.__name__}"
    return heads


def _files(module: str, folders: Iterable[Path]) -> list[Path]:
    """The file of a module and those that it imports, from the first folder that has them all.

    The name comes from a checkpoint. A path would copy a file of the user's to where checkpoints are published.
    """
    for folder in folders if module.isidentifier() else ():
        file = folder / f"{module}.py"
        if os.path.isfile(file):  # noqa: PTH113  (Path.is_file raises for a name that is too long)
            files = [file, *map(Path, get_relative_import_files(file))]
            if all(needed.is_file() for needed in files):
                return files
    return []
