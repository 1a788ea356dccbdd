"""Loading: stock checkpoints become stack models; other model types are refused by name."""

from __future__ import annotations

from os import PathLike
from typing import Any

from safetensors import SafetensorError
from transformers.configuration_utils import PreTrainedConfig

from .stack_errors import CheckpointError


class LoadsStockCheckpoints:
    """`from_pretrained` for a subclass of a stock model: takes the stock family's checkpoints too."""

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *model_args: Any, config: Any = None, **kwargs: Any):
        """As in transformers. From a stock checkpoint everything is loaded but the stacks, which are newly initialised.

        The stack's options are then keyword arguments, like all other options of the configuration:
        `StackGPT2ForCausalLM.from_pretrained("gpt2", stack_gate=True)`.

        Raises:
            CheckpointError: the checkpoint is of another family, or its safetensors file is damaged.
        """
        ours: type[PreTrainedConfig] = cls.config_class  # type: ignore[attr-defined]
        stock: type[PreTrainedConfig] = ours.__mro__[1]
        where = f"Checkpoint {str(pretrained_model_name_or_path)!r}"
        if config is not None and not isinstance(config, (stock, str, PathLike)):
            raise CheckpointError(
                f"{cls.__name__} takes a {ours.__name__}, or a {stock.__name__} to put stacks into, got "
                f"{type(config).__name__}."
            )
        found, _ = PreTrainedConfig.get_config_dict(pretrained_model_name_or_path, **kwargs)
        kind = found.get("model_type")  # None for an adapter, which names its base model
        if kind not in (ours.model_type, stock.model_type, None):
            raise CheckpointError(
                f"{where} has model type {kind!r}; {cls.__name__} loads {ours.model_type!r} and, with new stacks, "
                f"{stock.model_type!r}."
            )
        if isinstance(config, stock):
            found, kind = config.to_dict(), config.model_type
        if kind == stock.model_type and not isinstance(config, (str, PathLike)):
            found = {key: value for key, value in found.items() if key not in ("model_type", "architectures")}
            loading: dict[str, Any] = {key: kwargs.pop(key) for key in ("dtype", "torch_dtype") if key in kwargs}
            config, kwargs = ours.from_dict(found, return_unused_kwargs=True, **kwargs)
            kwargs.update(loading)
        try:
            return super().from_pretrained(  # type: ignore[misc]
                pretrained_model_name_or_path, *model_args, config=config, **kwargs
            )
        except SafetensorError as error:
            raise CheckpointError(
                f"{where} has a damaged safetensors file ({error}); download it again with force_download=True, or "
                "save it again."
            ) from error
