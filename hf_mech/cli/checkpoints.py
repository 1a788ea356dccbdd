"""The command `hf-mech checkpoints`: what is trained, where it lies, and its card's example."""

from __future__ import annotations

import ast
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hf_mech.cli.console import open_console, print_pairs

if TYPE_CHECKING:
    from hf_mech.hub.catalogue import CatalogueEntry
    from hf_mech.hub.files import HubError


def complete_name(incomplete: str) -> list[str]:
    """The names of checkpoints that begin so, for the shell."""
    from hf_mech.hub.catalogue import catalogue

    return [entry.name for entry in catalogue() if entry.name.startswith(incomplete)]


def complete_source(incomplete: str) -> list[str]:
    """The names of checkpoints, and the folders, that begin so, for the shell."""
    start = Path(incomplete)
    parent, begun = (start, "") if incomplete.endswith("/") else (start.parent, start.name)
    here = sorted(parent.glob("*/")) if parent.is_dir() else []
    shown = [path for path in here if path.name.startswith(begun) and (begun or not path.name.startswith("."))]
    return [*complete_name(incomplete), *(f"{path}/" for path in shown)]


def list_checkpoints(
    name: Annotated[
        str | None,
        typer.Argument(help="One of them.", show_default=False, autocompletion=complete_name),
    ] = None,
    run: Annotated[bool, typer.Option("--try", help="Run the example of NAME's card, step by step.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the trained checkpoints, and the line that loads each; or show NAME, or try it."""
    from hf_mech.hub.catalogue import catalogue, entry_named

    if run and (name is None or as_json):
        raise typer.BadParameter("needs a NAME, and goes without --json.", param_hint="--try")
    entries = catalogue() if name is None else (entry_named(name),)
    if as_json:
        rows = [_record(entry) for entry in entries]
        typer.echo(json.dumps(rows if name is None else rows[0], indent=1, ensure_ascii=False))
    elif run:
        _try(entries[0].name)
    elif name is not None:
        _show(entries[0])
    elif entries:
        _print_list(entries)
    else:
        typer.echo(
            "This version has no trained checkpoints. In a clone of the project, `make checkpoints` trains them."
        )


# ----------------------------------------------------------------------------------------------------------------------
# The list.


def _record(entry: CatalogueEntry) -> dict[str, Any]:
    from hf_mech.hub.catalogue import source_of

    source = source_of(entry.name)
    return {**asdict(entry), "source": source, "here": Path(source).is_dir(), "load": _line(entry)}


def _line(entry: CatalogueEntry) -> str:
    """The line that loads it."""
    return f"{entry.auto_class}.from_pretrained({json.dumps(_source(entry.name), ensure_ascii=False)})"


def _source(name: str) -> str:
    """The checkpoint's repository, or its folder: the path from the current folder if it is below."""
    from hf_mech.hub.catalogue import source_of

    source = source_of(name)
    if Path(source).is_dir() and Path(source).is_relative_to(Path.cwd()):
        return Path(source).relative_to(Path.cwd()).as_posix()
    return source


def _where(entry: CatalogueEntry) -> str:
    return "here" if _record(entry)["here"] else "on the Hub"


def _print_list(entries: tuple[CatalogueEntry, ...]) -> None:
    """A block for each: the lines that load them are whole, and can be copied, in a narrow terminal too."""
    from rich.table import Table
    from rich.text import Text

    from hf_mech.hub.collection import size_in_words

    console, longest = open_console(), max(len(entry.name) for entry in entries)
    for entry in entries:
        heading = Table.grid(padding=(0, 2))
        heading.add_column(min_width=longest, style="bold cyan")
        heading.add_column(min_width=len("999 kB"), justify="right")
        heading.add_row(Text(entry.name), size_in_words(entry.bytes), _where(entry))
        said = Table.grid()
        for line in (Text(entry.task), Text(entry.headline, "green")):
            said.add_row("    ", line)
        console.print(heading, said)
        console.print(Text(f"    {_line(entry)}\n", "dim"), soft_wrap=True)
    typer.echo("The lines need `import hf_mech` before them. `hf-mech checkpoints NAME --try` runs a card's example.")


def _show(entry: CatalogueEntry) -> None:
    from hf_mech.hub.collection import size_in_words

    rows = {
        "task": entry.task,
        "figure": entry.headline,
        "size": size_in_words(entry.bytes),
        "model type": entry.model_type,
        "where": _where(entry),
    }
    print_pairs(entry.name, rows)
    typer.echo(f"\nimport hf_mech\nfrom transformers import {entry.auto_class}\n\nmodel = {_line(entry)}")


# ----------------------------------------------------------------------------------------------------------------------
# The example of a card.


def _try(name: str) -> None:
    """Runs the first Python block of the card: each statement is shown, and then what it prints or gives."""
    from hf_mech.hub.catalogue import catalogue, source_of
    from hf_mech.hub.snippets import first_snippet, with_sources

    source = source_of(name)
    code = with_sources(first_snippet(_card(name, source)), {entry.name: _source(entry.name) for entry in catalogue()})
    try:
        _run(code, f"<example of {name}>")
    except OSError as error:  # a file of the repository did not arrive
        if Path(source).is_dir():
            raise
        raise _not_here(name, source, error) from error


def _card(name: str, source: str) -> str:
    """The README, from the folder or from the Hub."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub import logging as hub_logging

    from hf_mech.hub.card import CARD_FILE

    if Path(source).is_dir():
        return (Path(source) / CARD_FILE).read_text("utf-8")
    hub_logging.set_verbosity_error()  # one sentence follows, not one for each retry
    try:
        with open_console().status(f"Fetching the card of {source}"):
            return Path(hf_hub_download(source, CARD_FILE)).read_text("utf-8")
    except (OSError, ValueError) as error:  # HTTP errors and a missing cache are OSErrors
        raise _not_here(name, source, error) from error


def _not_here(name: str, source: str, error: Exception) -> HubError:
    from hf_mech.hub.files import HubError

    reason = (str(error).strip() or repr(error)).splitlines()[0].partition(". ")[0].rstrip(".:")
    return HubError(
        f"The checkpoint {name} is neither in this installation nor reachable on the Hub as {source} ({reason}). "
        "Connect to the Hub (is HF_HUB_OFFLINE set?), or train it in a clone of the project: "
        f"make checkpoints NAME={name}"
    )


def _run(code: str, where: str) -> None:
    import linecache

    from rich.syntax import Syntax
    from transformers.utils import logging

    logging.disable_progress_bar()  # of the weights; the output is the example's own
    console, lines, done = open_console(), code.splitlines(), 0
    linecache.cache[where] = (len(code), None, code.splitlines(keepends=True), where)  # a traceback shows the line
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in ast.parse(code, where).body:
        last = step.end_lineno or step.lineno
        console.print(Syntax("\n".join(lines[done:last]).strip("\n"), "python", background_color="default"))
        done = last
        if isinstance(step, ast.Expr):
            value = eval(compile(ast.Expression(step.value), where, "eval"), names)
            if value is not None:
                print(repr(value))
        else:
            exec(compile(ast.Module([step], []), where, "exec"), names)
