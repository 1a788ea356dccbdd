"""`import hf_mech` registers names and loads nothing heavy; an error in one of our own files is never swallowed."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hf_mech

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


def python(code: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs code in a new interpreter that imports what `cwd` holds before anything that is installed."""
    environment = {**os.environ, "PYTHONPATH": str(cwd or Path(hf_mech.__path__[0]).parent)}
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True)


def test_import_loads_nothing_heavy_and_says_nothing():
    done = python(LOADED)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    ours = json.loads(line)
    assert "hf_mech" in ours
    assert [name for name in HEAVY if name in ours] == []


def test_every_name_of_a_stub_is_there() -> None:
    """`lazy_loader` reads the names that a package gives from its `.pyi`, as type checkers do."""
    stubs = sorted((ROOT / "hf_mech").rglob("__init__.pyi"))
    assert len(stubs) >= 8
    for stub in stubs:
        module = importlib.import_module(".".join(stub.parent.relative_to(ROOT).parts))
        assert module.__all__
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_an_import_error_of_a_family_is_not_swallowed(tmp_path: Path):
    copy = tmp_path / "hf_mech"
    shutil.copytree(hf_mech.__path__[0], copy, ignore=shutil.ignore_patterns("__pycache__"))
    broken = copy / "models" / "broken"
    broken.mkdir()
    (broken / "__init__.py").write_text("import a_package_that_nobody_has\n")

    done = python("import hf_mech", cwd=tmp_path)

    assert done.returncode != 0
    assert "ModuleNotFoundError: No module named 'a_package_that_nobody_has'" in done.stderr
    assert str(broken) in done.stderr
