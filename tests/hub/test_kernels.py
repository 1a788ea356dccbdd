"""`hf-mech kernel`: the folder is a kernel repository, and what is loaded from it computes stack attention."""

from __future__ import annotations

import importlib.util
import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from hf_mech.cli import app
from hf_mech.hub import HubError
from hf_mech.hub.kernels import BACKENDS, write_kernel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels") / "stack-attention"
    result = CliRunner().invoke(app, ["kernel", str(folder), "--repo-id", "someone/stack"])
    assert result.exit_code == 0, result.output
    return folder


def variant(folder: Path, backend: str) -> ModuleType:
    """The variant under its id, as `kernels` imports it."""
    place = folder / "build" / f"torch-{backend}"
    name = json.loads((place / "metadata.json").read_text())["id"]
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, place / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(kernel: Any) -> None:
    actions = torch.randn(2, 9, 3, dtype=torch.float64).softmax(-1).requires_grad_()
    fast, slow = kernel.stack_attention(actions), kernel.stack_attention_reference(actions)
    torch.testing.assert_close(fast, slow)
    grad = torch.randn_like(fast)
    torch.testing.assert_close(*(torch.autograd.grad(alpha, actions, grad)[0] for alpha in (fast, slow)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_variant_computes_stack_attention(folder: Path, backend: str):
    check(variant(folder, backend))


def test_a_variant_imports_torch_and_the_standard_library_alone(folder: Path):
    text = "".join(path.read_text() for path in (folder / "build" / "torch-cuda").glob("*.py"))
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("from ", "import "))}
    assert imported - set(sys.stdlib_module_names) <= {"", "torch", "numpy"}


def test_build_file_and_metadata_agree(folder: Path):
    general = tomllib.loads((folder / "build.toml").read_text())["general"]
    assert general["backends"] == list(BACKENDS)
    for backend in BACKENDS:
        metadata = json.loads((folder / "build" / f"torch-{backend}" / "metadata.json").read_text())
        assert (metadata["name"], metadata["version"]) == (general["name"], general["version"])
        assert metadata["backend"] == {"type": backend}
    assert 'get_kernel("someone/stack"' in (folder / "README.md").read_text()


def test_the_library_loads_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch):
    kernels = pytest.importorskip("kernels")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    check(kernels.get_local_kernel(folder))


def test_a_folder_that_holds_something_is_refused(tmp_path: Path):
    (tmp_path / "note").write_text("")
    with pytest.raises(HubError, match="is not empty"):
        write_kernel(tmp_path, [], name="a", summary="", exports={})
