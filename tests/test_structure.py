"""How the package is built: imports run one way, and names of files and colours stand in one place each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]
FLOORS = (
    ("data", "hub", "models", "viz"),
    ("probing",),
    ("control", "languages", "lookahead", "planning", "programs"),
    ("metrics",),
    ("dataset_builders",),
    ("training",),
    ("cli",),
)
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("hf_mech", "dataset_builders", "training")
    for path in (ROOT / package).rglob("*.py")
}


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a file: at its top, in functions, and for type checkers."""
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(module: str, path: Path) -> Iterator[str]:
    """The modules of ours that a module imports."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        else:
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*parents, *([node.module] if node.module else [])])
            names = [f"{source}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else source for name in names if name in MODULES or source in MODULES)


def test_no_modules_import_each_other() -> None:
    graph = networkx.DiGraph((module, other) for module, path in MODULES.items() for other in imported(module, path))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    assert graph.number_of_edges() > 200
    assert [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1] == []


def room(module: str) -> str:
    """The name at the top of hf_mech that a module lies under; for other packages the package."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "hf_mech" else package


def test_imports_go_down_the_floors() -> None:
    """A room imports those of lower floors, and none beside it."""
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    rooms = {room(module) for module in MODULES} - {""}
    assert rooms == floor.keys()
    upwards = {
        f"{module} imports {other}"
        for module, path in MODULES.items()
        for other in imported(module, path)
        if room(module) and room(other) and room(module) != room(other) and floor[room(module)] <= floor[room(other)]
    }
    assert upwards == set()


def test_the_package_has_one_style_of_import() -> None:
    """By the whole name; only in a model's folder, which travels with a checkpoint, as `from .sibling import name`."""
    relative = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for module, path in MODULES.items()
        if module.startswith("hf_mech.") and path.parent.parent != ROOT / "hf_mech" / "models"
        for node in statements(path)
        if isinstance(node, ast.ImportFrom) and node.level
    }
    assert relative == set()


def test_experiments_know_only_the_engine() -> None:
    """No experiment imports another, and the engine imports none."""
    for module, path in MODULES.items():
        if module.startswith("training.") and path.parent.parent == ROOT / "training":
            own = ".".join(module.split(".")[:2])
            ours = {name for name in imported(module, path) if name.startswith("training.")}
            assert {name for name in ours if not name.startswith((own, "training.engine"))} == set(), module


def test_colours_stand_in_the_palette_alone() -> None:
    found = {path.name for path in (ROOT / "hf_mech").rglob("*.py") if re.search(r"#[0-9a-f]{6}", path.read_text())}
    assert found == {"palette.py"}


def test_no_file_lies_in_git_twice() -> None:
    """Byte for byte, of the Python files that say more than a docstring."""
    texts: dict[str, list[str]] = {}
    for path in MODULES.values():
        if len((text := path.read_text("utf-8")).splitlines()) > 1:
            texts.setdefault(text, []).append(str(path.relative_to(ROOT)))
    assert [paths for paths in texts.values() if len(paths) > 1] == []
