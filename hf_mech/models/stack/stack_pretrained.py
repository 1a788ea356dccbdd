"""The base of all models with stacks: stock checkpoints, new weights, adapters, masks for static caches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache
from transformers.configuration_utils import PreTrainedConfig
from transformers.utils import logging

from .checkpoints import SafeCheckpoints
from .configuration_stack import StackError
from .position_encodings import init_encoding
from .stack_layer import init_stack

logger = logging.get_logger(__name__)

#: The modules whose parameters a stock model lacks: the sub-layer, and an encoding with weights of its own.
NEW_MODULES = ("stack", "encoding")


class StackPreTrained(SafeCheckpoints):
    """A subclass of a stock model whose layers have stacks. Stands before the stock model's base in the bases.

    `from_pretrained` takes the stock family's checkpoints, too. From one of these everything is loaded but the stacks,
    which are newly initialised. The stack's options are then keyword arguments, like all other options of the
    configuration: `StackGPT2ForCausalLM.from_pretrained("gpt2", stack_gate=True)`.

    peft's adapters train and save the stacks, unless the adapter's targets are in them. A stock checkpoint has none:
    they are drawn when it is loaded, so an adapter that holds only a change to them would not fit the next model. peft
    has a table of default targets by model type, but none of modules to save. It hands its configurations to the model
    after the injection, as `model.peft_config`; there the new modules are added.
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

    # ----------------------------------------------------------------------------------------------------- generation

    def create_masks_for_generate(
        self, *, attention_mask: Tensor | None = None, past_key_values: Cache | None = None, **kwargs: Any
    ) -> Tensor | None:
        """The mask [batch, past + new], with zeros up to the length of a static cache.

        The stacks need the two-dimensional mask, and `torch.compile` always the same shape.
        """
        if attention_mask is None or past_key_values is None or attention_mask.dim() != 2:
            return attention_mask
        return nn.functional.pad(attention_mask, (0, past_key_values.get_max_length() - attention_mask.shape[1]))

    # ------------------------------------------------------------------------------------------------------- adapters

    def post_init(self) -> None:
        super().post_init()  # type: ignore[misc]
        declare_targets(*(config.model_type for config in self._config_classes()))  # peft may have been imported before

    @property
    def peft_config(self) -> dict[str, Any]:
        """The configurations of the adapters, by the adapter's name; only once peft has set them."""
        if "_peft_config" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no adapter, and no peft_config.")
        return vars(self)["_peft_config"]

    @peft_config.setter
    def peft_config(self, configs: dict[str, Any]) -> None:
        vars(self)["_peft_config"] = configs
        for adapter, config in configs.items():
            if hasattr(config, "modules_to_save") and not config.inference_mode:
                save_new_modules(self, adapter, config)  # type: ignore[arg-type]

    @peft_config.deleter
    def peft_config(self) -> None:
        del vars(self)["_peft_config"]


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


def declare_targets(model_type: str, stock: str) -> None:
    """Gives a model type the default targets of its stock model, for every method of peft. Never imports peft."""
    constants = sys.modules.get("peft.utils.constants")
    for name, targets in vars(constants).copy().items() if constants else ():
        if name.startswith("TRANSFORMERS_MODELS_TO_") and isinstance(targets, dict) and stock in targets:
            targets.setdefault(model_type, targets[stock])


def save_new_modules(model: nn.Module, adapter: str, config: Any) -> None:
    """Adds the new modules to an adapter's `modules_to_save`; warns of stacks that it would lose.

    Args:
        model: with the adapter's layers already in it.
        adapter: the adapter's name.
        config: its configuration, which is changed.
    """
    # Not `import peft`: transformers reads the imports of a checkpoint's code as packages that it needs.
    peft = sys.modules["peft"]
    saved = list(config.modules_to_save or ())
    for name in NEW_MODULES:
        found = [module for path, module in model.named_modules() if path.rpartition(".")[2] == name]
        parts = [part for module in found for part in module.modules()]
        if name in saved or not any(True for module in found for _ in module.parameters()):
            continue
        if any(isinstance(part, peft.tuners.tuners_utils.BaseTunerLayer) for part in parts):
            _warn(model, adapter, name, found)
            continue
        peft.utils.other._set_trainable(model, adapter, module_names=[name], inference_mode=False)
        config.modules_to_save = [*(config.modules_to_save or ()), name]


def _warn(model: Any, adapter: str, name: str, found: list[nn.Module]) -> None:
    """The adapter's targets are inside these modules: says what it will not train, or not save."""
    cure = f"Pass modules_to_save=[{name!r}] to train and save them whole; peft then leaves them out of the targets."
    gates = [gate for gate in (getattr(module, "gate", None) for module in found) if gate is not None]
    if gates and not any(gate.requires_grad or gate.any() for gate in gates):
        logger.warning(
            f"The gates of the stacks are zero and frozen, so the adapter {adapter!r} trains nothing of the stacks: "
            f"its target_modules are layers inside them, and peft adapts no single parameter. {cure}"
        )
    elif not model.config.architectures:  # written by save_pretrained: these weights are from no checkpoint
        logger.warning(
            f"The modules {name!r} are newly initialised, and the adapter {adapter!r} saves only its change to them: "
            f"the next model that loads it has other ones. {cure}"
        )
