"""A wrong value in a configuration is refused by the family's error, however it is given."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from .case import ContractCase
from .registry import family


def typed(case: ContractCase) -> type[Exception]:
    """The family's error for configurations, defined in the family's folder."""
    error = case.model_class.config_class._config_error
    assert issubclass(error, ValueError)
    assert error.__module__.split(".")[-2] == family(case.model_class)
    return error


def written(case: ContractCase, folder: Path, **changes: Any) -> Path:
    """The case's config.json with changes."""
    case.config().save_pretrained(folder)
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder


def test_a_size_out_of_range(one: ContractCase, tmp_path: Path):
    """What a slip of the hand writes into a file: every size has a range."""
    config_class = type(one.config())
    sizes = {field.name for field in fields(config_class) if field.type is int}
    for name in sizes & config_class._config_ranges.keys():
        least, most = config_class._config_ranges[name]
        for wrong in (least - 1, most + 1):
            with pytest.raises(typed(one), match=f"{name} must be at"):
                AutoConfig.from_pretrained(written(one, tmp_path, **{name: wrong}))
    layers = config_class.attribute_map.get("num_hidden_layers", "num_hidden_layers")
    assert sizes & {layers} <= config_class._config_ranges.keys()


@pytest.mark.parametrize("wrong", ["two", 1.5, True, None], ids=repr)
def test_a_size_must_be_an_integer(one: ContractCase, wrong: Any, tmp_path: Path):
    config_class = type(one.config())
    sizes = [field.name for field in fields(config_class) if field.type is int]
    assert sizes
    for name in sizes:
        with pytest.raises(typed(one), match=f"{name} must be int, got"):
            config_class(**{name: wrong})
        with pytest.raises(typed(one), match=f"{name} must be int, got"):
            AutoConfig.from_pretrained(written(one, tmp_path, **{name: wrong}))
        with pytest.raises(typed(one), match=f"{name} must be int, got"):
            setattr(one.config(), name, wrong)


def test_a_number_must_be_finite(one: ContractCase, tmp_path: Path):
    config_class = type(one.config())
    numbers = [field.name for field in fields(config_class) if field.type in (float, float | int)]
    for name in numbers:
        for wrong in (float("nan"), float("inf"), -float("inf")):
            with pytest.raises(typed(one), match=f"{name} must be"):
                config_class(**{name: wrong})
            with pytest.raises(typed(one), match=f"{name} must be"):
                AutoConfig.from_pretrained(written(one, tmp_path, **{name: wrong}))


def test_other_names_of_a_field_are_checked(one: ContractCase):
    """`num_hidden_layers` is `n_layer` in one family and a field in another."""
    config_class = type(one.config())
    for other, name in config_class.attribute_map.items():
        with pytest.raises(typed(one), match=f"{name} must be"):
            config_class(**{other: "two"})


def test_a_misspelt_argument_is_warned_of(
    one: ContractCase, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """transformers keeps any further argument as an attribute, so a misspelt one changed nothing in silence."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    plain = one.config()
    own = [field.name for field in fields(plain) if field.name not in {f.name for f in fields(PreTrainedConfig)}]
    name = max(own, key=len)
    with caplog.at_level(logging.WARNING):
        type(plain)(**{**plain.to_dict(), name[:-1]: 1})
        assert f"no argument {name[:-1]!r}, which changes nothing; did you mean {name!r}?" in caplog.text
        caplog.clear()
        type(plain)(**plain.to_dict(), something_else=1)
        assert not caplog.records
