"""What commands print with: a console whose width does not depend on a pipe, and pairs of names and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 120
"""The width of tables in a file or a pipe, in characters."""


def open_console() -> Console:
    """A console of rich, on stdout."""
    from rich.console import Console

    made = Console()
    if not made.is_terminal:
        made.width = WIDTH
    return made


def print_pairs(title: str, rows: dict[str, str]) -> None:
    """Prints names and values under a title."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", title_style="bold", show_header=False, box=None)
    for name, value in rows.items():
        table.add_row(Text(name, "cyan"), Text(value))
    open_console().print(table)
