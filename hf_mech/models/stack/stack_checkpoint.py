"""Loading: stock checkpoints become stack models."""

from __future__ import annotations

from os import PathLike
from typing import Any

from transformers.configuration_utils import PreTrainedConfig

from .checkpoints import SafeCheckpoints
from .stack_errors import CheckpointError


class LoadsStockCheckpoints(SafeCheckpoints):
    """`from_pretrained` for a subclass of a stock model: takes the stock family's checkpoints too.

    From a stock checkpoint everything is loaded but the stacks, which are newly initialised. The stack's options are
    then keyword arguments, like all other options of the configuration:
    `StackGPT2ForCausalLM.from_pretrained("gpt2", stack_gate=True)`.
    """

    _checkpoint_error = CheckpointError

    @classmethod
    def _config_classes(cls) -> tuple[type[PreTrainedConfig], ...]:
        ours: type[PreTrainedConfig] = cls.config_class  # type: ignore[attr-defined]
        return ours, ours.__mro__[1]

    @classmethod
    def _configure(cls, where: str, found: dict[str, Any], config: Any, kwargs: dict[str, Any]) -> tuple[Any, dict]:
        """Makes the stack model's configuration from a stock one."""
        config, kwargs = super()._configure(where, found, config, kwargs)
        ours, stock = cls._config_classes()
        kind = found.get("model_type")
        if isinstance(config, stock):
            found, kind = config.to_dict(), config.model_type
        if kind == stock.model_type and not isinstance(config, str | PathLike):
            found = {key: value for key, value in found.items() if key not in ("model_type", "architectures")}
            loading: dict[str, Any] = {key: kwargs.pop(key) for key in ("dtype", "torch_dtype") if key in kwargs}
            config, kwargs = ours.from_dict(found, return_unused_kwargs=True, **kwargs)
            kwargs.update(loading)
        return config, kwargs
