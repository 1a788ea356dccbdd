"""Pages in HTML: one file each, with its style, script and data inside; it opens without a network."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader

from hf_mech.viz.palette import PAGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FOLDER = Path(__file__).with_name("pages")
_AROUND = 4  # lines before and behind the one at fault
_HIGHEST = 24  # cells of a tower


@dataclass(frozen=True)
class Tower:
    """Things on top of one another, such as a stack, with two lines below them.

    Args:
        cells: from the bottom to the top.
        label: the first line, such as a token.
        note: the second line.
        marked: whether the label is marked.
    """

    cells: Sequence[str]
    label: str
    note: str = ""
    marked: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a page of figures.

    Args:
        title: its heading.
        text: a sentence or two below the heading.
        figures: drawn below the text; bytes are the file of a GIF.
        head: the names of the table's columns; empty for no table.
        rows: the table, below the figures.
        towers: side by side, above the figures.
        folded: whether the section is closed at first.
    """

    title: str
    text: str = ""
    figures: Sequence[Figure | bytes] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    towers: Sequence[Tower] = ()
    folded: bool = False


def figures_page(title: str, text: str, sections: Sequence[Section]) -> str:
    """A page of figures and tables, one section below the other. Of a high tower the lowest cells are left out."""
    return _page("figures.html", title, text=text, sections=sections, picture=_picture, highest=_HIGHEST)


def fault_page(error: Exception, source: str = "") -> str:
    """The page of an error: its message, and the line of the source at fault among its neighbours.

    Args:
        error: errors of PSL have `message`, `line` and `column`; of others the text is shown.
        source: the text that has the line.
    """
    line, column = getattr(error, "line", 0), getattr(error, "column", 0)
    lines = dict(enumerate(source.split("\n"), 1))
    heading = "This cannot be run"
    if line in lines:
        heading = f"Line {line}" + (f", column {column}" if column else "")
    around = {number: lines[number] for number in lines if line in lines and abs(number - line) <= _AROUND}
    # Under the line: as wide as what stands before the column.
    before = re.sub(r"[^\t]", " ", lines.get(line, "")[: max(column - 1, 0)])
    message = str(getattr(error, "message", error))
    return _page("fault.html", heading, message=message, around=around, line=line, column=column, before=before)


def whole_page(title: str, body: str, style: str = "", script: str = "", data: str = "") -> str:
    """A page in one file.

    Args:
        title: of the browser's tab.
        body: HTML.
        style: CSS, besides that of all pages.
        script: JavaScript.
        data: JSON, which the script reads.
    """
    # `</script>` or `<!--` in a word of the data must not end or change the element that holds it.
    return _page("page.html", title, body=body, style=style, script=script, data=data.replace("<", "\\u003c"))


def _page(template: str, title: str, **values: Any) -> str:
    """A template of `pages/`, filled in; all but what it calls safe is escaped."""
    pages = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, keep_trailing_newline=True)
    styles = (_FOLDER / "page.css").read_text(encoding="utf-8")
    return pages.get_template(template).render(title=title, palette=PAGE, styles=styles, **values)


def _picture(figure: Figure | bytes) -> str:
    """The figure as an element of the page."""
    if isinstance(figure, bytes):
        return f'<img alt="" src="data:image/gif;base64,{b64encode(figure).decode()}">'
    drawn = StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]
