"""The base of all models with stacks: stock checkpoints, new weights, adapters, masks for static caches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache
from transformers.configuration_utils import PreTrainedConfig
from transformers.utils import logging

from .checkpoints import AdaptersTrainNewParts, SafeCheckpoints, declare_targets
from .configuration_stack import StackError
from .position_encodings import init_encoding
from .stack_layer import init_stack

logger = logging.get_logger(__name__)


class StackPreTrained(AdaptersTrainNewParts, SafeCheckpoints):
    """A subclass of a stock model whose layers have stacks. Stands before the stock model's base in the bases.

    `from_pretrained` takes the stock family's checkpoints, too. From one of these everything is loaded but the stacks,
    which are newly initialised. The stack's options are then keyword arguments, like all other options of the
    configuration: `StackGPT2ForCausalLM.from_pretrained("gpt2", stack_gate=True)`.

    peft's adapters train and save the stacks, unless the adapter's targets are in them.
    """

    _checkpoint_error = StackError

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[misc]  # of the stock model's base
        init_stack(module)
        init_encoding(module)

    # ---------------------------------------------------------------------------------------------- stock checkpoints

    @classmethod
    def _config_classes(cls) -> tuple[type[PreTrainedConfig], ...]:
        ours: type[PreTrainedConfig] = cls.config_class  # type: ignore[attr-defined]
        return ours, ours.__bases__[-1]

    @classmethod
    def _configure(cls, where: str, found: dict[str, Any], config: Any, kwargs: dict[str, Any]) -> tuple[Any, dict]:
        """Makes the stack model's configuration from a stock one."""
        config, kwargs = super()._configure(where, found, config, kwargs)
        _, stock = cls._config_classes()
        kind = found.get("model_type")
        if isinstance(config, stock):
            found, kind = config.to_dict(), config.model_type
        if kind == stock.model_type and not isinstance(config, str | PathLike):
            found = {key: value for key, value in found.items() if key not in ("model_type", "architectures")}
            config, kwargs = cls._read(found, kwargs)
        return config, kwargs

    @classmethod
    def _read(cls, found: dict[str, Any], kwargs: dict[str, Any]) -> tuple[Any, dict]:
        """The configuration of a config.json's contents, and the keyword arguments that are none of its options."""
        loading: dict[str, Any] = {key: kwargs.pop(key) for key in ("dtype", "torch_dtype") if key in kwargs}
        ours, _ = cls._config_classes()
        config, kwargs = ours.from_dict(found, return_unused_kwargs=True, **kwargs)
        return config, {**kwargs, **loading}

    # ----------------------------------------------------------------------------------------------------- generation

    def create_masks_for_generate(
        self, *, attention_mask: Tensor | None = None, past_key_values: Cache | None = None, **kwargs: Any
    ) -> Tensor | None:
        """The mask [batch, past + new], with zeros up to the length of a static cache.

        The stacks need the two-dimensional mask, and `torch.compile` always the same shape.
        """
        if attention_mask is None or past_key_values is None or attention_mask.dim() != 2:
            return attention_mask
        more = past_key_values.get_max_length() - attention_mask.shape[1]
        return nn.functional.pad(attention_mask, (0, max(more, 0)))  # a cache of windows alone has a smaller one

    # ------------------------------------------------------------------------------------------------------- adapters

    def post_init(self) -> None:
        super().post_init()  # type: ignore[misc]
        declare_targets(*(config.model_type for config in self._config_classes()))  # peft may have been imported before

    def _new_parts(self) -> dict[str, list[nn.Module]]:
        """The sub-layers, and an encoding with weights of its own."""
        named = self.named_modules()  # type: ignore[attr-defined]
        modules = [(path.rpartition(".")[2], module) for path, module in named]
        found = {name: [module for last, module in modules if last == name] for name in ("stack", "encoding")}
        return {name: parts for name, parts in found.items() if any(True for p in parts for _ in p.parameters())}

    def _warn_of_targets(self, adapter: str, name: str, parts: list[nn.Module]) -> None:
        cure = (
            f"Pass modules_to_save=[{name!r}] to train and save them whole; peft then leaves them out of the targets."
        )
        gates: list[Any] = [gate for gate in (getattr(part, "gate", None) for part in parts) if gate is not None]
        if gates and not any(gate.requires_grad or gate.any() for gate in gates):
            logger.warning(
                f"The gates of the stacks are zero and frozen, so the adapter {adapter!r} trains nothing of the "
                f"stacks: its target_modules are layers inside them, and peft adapts no single parameter. {cure}"
            )
        elif not self.config.architectures:  # type: ignore[attr-defined]
            # `save_pretrained` writes the attribute: these weights are from no checkpoint.
            logger.warning(
                f"The modules {name!r} are newly initialised, and the adapter {adapter!r} saves only its change to "
                f"them: the next model that loads it has other ones. {cure}"
            )


@contextlib.contextmanager
def checkpointing_waits(config: Any) -> Iterator[None]:
    """Hides `config.gradient_checkpointing` while a stock model is built whose layers will be replaced.

    `post_init` applies the key to the layers of that moment and deletes it; the layers with stacks would get nothing.
    """
    wanted = vars(config).pop("gradient_checkpointing", False)
    try:
        yield
    finally:
        if wanted:
            config.gradient_checkpointing = wanted
