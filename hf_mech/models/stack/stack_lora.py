"""Stack models and peft: default targets, and stacks that an adapter trains and saves whole.

A stock checkpoint has no stacks. They are drawn at random when it is loaded, so an adapter that holds only a change to
them would not fit the next model. peft has a table of default targets by model type, but none of modules to save.
peft hands its configurations to the model after the injection, as `model.peft_config`; that is the place to add them.
"""

from __future__ import annotations

import sys
from typing import Any

from torch import nn
from transformers.utils import logging

logger = logging.get_logger(__name__)

#: The modules whose parameters a stock model lacks: the sub-layer, and an encoding with weights of its own.
NEW_MODULES = ("stack", "encoding")


def declare_targets(model_type: str, stock: str) -> None:
    """Gives a model type the default targets of its stock model, for every method of peft. Never imports peft."""
    constants = sys.modules.get("peft.utils.constants")
    for name, targets in vars(constants).copy().items() if constants else ():
        if name.startswith("TRANSFORMERS_MODELS_TO_") and isinstance(targets, dict) and stock in targets:
            targets.setdefault(model_type, targets[stock])


class SavesStacksWithAdapters:
    """For a model with stacks: peft's adapters train and save them, unless the adapter's targets are in the stacks."""

    def post_init(self) -> None:
        super().post_init()  # type: ignore[misc]
        ours: Any = self.config_class  # type: ignore[attr-defined]
        declare_targets(ours.model_type, ours.__mro__[1].model_type)  # peft may have been imported before this file

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
