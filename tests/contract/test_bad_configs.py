"""Any JSON in any field of any configuration gives a configuration or the family's error, in little time and memory."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from .case import ContractCase
from .memory import memory_limit
from .registry import contract_cases, family

#: What transformers reads from a configuration besides its fields.
MORE = (
    "attn_implementation",
    "layer_types",
    "num_labels",
    "output_attentions",
    "per_layer_config",
    "rope_parameters",
    "text_config",
    "torch_dtype",
)
#: One case for each configuration class.
ONES = {type(case.config()): case for case in contract_cases()}
each = pytest.mark.parametrize("one", ONES.values(), ids=[config_class.__name__ for config_class in ONES])
HUGE = 10**9
MIB = 2**20

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-3, 20)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1", "two", "auto", "float32", "nn", HUGE, -HUGE, 10**40]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("0"), inner, max_size=3),
    max_leaves=6,
)


def names(config_class: type[PreTrainedConfig]) -> list[str]:
    """Every name that config.json may hold."""
    return sorted({field.name for field in fields(config_class)} | config_class.attribute_map.keys() | set(MORE))


def read_as(config_class: type[PreTrainedConfig], name: str) -> str:
    """The field that a name stands for."""
    return config_class.attribute_map.get(name, name)


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


@settings(max_examples=150)
@given(data=st.data())
@each
def test_any_json_in_any_field(one: ContractCase, data: st.DataObject):
    plain = one.config().to_dict()
    name, value = data.draw(st.sampled_from(names(type(one.config())))), data.draw(json_values)
    with memory_limit(512 * MIB):
        try:
            made = type(one.config()).from_dict({**plain, name: value})
        except typed(one):
            return
        made.to_json_string()


@settings(max_examples=60)
@given(data=st.data())
@each
def test_any_value_set_later(one: ContractCase, data: st.DataObject):
    config = one.config()
    name, value = data.draw(st.sampled_from(names(type(config)))), data.draw(json_values)
    with memory_limit(512 * MIB):
        try:
            setattr(config, name, value)
        except typed(one):
            return


@each
def test_huge_numbers_in_every_field(one: ContractCase, tmp_path: Path):
    """Through a file, and all the fields that say how many of something there are."""
    config_class, refused = type(one.config()), {}
    for name in names(config_class):
        for value in (HUGE, -HUGE, HUGE + 0.5):
            with memory_limit(512 * MIB):
                try:
                    AutoConfig.from_pretrained(written(one, tmp_path, **{name: value}))
                except typed(one) as error:
                    refused[name, value] = str(error)
    assert {("num_labels", HUGE), ("num_attention_heads", HUGE)} <= refused.keys()
    unclear = {
        (name, value): text
        for (name, value), text in refused.items()
        if value == HUGE and name not in MORE and read_as(config_class, name) not in text
    }
    assert not unclear


@pytest.mark.parametrize("wrong", ["two", 1.5, True, None, [], {}, float("nan")], ids=repr)
@each
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


@each
def test_a_number_must_be_finite(one: ContractCase, tmp_path: Path):
    config_class = type(one.config())
    numbers = [field.name for field in fields(config_class) if field.type in (float, float | int)]
    for name in numbers:
        for wrong in (float("nan"), float("inf"), -float("inf")):
            with pytest.raises(typed(one), match=f"{name} must be"):
                config_class(**{name: wrong})
            with pytest.raises(typed(one), match=f"{name} must be"):
                AutoConfig.from_pretrained(written(one, tmp_path, **{name: wrong}))


@each
def test_other_names_of_a_field_are_checked(one: ContractCase):
    """`num_hidden_layers` is `n_layer` in one family and a field in another."""
    config_class = type(one.config())
    for other, name in config_class.attribute_map.items():
        with pytest.raises(typed(one), match=f"{name} must be"):
            config_class(**{other: "two"})


@each
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
