"""The commands `hf-mech train NAME`: the scripts of `training`, as modules of the package.

`hf-mech train strips ...` is `python -m training.train_strips ...`, and in an installed package, which has no folder
`training` at its top, `python -m hf_mech.training.train_strips ...`.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hf_mech.training
from hf_mech.cli.console import open_console

if TYPE_CHECKING:
    from rich.table import Table

_FOLDER = Path(hf_mech.training.__path__[0])
_MODULES = {
    name.partition("_")[2]: name
    for name in sorted(module.name for module in pkgutil.iter_modules([str(_FOLDER)]))
    if name.startswith(("train_", "run_"))
}
"""The scripts by the command's name."""

train = typer.Typer(help="Train a model on two cores, on generated data or your own.", no_args_is_help=True)


def _summary(name: str) -> str:
    """The first sentence of a script, which is not imported for it."""
    text = (_FOLDER / f"{_MODULES[name]}.py").read_text("utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")


def _experiment(name: str) -> Any:
    """What a script trains; None for a script that trains nothing."""
    return getattr(importlib.import_module(f"hf_mech.training.{_MODULES[name]}"), "EXPERIMENT", None)


def _complete(context: typer.Context, incomplete: str) -> list[str]:
    """The presets, or the known values of the option before, that begin so, for the shell."""
    given, experiment = context.params.get("arguments") or [], _experiment(str(context.info_name))
    option = next((word[2:] for word in reversed(given) if word.startswith("--")), "")
    known = importlib.import_module("hf_mech.training.engine.arguments").choices(experiment) if experiment else {}
    return [value for value in known.get(option, ()) if value.startswith(incomplete)]


def _run(
    context: typer.Context,
    arguments: Annotated[list[str] | None, typer.Argument(autocompletion=_complete, show_default=False)] = None,
) -> None:
    sys.argv = [sys.argv[0], *(arguments or [])]
    runpy.run_module(f"hf_mech.training.{_MODULES[str(context.info_name)]}", run_name="__main__", alter_sys=True)


for _name in _MODULES:
    own_help = {"ignore_unknown_options": True, "help_option_names": []}
    train.command(_name, help=_summary(_name), context_settings=own_help)(_run)


@train.callback(invoke_without_command=True)
def _options(
    list_all: Annotated[
        bool, typer.Option("--list", help="Print what each trains, its presets and its paper.")
    ] = False,
) -> None:
    """Train a model on two cores, on generated data or your own. `hf-mech train NAME --help` lists NAME's options."""
    if list_all:
        open_console().print(_table())
        raise typer.Exit


def _table() -> Table:
    from rich.table import Table

    from hf_mech.hub.bibliography import title

    table = Table("name", "what it trains", "presets", "paper", box=None, title_justify="left")
    for name in _MODULES:
        experiment = _experiment(name)
        if experiment is not None:
            table.add_row(name, _summary(name), ", ".join(experiment.settings.PRESETS), title(experiment.paper))
    return table
