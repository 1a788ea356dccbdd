"""A checkpoint that cannot be right is refused by the family's error; none loads silently."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from .case import ContractCase
from .registry import AUTO_CLASSES, contract_cases, family, registered_models


@pytest.fixture(autouse=True)
def _no_reports() -> None:
    """transformers prints a table of what it could not load; the errors say it."""
    logging.getLogger("transformers").setLevel(logging.ERROR)


def typed(case: ContractCase) -> type[Exception]:
    """The family's error for checkpoints, defined in the family's folder."""
    error = case.model_class._checkpoint_error
    assert issubclass(error, ValueError)
    assert error.__module__.split(".")[-2] == family(case.model_class)
    return error


def saved(case: ContractCase, folder: Path, **weights: Any) -> Path:
    """A checkpoint of the case; `weights` replace those in the file."""
    case.model().save_pretrained(folder)
    file = folder / "model.safetensors"
    save_file({**load_file(file), **weights}, file, metadata={"format": "pt"})
    return folder


def some_weight(case: ContractCase) -> tuple[str, Tensor]:
    """The largest weight in the case's file."""
    state = case.model().state_dict()
    tied = case.model().all_tied_weights_keys
    name = max((name for name in state if name not in tied), key=lambda name: state[name].numel())
    return name, state[name].clone()


def test_a_damaged_file(one: ContractCase, tmp_path: Path):
    """A download that broke off, and a file of something else, also through the Auto classes and among shards."""
    file = saved(one, tmp_path / "one") / "model.safetensors"
    data = file.read_bytes()
    loaders = [one.model_class, *(AUTO_CLASSES[name] for name in registered_models()[one.model_class])]
    for damage in (b"", data[:40], data[:-3], b"\xff" * len(data)):
        file.write_bytes(damage)
        for loader in loaders:
            with pytest.raises(typed(one), match=r"damaged safetensors file.*force_download=True") as caught:
                loader.from_pretrained(file.parent)
            assert str(file.parent) in str(caught.value)
    one.model().save_pretrained(tmp_path / "several", max_shard_size=1)
    shard = sorted((tmp_path / "several").glob("model*.safetensors"))[-1]  # the only one of a model with one weight
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(typed(one), match="damaged safetensors file"):
        one.model_class.from_pretrained(tmp_path / "several")


def test_auto_map_copies_no_other_file(one: ContractCase, tmp_path: Path):
    """Who saves or publishes a model again would otherwise publish a file of his own."""
    (tmp_path / "private.py").write_text("PASSWORD = 'abc'")
    folder, again = saved(one, tmp_path / "saved"), tmp_path / "again"
    config = json.loads((folder / "config.json").read_text())
    for reference in (f"{tmp_path / 'private'}.A", f"user/name--{tmp_path / 'private'}.A", "../private.A"):
        changed = config | {"auto_map": {**config["auto_map"], "AutoModelForSeq2SeqLM": reference}}
        (folder / "config.json").write_text(json.dumps(changed))
        one.model_class.from_pretrained(folder).save_pretrained(again)
        assert {path.name for path in again.glob("*.py")} == {path.name for path in folder.glob("*.py")}
        assert json.loads((again / "config.json").read_text())["auto_map"] == config["auto_map"]


def test_another_model_type(one: ContractCase, tmp_path: Path):
    file = saved(one, tmp_path) / "config.json"
    others = {other.model_class.config_class.model_type for other in contract_cases()} | {"bert", None}
    for other in others - {one.model_class.config_class.model_type}:
        file.write_text(json.dumps({**json.loads(file.read_text()), "model_type": other}))
        with pytest.raises(typed(one), match=f"model type {other!r}, expected '{one.config().model_type}'"):
            one.model_class.from_pretrained(tmp_path)


def test_a_configuration_of_another_family(one: ContractCase, tmp_path: Path):
    saved(one, tmp_path)
    for other in contract_cases():
        if family(other.model_class) != family(one.model_class):
            with pytest.raises(typed(one), match=f"takes a {type(one.config()).__name__}"):
                one.model_class.from_pretrained(tmp_path, config=other.config())


def test_weights_that_are_not_finite(one: ContractCase, tmp_path: Path):
    """Training diverged."""
    name, weight = some_weight(one)
    for dtype, value in (
        (torch.float32, float("nan")),
        (torch.float32, -float("inf")),
        (torch.bfloat16, float("inf")),
        (torch.float16, float("nan")),
    ):
        weight.view(-1)[weight.numel() // 2] = value
        folder = saved(one, tmp_path, **{name: weight.to(dtype)})
        with pytest.raises(typed(one), match="not finite") as caught:
            one.model_class.from_pretrained(folder, dtype=dtype)
        assert f"1 of {weight.numel()} in {name}" in str(caught.value)
    model = one.model()
    with pytest.raises(typed(one), match="The state dict has weights that are not finite"):
        one.model_class.from_pretrained(None, config=model.config, state_dict={**model.state_dict(), name: weight})


def test_large_numbers_are_finite(one: ContractCase, tmp_path: Path):
    """The sum of these overflows, the numbers do not."""
    name, weight = some_weight(one)
    weight.fill_(3e38)
    loaded = one.model_class.from_pretrained(saved(one, tmp_path, **{name: weight}))
    assert torch.equal(loaded.state_dict()[name], weight)


def test_a_weight_of_another_shape(one: ContractCase, tmp_path: Path):
    name, weight = some_weight(one)
    other = torch.cat([weight, weight])
    folder = saved(one, tmp_path, **{name: other})
    with pytest.raises(typed(one)) as caught:
        one.model_class.from_pretrained(folder)
    assert f"{name} is {list(other.shape)} and should be {list(weight.shape)}" in str(caught.value)
    loaded, info = one.model_class.from_pretrained(folder, ignore_mismatched_sizes=True, output_loading_info=True)
    assert [key for key, *_ in info["mismatched_keys"]] == [name]
    assert loaded.state_dict()[name].shape == weight.shape
