"""`load_dataset("hf_mech/<name>", config, **overrides)` for every module of `hf_mech.dataset_builders`.

Since `datasets` gave up dataset scripts, a name finds its builder through `datasets.load.dataset_module_factory` alone.
`install` wraps that one function: for `hf_mech/<name>` with a module `dataset_builders/<name>.py` it answers with that
module, and hands every other path on to the stock function. `num_proc`, streaming, config listing and the cache then
work as for any other dataset.

The name of the cache holds a hash of the builder's code and of all the project's code that it imports, so an edit
makes a new cache and never reads old rows.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from functools import cache, wraps
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import wrapt

if TYPE_CHECKING:
    from datasets.load import DatasetModule

NAMESPACE = "hf_mech"
BUILDERS = f"{NAMESPACE}.dataset_builders"
_WRAPPED = "_hf_mech_local_datasets"  # marks the wrapped function, so that it is wrapped once
_IMPORTERS = ("datasets.inspect",)  # modules that hold the function under their own name


def install() -> None:
    """Make `load_dataset("hf_mech/<name>")` find the local builders. Costs nothing until `datasets` is imported.

    Once is enough; to call it again, before or after `datasets` is imported, does no harm.
    """
    wrapt.register_post_import_hook(_wrap_factory, "datasets.load")


def local_dataset_names() -> list[str]:
    """The names that `load_dataset` finds here: `hf_mech/<module>` for every module of `dataset_builders`, sorted.

    A module whose name begins with an underscore is a helper, not a data set.
    """
    modules = pkgutil.iter_modules(importlib.import_module(BUILDERS).__path__)
    return sorted(f"{NAMESPACE}/{m.name}" for m in modules if not m.name.startswith("_"))


def _wrap_factory(load: ModuleType) -> None:
    stock: Callable[..., DatasetModule] = load.dataset_module_factory
    if hasattr(stock, _WRAPPED):
        return

    @wraps(stock)
    def dataset_module_factory(path: str, *args: Any, **kwargs: Any) -> DatasetModule:
        namespace, _, name = str(path).partition("/")
        if namespace != NAMESPACE:
            return stock(path, *args, **kwargs)
        if path in local_dataset_names():
            module = f"{BUILDERS}.{name}"
            # A repo_id makes messages and the cache folder read as they do for a dataset of the Hub.
            return load.DatasetModule(module, code_hash(module), {"dataset_name": name, "repo_id": path})
        try:
            return stock(path, *args, **kwargs)
        except Exception as error:
            error.add_note(f"hf_mech brings these datasets of its own: {', '.join(local_dataset_names())}.")
            raise

    setattr(dataset_module_factory, _WRAPPED, True)
    load.dataset_module_factory = dataset_module_factory  # type: ignore[attr-defined]
    for name in _IMPORTERS:  # only those that took the stock function before we came
        importer = sys.modules.get(name)
        if importer is not None and getattr(importer, "dataset_module_factory", None) is stock:
            importer.dataset_module_factory = dataset_module_factory  # type: ignore[attr-defined]


@cache
def code_hash(module: str) -> str:
    """A hash of the source of a module and of every module of the same project that it imports, directly or not.

    Taken once in a process, for a module that was imported already runs as it was then: restart Python after an edit.

    Raises:
        ModuleNotFoundError: there is no such module.
        ImportError: a module has no Python source.
    """
    digest = hashlib.sha256()
    for name, source in sorted(_project_sources(module).items()):
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()


def _project_sources(module: str) -> dict[str, bytes]:
    """The source of `module` and, by name, of all modules under the same package that it leads to."""
    sources: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in sources:
            continue
        spec = _find(name)
        if spec is None:
            if name == module:
                raise ModuleNotFoundError(f"There is no module {module!r} to take the hash of.", name=module)
            continue  # `from package.module import name` may name a function: its module is in the list anyway
        if spec.origin is None:
            continue  # a folder without __init__.py has no code of its own
        if Path(spec.origin).suffix != ".py":
            raise ImportError(f"{name!r} ({spec.origin}) has no Python source; install the project from its sources.")
        sources[name] = Path(spec.origin).read_bytes()
        waiting += _imports(sources[name], spec)
    return sources


def _find(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # find_spec("module.function") ends here: the parent is a module and has no modules of its own.
        if error.name is not None and name.startswith(error.name):
            return None
        raise


def _imports(source: bytes, spec: ModuleSpec) -> list[str]:
    """What the source imports from this project: `import a.b` as "a.b", `from a import b` as "a" and "a.b"."""
    package = spec.name if spec.submodule_search_locations is not None else spec.name.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return [n for n in names if n.partition(".")[0] == NAMESPACE]
