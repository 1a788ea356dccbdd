"""What is saved is what is loaded, bit for bit, with hf_mech and without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoConfig
from transformers.modeling_utils import PreTrainedModel

import hf_mech

from .case import ContractCase
from .registry import AUTO_CLASSES, contract_cases, registered_models


def everything(model: PreTrainedModel) -> dict[str, Tensor]:
    """All parameters and all buffers, those that are not saved too."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def assert_same(first: PreTrainedModel, second: PreTrainedModel) -> None:
    left, right = everything(first), everything(second)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype, name
        assert torch.equal(left[name], right[name]), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_every_auto_class_loads_every_tensor_exactly(case: ContractCase, dtype: torch.dtype, tmp_path: Path):
    model = case.model().to(dtype)
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"config.json", "model.safetensors"}
    assert load_file(tmp_path / "model.safetensors")
    for auto_class in registered_models()[case.model_class]:
        loaded, info = AUTO_CLASSES[auto_class].from_pretrained(tmp_path, dtype=dtype, output_loading_info=True)
        assert type(loaded) is case.model_class
        assert not any(info.values()), info
        assert_same(model, loaded)


def test_saving_twice_gives_the_same_bytes(case: ContractCase, tmp_path: Path):
    case.model().save_pretrained(tmp_path / "first")
    case.model_class.from_pretrained(tmp_path / "first").save_pretrained(tmp_path / "second")
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name


def test_configuration_survives(case: ContractCase, tmp_path: Path):
    config = case.config()
    config.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert type(loaded) is type(config)
    assert loaded.to_diff_dict() == config.to_diff_dict()


# ------------------------------------------------------------------------------------------- without the package

ELSEWHERE = """
import sys
sys.modules["hf_mech"] = None
from pathlib import Path
import torch
import transformers

for folder in map(Path, sys.argv[1:]):
    for auto_class in (folder / "auto_classes").read_text().split():
        model = getattr(transformers, auto_class).from_pretrained(folder, trust_remote_code=True).eval()
        assert type(model).__module__.startswith("transformers_modules"), type(model)
        with torch.no_grad():
            outputs = model(**torch.load(folder / "inputs.pt"))
        names = (folder / "outputs").read_text().split()
        torch.save({name: outputs[name] for name in names}, folder / f"{auto_class}.pt")
"""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint with its code for every model, loaded and run once where hf_mech cannot be imported."""
    root = tmp_path_factory.mktemp("elsewhere")
    folders = {case.name: root / case.name for case in contract_cases()}
    with pytest.MonkeyPatch.context() as patch:
        for case in contract_cases():
            save_with_code(case, folders[case.name], patch)
    environment = {**os.environ, "HF_MODULES_CACHE": str(root / "modules")}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *map(str, folders.values())],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folders


def save_with_code(case: ContractCase, folder: Path, patch: pytest.MonkeyPatch) -> None:
    auto_classes = registered_models()[case.model_class]
    # `register_for_auto_class` sets these for good; undone here, so that no other test saves code.
    patch.setattr(case.model_class, "_auto_class", None)
    patch.setattr(case.model_class.config_class, "_auto_class", None)
    case.model_class.config_class.register_for_auto_class()
    case.model_class.register_for_auto_class(auto_classes[0])
    model = case.model()
    reference = f"{case.model_class.__module__.split('.')[-1]}.{case.name}"
    model.config.auto_map = dict.fromkeys(auto_classes, reference)
    model.save_pretrained(folder)
    torch.save(case.questions(3, 7, 0), folder / "inputs.pt")
    (folder / "auto_classes").write_text("\n".join(auto_classes))
    (folder / "outputs").write_text("\n".join(case.outputs))


def test_loads_and_computes_the_same_without_the_package(case: ContractCase, checkpoints: dict[str, Path]):
    folder = checkpoints[case.name]
    with torch.no_grad():
        outputs = case.model()(**torch.load(folder / "inputs.pt"))
    for auto_class in registered_models()[case.model_class]:
        elsewhere = torch.load(folder / f"{auto_class}.pt")
        for name in case.outputs:
            assert torch.equal(outputs[name], elsewhere[name]), (auto_class, name)


def test_its_code_never_names_the_package(case: ContractCase, checkpoints: dict[str, Path]):
    for file in checkpoints[case.name].glob("*.py"):
        imports = [line for line in file.read_text().splitlines() if line.lstrip().startswith(("import ", "from "))]
        assert not [line for line in imports if hf_mech.__name__ in line and ">>>" not in line], file.name
