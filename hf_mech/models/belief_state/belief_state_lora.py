"""peft's adapters: the encoders' own default targets, and a new text head, which an adapter trains and saves whole.

A text head that is drawn at random cannot stay frozen below an adapter. peft hands its configurations to the model
after the injection, as `model.peft_config`; that is the place to add the head.
"""

from __future__ import annotations

import sys
from typing import Any

from transformers.utils import logging

logger = logging.get_logger(__name__)

#: peft knows targets by model type alone, so those of every encoder in use are joined; their names do not collide.
_encoders = ["gpt2"]


def declare_targets(*encoders: str) -> None:
    """Gives `belief_state` the default targets of the encoders, for every method of peft. Never imports peft.

    Args:
        encoders: their model types; all that were ever given count.
    """
    _encoders.extend(encoder for encoder in encoders if encoder not in _encoders)
    constants = sys.modules.get("peft.utils.constants")
    for name, targets in vars(constants).copy().items() if constants else ():
        if name.startswith("TRANSFORMERS_MODELS_TO_") and isinstance(targets, dict):
            found = [targets[encoder] for encoder in _encoders if isinstance(targets.get(encoder), list)]
            if found:
                targets["belief_state"] = list(dict.fromkeys(target for one in found for target in one))


class AdaptersTrainNewHeads:
    """For a model whose text head, or backward encoder, may be new: see `new_parts`."""

    new_parts: tuple[str, ...] = ()  #: the parts that no checkpoint gave, by name

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "peft_config":
            for adapter, config in value.items():
                if hasattr(config, "modules_to_save") and not config.inference_mode:
                    _train_new_parts(self, adapter, config)


def _train_new_parts(model: Any, adapter: str, config: Any) -> None:
    """Adds a new text head to the modules that an adapter trains and saves; warns of a new backward encoder."""
    saved = list(config.modules_to_save or ())
    if "backward_encoder" in model.new_parts and "backward_encoder" not in saved:
        logger.warning(
            "The backward encoder is newly initialised, and an adapter trains little of it. Give backward= to "
            "from_encoder_pretrained, a checkpoint, or pass modules_to_save=['text_head', 'backward_encoder']."
        )
    if "text_head" not in model.new_parts or "text_head" in saved or not hasattr(model, "text_head"):
        return
    # Not `import peft`: transformers reads the imports of a checkpoint's code as packages that it needs.
    peft = sys.modules["peft"]
    if any(isinstance(part, peft.tuners.tuners_utils.BaseTunerLayer) for part in model.text_head.modules()):
        logger.warning(
            "The text head is newly initialised, and the adapter saves only its change to it. Pass "
            "modules_to_save=['text_head'] to train and save it whole."
        )
        return
    peft.utils.other._set_trainable(model, adapter, module_names=["text_head"], inference_mode=False)
    config.modules_to_save = [*saved, "text_head"]
