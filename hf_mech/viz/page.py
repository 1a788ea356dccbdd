"""Pages in HTML: one file each, with its style, script and data inside; it opens without a network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment

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
    """A page of figures and tables, one section below the other."""
    body = f'<main class="sheet"><h1>{escape(title)}</h1><p>{escape(text)}</p>{"".join(map(_section, sections))}</main>'
    return whole_page(title, body)


def fault_page(error: Exception, source: str = "") -> str:
    """The page of an error: its message, and the line of the source at fault among its neighbours.

    Args:
        error: errors of PSL have `message`, `line` and `column`; of others the text is shown.
        source: the text that has the line.
    """
    message = str(getattr(error, "message", error))
    line, column = getattr(error, "line", 0), getattr(error, "column", 0)
    lines = source.split("\n")
    if not 0 < line <= len(lines):
        heading, shown = "This cannot be run", ""
    else:
        heading = f"Line {line}" + (f", column {column}" if column else "")
        shown = _excerpt(lines, line, column)
    body = f'<main class="sheet fault" role="alert"><h1>{heading}</h1><p>{escape(message)}</p>{shown}</main>'
    return whole_page(heading, body)


def _excerpt(lines: Sequence[str], line: int, column: int) -> str:
    """The line, numbers before it and its neighbours, and a mark under its column."""
    shown = []
    for number in range(max(1, line - _AROUND), min(len(lines), line + _AROUND) + 1):
        text = f'<span class="at">{number:>4}  </span>{escape(lines[number - 1])}'
        shown.append(f"<mark>{text}</mark>" if number == line else f"{text}\n")
        if number == line and column:
            before = "".join("\t" if letter == "\t" else " " for letter in lines[line - 1][: column - 1])
            shown.append(f'<span class="at">      </span>{before}<b>^</b>\n')
    return f'<pre tabindex="0"><code>{"".join(shown)}</code></pre>'


def whole_page(title: str, body: str, style: str = "", script: str = "", data: str = "") -> str:
    """A page in one file.

    Args:
        title: of the browser's tab.
        body: HTML.
        style: CSS, besides that of all pages.
        script: JavaScript.
        data: JSON, which the script reads.
    """
    page = Environment(autoescape=True, keep_trailing_newline=True).from_string(_read("page.html"))
    return page.render(
        title=title,
        palette=PAGE,
        styles=_read("page.css") + style,
        body=body,
        script=script,
        # `</script>` or `<!--` in a word of the data must not end or change the element that holds it.
        data=data.replace("<", "\\u003c"),
    )


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _section(section: Section) -> str:
    parts = [f"<p>{escape(section.text)}</p>"] if section.text else []
    if section.towers:
        parts.append(_towers(section))
    parts += [
        f'<figure tabindex="0" aria-label="{escape(section.title)}">{_picture(figure)}</figure>'
        for figure in section.figures
    ]
    if section.head:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in section.head)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in row)}</tr>" for row in section.rows)
        parts.append(
            f'<div class="table" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        )
    heading, body = f"<h2>{escape(section.title)}</h2>", "".join(parts)
    if section.folded:
        return f"<section><details><summary>{heading}</summary>{body}</details></section>"
    return f"<section>{heading}{body}</section>"


def _towers(section: Section) -> str:
    """A list of columns. Of a high one the lowest cells are left out."""
    columns = []
    for tower in section.towers:
        shown = [escape(cell) for cell in tower.cells[-_HIGHEST:]]
        below = len(tower.cells) - len(shown)
        cells = [f"<li>{cell}</li>" for cell in ([f"… {below} below", *shown] if below else shown)]
        marked = ' class="marked"' if tower.marked else ""
        columns.append(
            f"<li{marked}><ol>{''.join(cells)}</ol><b>{escape(tower.label)}</b><span>{escape(tower.note)}</span></li>"
        )
    return f'<ol class="towers" tabindex="0" aria-label="{escape(section.title)}">{"".join(columns)}</ol>'


def _picture(figure: Figure | bytes) -> str:
    """The figure as an element of the page."""
    if isinstance(figure, bytes):
        return f'<img alt="" src="data:image/gif;base64,{b64encode(figure).decode()}">'
    drawn = StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]
