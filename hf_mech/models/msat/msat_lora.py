"""peft's default targets of the family: those of its decoder, GPT-2."""

from __future__ import annotations

from typing import Any


def declare_targets(constants: Any, model_type: str) -> None:
    """Gives a model type GPT-2's default targets, for every method of peft.

    Args:
        constants: the module `peft.utils.constants`.
        model_type: a model type whose layers are named as GPT-2's.
    """
    for name, targets in vars(constants).copy().items():
        if name.startswith("TRANSFORMERS_MODELS_TO_") and isinstance(targets, dict) and "gpt2" in targets:
            targets[model_type] = targets["gpt2"]
