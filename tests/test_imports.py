"""`import hf_mech` registers names and loads nothing heavy; an error in one of our own files is never swallowed."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hf_mech
from hf_mech import models

HEAVY = (
    "transformers.modeling_utils",
    "transformers.trainer",
    "accelerate",
    "datasets",
    "evaluate",
    "matplotlib",
    "numba",
    "pandas",
    "pyarrow",
    "rich",
    "typer",
    "unified_planning",
)

LOADED = """
import json, sys, warnings
import torch
from transformers import AutoModel
warnings.simplefilter("error", UserWarning)
without = set(sys.modules)
import hf_mech
print(json.dumps(sorted(set(sys.modules) - without)))
"""

ROOT = Path(__file__).parents[1]


def test_import_loads_nothing_heavy_and_says_nothing():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    ours = json.loads(line)
    assert "hf_mech" in ours
    assert [name for name in HEAVY if name in ours] == []


@pytest.mark.parametrize(
    "first",
    [
        "from transformers import AutoConfig",
        "from transformers import AutoModelForCausalLM",
        "from hf_mech.models.dat.modeling_dat import DATForCausalLM",
        "import hf_mech.models.checkpoints",
    ],
)
def test_the_families_are_registered_when_transformers_comes(first: str) -> None:
    """`import hf_mech` alone loads nothing large; afterwards the order of imports does not matter."""
    script = f"""
import sys
import hf_mech
assert not {{"torch", "transformers", "numpy"}} & sys.modules.keys()
{first}
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING
config = AutoConfig.for_model("dat")
print(AutoModelForCausalLM._model_mapping[type(config)].__name__, TOKENIZER_MAPPING[type(config)].__name__)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("DATForCausalLM DATTokenizer\n", 0), done.stderr


def test_every_name_of_a_stub_is_there() -> None:
    """`lazy_loader` reads the names that a package gives from its `.pyi`, as type checkers do."""
    stubs = sorted((ROOT / "hf_mech").rglob("__init__.pyi"))
    assert len(stubs) >= 8
    for stub in stubs:
        module = importlib.import_module(".".join(stub.parent.relative_to(ROOT).parts))
        assert module.__all__
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_an_import_error_of_a_family_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").write_text("import a_package_that_nobody_has\n")
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="a_package_that_nobody_has"):
        importlib.reload(hf_mech)


@pytest.mark.parametrize(
    ("module", "task"),
    [
        ("strips.strips_verdicts", "action-verdicts"),
        ("belief_state.belief_state_infilling", "infilling"),
        ("dat.dat_completion", "template-completion"),
    ],
)
def test_a_pipelines_own_file_may_be_imported_first(module: str, task: str):
    """It is what imports transformers' pipelines then, and they register ours."""
    program = f"import hf_mech.models.{module}; from transformers.pipelines import check_task; check_task({task!r})"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
