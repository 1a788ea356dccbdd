"""Which models there are: everything of ours that transformers' Auto classes know. No model is listed by hand.

Of the classes that `add_stack` makes on demand, the cases of the family name one that stands for all.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto import modeling_auto

import hf_mech

from .case import ContractCase

AUTO_CLASSES: dict[str, Any] = {
    name: auto
    for name, auto in vars(modeling_auto).items()
    if isinstance(auto, type) and getattr(auto, "_model_mapping", None) is not None  # its truth would import them all
}


def our_configs(base: type[PreTrainedConfig] = PreTrainedConfig) -> Iterator[type[PreTrainedConfig]]:
    """Every configuration class that hf_mech defines."""
    for config_class in base.__subclasses__():
        if config_class.__module__.startswith(f"{hf_mech.__name__}."):
            yield config_class
        yield from our_configs(config_class)


def is_made_on_demand(made: type) -> bool:
    """Whether its module makes the class only when it is asked for."""
    return made.__name__ not in vars(sys.modules[made.__module__])


def families() -> list[str]:
    """The folders of models that have contract cases."""
    return sorted(file.parent.name for file in (Path(__file__).parents[1] / "models").glob("*/contract.py"))


def contract_of(family: str) -> Any:
    """The module with a family's cases."""
    return importlib.import_module(f"tests.models.{family}.contract")


@cache
def registered_models() -> dict[type[PreTrainedModel], tuple[str, ...]]:
    """Every registered model of ours, with the names of the Auto classes that give it."""
    models: dict[type[PreTrainedModel], tuple[str, ...]] = {}
    shown = {case.model_class.config_class for name in families() for case in contract_of(name).CASES}
    for config_class in our_configs():
        if is_made_on_demand(config_class) and config_class not in shown:
            continue
        for name, auto in AUTO_CLASSES.items():
            if config_class in auto._model_mapping:
                proxy = auto._model_mapping[config_class]
                model_class = getattr(proxy, "__wrapped__", proxy)
                models[model_class] = (*models.get(model_class, ()), name)
    return models


def family(model_class: type[PreTrainedModel]) -> str:
    """The folder that the model lives in: hf_mech.models.<family>."""
    return model_class.__module__.split(".")[-2]


@cache
def contract_cases() -> tuple[ContractCase, ...]:
    """The contract cases of every registered model, from `tests/models/<family>/contract.py`."""
    found = []
    for model_class in registered_models():
        module = contract_of(family(model_class))
        cases = [case for case in module.CASES if case.model_class is model_class]
        if not cases or len({case.name for case in cases}) < len(cases):
            raise LookupError(
                f"{model_class.__name__} is registered, so CASES of {module.__file__} must hold a ContractCase for it, "
                f"and of several each needs a variant of its own; it holds {[case.name for case in cases]}."
            )
        found += cases
    return tuple(found)


@cache
def one_case_each() -> tuple[ContractCase, ...]:
    """One case for each configuration class."""
    return tuple({type(case.config()): case for case in reversed(contract_cases())}.values())
