"""How the package is built: imports run one way, and names of files and colours stand in one place each."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx

from hf_mech.models.copies import copies

ROOT = Path(__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("hf_mech", "dataset_builders", "training")
    for path in (ROOT / package).rglob("*.py")
}


def imported(module: str, path: Path) -> Iterator[str]:
    """The modules of ours that a module imports: at its top, in functions, and for type checkers."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*parents, *([node.module] if node.module else [])])
            names = [f"{source}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else source for name in names if name in MODULES or source in MODULES)


def test_no_modules_import_each_other() -> None:
    graph = networkx.DiGraph((module, other) for module, path in MODULES.items() for other in imported(module, path))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    assert graph.number_of_edges() > 200
    assert [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1] == []


def test_no_figure_is_called_like_a_file_of_a_model() -> None:
    names = [{path.name for path in (ROOT / "hf_mech" / folder).rglob("*.py")} for folder in ("models", "viz")]
    assert set.intersection(*names) == {"__init__.py"}


def test_a_folder_has_a_dozen_modules_at_most() -> None:
    """But for the models' folders, flat because they travel with a checkpoint, and the commands, one an experiment."""
    paths = [path for path in MODULES.values() if path.name != "__init__.py"]
    commands = {path for path in (ROOT / "training").glob("*.py") if path.name.startswith(("train_", "run_"))}
    modules = Counter(path.parent for path in paths if path not in commands)
    models = ROOT / "hf_mech" / "models"
    assert {str(folder): n for folder, n in modules.items() if n > 12 and models not in folder.parents} == {}


def test_experiments_know_only_the_engine() -> None:
    """No experiment imports another, and the engine imports none."""
    for module, path in MODULES.items():
        if module.startswith("training.") and path.parent.parent == ROOT / "training":
            own = ".".join(module.split(".")[:2])
            ours = {name for name in imported(module, path) if name.startswith("training.")}
            assert {name for name in ours if not name.startswith((own, "training.engine"))} == set(), module


def test_colours_stand_in_the_palette_alone() -> None:
    found = {path.name for path in (ROOT / "hf_mech/viz").glob("*.py") if re.search(r"#[0-9a-f]{6}", path.read_text())}
    assert found == {"palette.py"}


def test_the_files_that_every_family_carries_are_copies() -> None:
    """What to do if it fails: `make format`."""
    assert len(copies()) >= 6
    assert {str(path.relative_to(ROOT)) for path, text in copies().items() if path.read_text("utf-8") != text} == set()
