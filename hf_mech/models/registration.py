"""Tells transformers' Auto classes about a model without importing the model.

A configuration is cheap to import, a model is not (transformers' `modeling_utils` alone takes longer than torch), so
the Auto classes get a proxy that imports the class when it is first used.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import Any

import wrapt
from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig
from transformers.models.auto import modeling_auto, tokenization_auto

from hf_mech.models.checkpoints import declare_targets


def register(
    config_class: type[PreTrainedConfig],
    auto_classes: dict[str, str],
    tokenizer: str | None = None,
    *,
    adapters_as: str | None = None,
    lora_targets: list[str] | None = None,
    pipelines: dict[str, tuple[str, str]] | None = None,
) -> None:
    """Registers a configuration and its models.

    Args:
        config_class: the configuration; its `model_type` becomes loadable through `AutoConfig`.
        auto_classes: for the name of each Auto class, the model's `"module:Class"`. A configuration's several heads are
            several entries, and every saved checkpoint names them all in its `auto_map`.
        tokenizer: the `"module:Class"` that `AutoTokenizer` gives for the configuration, if the family has its own.
        adapters_as: the model type whose default targets of peft's adapters are right for this one, too.
        lora_targets: the default targets of LoRA, where no other model type has the same.
        pipelines: for the task of each pipeline, its `"module:Class"` and the name of the Auto class of its model.
    """
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    for auto_class, target in auto_classes.items():
        # `AutoModel.register` looks into the class and would import it.
        getattr(modeling_auto, auto_class)._model_mapping.register(config_class, _proxy(target), exist_ok=True)
    if causal := auto_classes.get("AutoModelForCausalLM"):
        # With label smoothing, `Trainer` shifts the labels for the classes in this table, and for no others.
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config_class.model_type] = causal.partition(":")[2]
    if tokenizer is not None:
        proxy = _proxy(tokenizer)
        tokenization_auto.TOKENIZER_MAPPING.register(config_class, proxy, exist_ok=True)
        tokenization_auto.REGISTERED_TOKENIZER_CLASSES[tokenizer.partition(":")[2]] = proxy

    def targets(constants: Any) -> None:
        if adapters_as is not None:
            declare_targets(config_class.model_type, adapters_as)
        if lora_targets is not None:
            constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING[config_class.model_type] = lora_targets

    wrapt.register_post_import_hook(targets, "peft.utils.constants")
    if pipelines:
        checked: Any = config_class
        checked._served_tasks = frozenset(pipelines)
        for task, (target, auto_class) in pipelines.items():
            file, name = target.split(":")
            wrapt.register_post_import_hook(partial(_register_pipeline, task, name, auto_class), file)
            wrapt.register_post_import_hook(partial(_import_unless_begun, file), "transformers.pipelines")


def _import_unless_begun(file: str, _: Any) -> None:
    """Called when somebody imports transformers' pipelines, which load much; a pipeline's own file may be the first."""
    if file not in sys.modules:
        import_module(file)


def _register_pipeline(task: str, name: str, auto_class: str, module: Any) -> None:
    """Called when a pipeline's file has been imported."""
    from transformers.pipelines import PIPELINE_REGISTRY

    model = getattr(modeling_auto, auto_class)
    PIPELINE_REGISTRY.register_pipeline(task, getattr(module, name), pt_model=model, type="text")


def _proxy(target: str) -> Any:
    """The class `"module:Class"`, imported when it is first used."""
    module, name = target.split(":")
    return wrapt.lazy_import(module, name, interface=type)
