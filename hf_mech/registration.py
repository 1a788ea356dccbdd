"""Tells transformers' Auto classes about a model without importing the model.

A configuration is cheap to import, a model is not (transformers' `modeling_utils` alone takes longer than torch), so
the Auto classes get a proxy that imports the class when it is first used.
"""

from __future__ import annotations

import wrapt
from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig
from transformers.models.auto import modeling_auto


def register(config_class: type[PreTrainedConfig], auto_classes: dict[str, str]) -> None:
    """Registers a configuration and its models.

    Args:
        config_class: the configuration; its `model_type` becomes loadable through `AutoConfig`.
        auto_classes: for the name of each Auto class, the model's `"module:Class"`. A configuration's several heads are
            several entries, and `hf_mech.hub` writes them all into a checkpoint's `auto_map`.
    """
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    for auto_class, target in auto_classes.items():
        module, name = target.split(":")
        proxy = wrapt.lazy_import(module, name, interface=type)
        # `AutoModel.register` looks into the class and would import it.
        getattr(modeling_auto, auto_class)._model_mapping.register(config_class, proxy, exist_ok=True)
