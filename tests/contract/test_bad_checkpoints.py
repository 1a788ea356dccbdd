"""A checkpoint that cannot be right is refused by the family's error before it costs anything; none loads silently."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from .case import ContractCase
from .memory import memory_limit
from .registry import AUTO_CLASSES, contract_cases, family, registered_models
from .test_bad_configs import each

MIB = 2**20

pytestmark = pytest.mark.every_head_is_slow


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


# ------------------------------------------------------------------------------------------------------------- damage


DAMAGES = {
    "empty": lambda data: b"",
    "short": lambda data: data[:5],
    "half a header": lambda data: data[:40],
    "truncated": lambda data: data[:-3],
    "garbage": lambda data: b"\xff" * len(data),
    "another format": lambda data: b"PK\x03\x04" + data[4:],
    "other offsets": lambda data: data.replace(b"[0,", b"[9,", 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file(case: ContractCase, damage: str, tmp_path: Path):
    file = saved(case, tmp_path) / "model.safetensors"
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    loaders = [case.model_class, *(AUTO_CLASSES[name] for name in registered_models()[case.model_class])]
    for loader in loaders:
        with pytest.raises(typed(case), match=r"damaged safetensors file.*force_download=True") as caught:
            loader.from_pretrained(tmp_path)
        assert str(tmp_path) in str(caught.value)


INDICES = {
    "a list": "[]",
    "no map": "{}",
    "a number": '{"metadata": {}, "weight_map": 5}',
    "numbers": '{"metadata": {}, "weight_map": {"a": 3}}',
    "a list as a file": '{"metadata": {}, "weight_map": {"a": ["b"]}}',
    "half": '{"weight',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("index", INDICES)
def test_a_malformed_index(case: ContractCase, index: str, tmp_path: Path):
    case.model().save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00001.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(INDICES[index])
    with pytest.raises(typed(case), match="index of its weights' files that is malformed") as caught:
        case.model_class.from_pretrained(tmp_path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("content", ["[1]", '"gpt2"', "5", "null", '{"a": ' * 100_000])
def test_a_configuration_that_is_no_object(case: ContractCase, content: str, tmp_path: Path):
    (saved(case, tmp_path) / "config.json").write_text(content)
    with pytest.raises(typed(case), match=r"config\.json that is malformed"):
        case.model_class.from_pretrained(tmp_path)


def test_auto_map_copies_no_other_file(case: ContractCase, tmp_path: Path):
    """Who saves or publishes a model again would otherwise publish a file of his own."""
    (tmp_path / "private.py").write_text("PASSWORD = 'abc'")
    folder, again = saved(case, tmp_path / "saved"), tmp_path / "again"
    config = json.loads((folder / "config.json").read_text())
    private = tmp_path / "private"
    for reference in (f"{private}.A", f"user/name--{private}.A", "../private.A", "a" * 300 + ".A", "", "x\0.A", 5):
        changed = config | {"auto_map": {**config["auto_map"], "AutoModelForSeq2SeqLM": reference}}
        (folder / "config.json").write_text(json.dumps(changed))
        case.model_class.from_pretrained(folder).save_pretrained(again)
        assert {path.name for path in again.glob("*.py")} == {path.name for path in folder.glob("*.py")}
    for auto_map in (5, "private.A", ["private.A"], None):
        (folder / "config.json").write_text(json.dumps(config | {"auto_map": auto_map}))
        case.model_class.from_pretrained(folder).save_pretrained(again)
        assert {path.name for path in again.glob("*.py")} == {path.name for path in folder.glob("*.py")}


def test_a_damaged_shard(case: ContractCase, tmp_path: Path):
    case.model().save_pretrained(tmp_path, max_shard_size=1)
    shard = sorted(tmp_path.glob("model*.safetensors"))[-1]  # the only one of a model with one weight
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(typed(case), match="damaged safetensors file"):
        case.model_class.from_pretrained(tmp_path)


def test_another_model_type(case: ContractCase, tmp_path: Path):
    file = saved(case, tmp_path) / "config.json"
    others = {other.model_class.config_class.model_type for other in contract_cases()} | {"bert", None}
    for other in others - {case.model_class.config_class.model_type}:
        file.write_text(json.dumps({**json.loads(file.read_text()), "model_type": other}))
        with pytest.raises(typed(case), match=f"model type {other!r}, expected '{case.config().model_type}'"):
            case.model_class.from_pretrained(tmp_path)


def test_a_configuration_of_another_family(case: ContractCase, tmp_path: Path):
    saved(case, tmp_path)
    for other in contract_cases():
        if family(other.model_class) != family(case.model_class):
            with pytest.raises(typed(case), match=f"takes a {type(case.config()).__name__}"):
                case.model_class.from_pretrained(tmp_path, config=other.config())


# ------------------------------------------------------------------------------------------------------------ weights


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_weights_that_are_not_finite(case: ContractCase, value: float, dtype: torch.dtype, tmp_path: Path):
    name, weight = some_weight(case)
    weight.view(-1)[weight.numel() // 2] = value
    model = case.model().to(dtype)
    state = {**model.state_dict(), name: weight.to(dtype)}
    saved_in = saved(case, tmp_path, **{name: weight.to(dtype)})
    with pytest.raises(typed(case), match="not finite") as caught:
        case.model_class.from_pretrained(saved_in, dtype=dtype)
    assert f"1 of {weight.numel()} in {name}" in str(caught.value)
    with pytest.raises(typed(case), match="The state dict has weights that are not finite"):
        case.model_class.from_pretrained(None, config=model.config, state_dict=state)


def test_large_numbers_are_finite(case: ContractCase, tmp_path: Path):
    """The sum of these overflows, the numbers do not."""
    name, weight = some_weight(case)
    weight.fill_(3e38)
    loaded = case.model_class.from_pretrained(saved(case, tmp_path, **{name: weight}))
    assert torch.equal(loaded.state_dict()[name], weight)


def test_a_weight_of_another_shape(case: ContractCase, tmp_path: Path):
    name, weight = some_weight(case)
    other = torch.cat([weight, weight])
    folder = saved(case, tmp_path / "one", **{name: other})
    said = f"{name} is {list(other.shape)} and should be {list(weight.shape)}"
    with pytest.raises(typed(case)) as caught:
        case.model_class.from_pretrained(folder)
    assert said in str(caught.value)
    loaded, info = case.model_class.from_pretrained(folder, ignore_mismatched_sizes=True, output_loading_info=True)
    assert [key for key, *_ in info["mismatched_keys"]] == [name]
    assert loaded.state_dict()[name].shape == weight.shape

    state = {**case.model().state_dict(), name: other}
    (tmp_path / "two").mkdir()
    case.config().save_pretrained(tmp_path / "two")
    torch.save(state, tmp_path / "two" / "pytorch_model.bin")
    for arguments in (
        {"pretrained_model_name_or_path": tmp_path / "two", "use_safetensors": False},
        {"pretrained_model_name_or_path": None, "config": case.config(), "state_dict": state},
    ):
        with pytest.raises(typed(case)) as caught:
            case.model_class.from_pretrained(**arguments)
        assert said in str(caught.value)


def test_shapes_are_compared_before_a_weight_is_read(
    case: ContractCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    name, weight = some_weight(case)
    folder = saved(case, tmp_path, **{name: torch.cat([weight, weight])})

    def read(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr("transformers.modeling_utils.convert_and_load_state_dict_in_model", read)
    with pytest.raises(typed(case), match="should be"):
        case.model_class.from_pretrained(folder)


# -------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("size", [10**9, 100_000])
def test_a_small_file_with_huge_sizes(case: ContractCase, size: int, tmp_path: Path):
    """Every integer of the configuration in turn: refused by the family, or loaded with little memory."""
    file = saved(case, tmp_path) / "config.json"
    plain = json.loads(file.read_text())
    refused = 0
    for field in fields(case.model_class.config_class):
        if field.type not in (int, int | None):
            continue
        file.write_text(json.dumps({**plain, field.name: size}))
        with memory_limit(512 * MIB):
            try:
                case.model_class.from_pretrained(tmp_path)
            except (typed(case), case.model_class.config_class._config_error):
                refused += 1
    assert refused


@each
def test_far_more_layers_than_the_file_has(one: ContractCase, tmp_path: Path):
    """No weight has another shape; all that are lacking would be random."""
    file, small = saved(one, tmp_path) / "config.json", len(one.model().state_dict())
    plain, refused = json.loads(file.read_text()), set()
    names = [field.name for field in fields(one.model_class.config_class) if field.type is int]
    for name in names:
        file.write_text(json.dumps({**plain, name: 150}))
        try:
            loaded = one.model_class.from_pretrained(tmp_path)
        except (typed(one), one.model_class.config_class._config_error) as error:
            refused.add(name if "asks for" in str(error) else "")
        else:
            assert len(loaded.state_dict()) <= 2 * small + 1_000, name
    layers = one.model_class.config_class.attribute_map.get("num_hidden_layers", "num_hidden_layers")
    assert layers in refused or layers not in names


def test_a_file_without_any_weight_of_a_huge_configuration(case: ContractCase, tmp_path: Path):
    """Names that do not match: there is no shape to compare, and all would be made anew."""
    file = tmp_path / "config.json"
    case.model().save_pretrained(tmp_path)
    save_file({"nothing.of.ours": torch.zeros(1)}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    plain, model = json.loads(file.read_text()), case.model()
    for field in fields(case.model_class.config_class):
        if field.type is not int:
            continue
        file.write_text(json.dumps({**plain, field.name: 100_000}))
        with memory_limit(512 * MIB):
            try:
                loaded = case.model_class.from_pretrained(tmp_path)
            except (typed(case), case.model_class.config_class._config_error):
                continue
        assert loaded.num_parameters() <= model.num_parameters() + 2**24 + 1
