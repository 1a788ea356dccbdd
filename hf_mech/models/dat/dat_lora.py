"""peft's default targets of the Semi-formal Transformer: queries, keys and values of its unbiased heads."""

from __future__ import annotations

from typing import Any

TARGETS = ["attend"]


def declare_targets(constants: Any, model_type: str) -> None:
    """Gives a model type its default targets, for LoRA.

    Args:
        constants: the module `peft.utils.constants`.
        model_type: of the model.
    """
    constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING[model_type] = list(TARGETS)
