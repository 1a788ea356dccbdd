"""The default targets of peft's adapters: those of the encoders in use."""

from __future__ import annotations

import sys

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
