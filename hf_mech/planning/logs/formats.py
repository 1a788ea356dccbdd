"""The files of logs, each format as numbered rows. A row is a mapping from columns to values, whatever the format.

XES is read with the standard library's expat, which tells lines. pm4py, the usual reader, is under the AGPL, and
brings cvxopt, scipy, lxml and graphviz; here only the attributes of events are needed.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from xml.parsers import expat

from hf_mech.planning.problem import PlanningError


class LogError(PlanningError):
    """A log that cannot be read. `bad` has every bad row, of which the message shows the first.

    Attributes:
        bad: the bad rows, each a `BadRow`, in the order of the log; empty if the log as a whole is at fault.
    """

    def __init__(self, message: str, source: str | None = None, line: int | None = None, bad: tuple[Any, ...] = ()):
        super().__init__(message, source, line)
        self.bad = bad


class Row(NamedTuple):
    """A row of a log: the line where it begins, from 1, and its columns; without columns, what is wrong with it."""

    line: int
    columns: Mapping[str, Any] | None
    problem: str = ""


class Options(NamedTuple):
    """How a file is to be read: the column of the actions' names, and CSV's delimiter, if it is known."""

    action: str = "action"
    delimiter: str | None = None


def open_text(path: Path) -> TextIO:
    """The file as text, unpacked if its name ends with `.gz`. Bytes that are not UTF-8 become lone surrogates.

    Raises:
        LogError: the file cannot be read.
    """
    how: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
    try:
        if path.suffix == ".gz":
            file: Any = gzip.open(path, "rt", **how)  # noqa: SIM115  (the caller closes it)
            file.buffer.peek(1)  # a file that is not gzip is refused here
            return file
        return path.open(**how)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LogError(
            f"{path} cannot be read: {reason}. Give the path of a log; the current folder is {Path.cwd()}.", str(path)
        ) from error


# ----------------------------------------------------------------------------------------------------------- JSON lines


def read_json_lines(path: Path, options: Options) -> Iterator[Row]:
    """One JSON object a line; blank lines are skipped."""
    with open_text(path) as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                columns = json.loads(text)
            except ValueError as error:
                why = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
                yield Row(line, None, f"this is no JSON ({why}); expected one object a line, {{...}}")
                continue
            if isinstance(columns, dict):
                yield Row(line, columns)
            else:
                yield Row(line, None, f"expected a JSON object, {{...}}, got {_short(columns)}")


# ------------------------------------------------------------------------------------------------------------------ CSV


def read_csv(path: Path, options: Options) -> Iterator[Row]:
    """Rows under a header, separated by commas, semicolons, tabs or bars: what parts the header is taken.

    Raises:
        LogError: no header, or one without the column of the actions.
    """
    with open_text(path) as file:
        first = file.readline()
        delimiters = [options.delimiter] if options.delimiter else [",", ";", "\t", "|"]
        headers = [[name.strip() for name in next(csv.reader([first], delimiter=d), [])] for d in delimiters]
        found = [i for i, header in enumerate(headers) if options.action in header]
        if "\0" in first or not first.strip():
            wrong = (
                "expected UTF-8; save the file as UTF-8" if first.strip() else "expected a header; the file is empty"
            )
            raise LogError(f"{path}, line 1: {wrong}.", str(path), 1)
        if not found:
            shown = max(headers, key=len)
            raise LogError(
                f"{path}, line 1: the header has no column {options.action!r} for the actions; its columns are "
                f"{shown}. Name the column, action=... (on the command line --action), or write a header.",
                str(path),
                1,
            )
        header = headers[found[0]]
        rows = csv.reader(file, delimiter=delimiters[found[0]], strict=True)
        while True:
            line = rows.line_num + 2
            try:
                values = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(line, None, f"this is no CSV ({error}); check the quotes")
                continue
            if len(values) == len(header):
                yield Row(line, dict(zip(header, values, strict=True)))
            elif values:
                hint = "put quotes around a value with a delimiter in it" if len(values) > len(header) else "add them"
                yield Row(line, None, f"expected the header's {len(header)} values, got {len(values)}; {hint}")


# ----------------------------------------------------------------------------------------------------------- PDDL plans

_STEP = re.compile(r"\s*(?:\d+(?:\.\d+)?\s*:\s*)?\(([^()]*)\)\s*(?:\[[\d.]*\]\s*)?")


def read_plan(path: Path, options: Options) -> Iterator[Row]:
    """One ground action a line, `(stack a b)`; a start `0.5:` and a duration `[1.0]` may stand around it."""
    with open_text(path) as file:
        for line, text in enumerate(file, 1):
            step = text.partition(";")[0]
            if not step.strip():
                continue
            match = _STEP.fullmatch(step)
            if match and (words := match[1].lower().split()):
                yield Row(line, {"case": str(path), options.action: words[0], "arguments": words[1:]})
            else:
                yield Row(line, None, f"expected a step such as (stack a b), got {_short(text.strip())}")


def objects_of_problem(path: Path) -> frozenset[str]:
    """The objects that a PDDL problem declares, in lower case.

    Raises:
        LogError: the file cannot be read, or is no problem.
    """
    import pyparsing  # unified-planning's own parser needs the domain, too

    with open_text(path) as file:
        text = re.sub(r";.*", "", file.read().lower())  # without comments; lines stay
    try:
        lists = pyparsing.nested_expr().parse_string(text).as_list()[0]
    except pyparsing.ParseException as error:
        raise LogError(f"{path}: this is no PDDL problem ({error}).", str(path), error.lineno) from error
    if "problem" not in (part[0] for part in lists if isinstance(part, list) and part):
        raise LogError(f"{path}: expected a PDDL problem, (define (problem ...) ...), of the plan.", str(path))
    words = next((part[1:] for part in lists if isinstance(part, list) and part[:1] == [":objects"]), [])
    types = {number + 1 for number, word in enumerate(words) if word == "-"}  # a type may be a list, (either a b)
    return frozenset(word for number, word in enumerate(words) if word != "-" and number not in types)


# ------------------------------------------------------------------------------------------------------------------ XES

_DONE, _FAILED = "complete", "ate_abort"
"""The values of lifecycle:transition that are events; others, such as `start`, tell of the same action once more."""


class _Events:
    """Collects `rows`: every event under its own attributes' names, and as case, time and action."""

    def __init__(self, action: str) -> None:
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.action = action
        self.rows: list[Row] = []
        self.open: list[tuple[str, dict[str, Any]]] = []  # the elements around the place that is read
        self.traces = self.line = 0

    def _start(self, name: str, attrs: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "event":
            self.line = self.parser.CurrentLineNumber
        self.traces += name == "trace"
        key, value = attrs.get("key"), attrs.get("value")
        if key is not None and self.open:
            parents = [element for element in self.open if element[0] != "values"]
            parent, inside = parents[-1]
            if parent == "list" and value is not None:
                inside["items"].append(value)
            elif name == "list":
                items: list[str] = []
                inside[key] = items
                self.open.append((name, {"items": items}))
                return
            elif parent in ("event", "trace"):
                inside[key] = value
        self.open.append((name, {}))

    def _end(self, name: str) -> None:
        name, own = self.open.pop()
        if name != "event":
            return
        trace = next((held for kind, held in self.open if kind == "trace"), {})
        transition = str(own.get("lifecycle:transition", _DONE)).lower()
        if transition not in (_DONE, _FAILED):
            return
        columns = {"case": trace.get("concept:name", f"trace {self.traces}"), "time": own.get("time:timestamp")}
        columns = {name: value for name, value in columns.items() if value is not None}
        if transition == _FAILED:
            columns["ok"] = "failed"
        columns |= own
        activity = own.get(self.action, own.get("concept:name"))
        columns[self.action] = None if activity is None else "_".join(activity.split())  # activities are often phrases
        self.rows.append(Row(self.line, columns))


def read_xes(path: Path, options: Options) -> Iterator[Row]:
    """The events of an XES log that are complete or aborted; white space in their names becomes `_`."""
    events = _Events(options.action)
    with open_text(path) as file:
        try:
            for chunk in iter(lambda: file.read(1 << 16), ""):
                events.parser.Parse(chunk.encode("utf-8", "surrogateescape"))
                yield from events.rows
                events.rows.clear()
            events.parser.Parse(b"", True)
        except expat.ExpatError as error:
            yield from events.rows
            yield Row(error.lineno, None, f"this is no XML ({error}); the rest of the file was not read")


FORMATS: dict[str, Callable[[Path, Options], Iterator[Row]]] = {
    "jsonl": read_json_lines,
    "csv": read_csv,
    "plan": read_plan,
    "xes": read_xes,
}

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".plan": "plan",
    ".soln": "plan",
    ".sol": "plan",
    ".xes": "xes",
}


def format_of(path: Path) -> str | None:
    """The format by the file's suffix; None if it is none of ours."""
    return SUFFIXES.get(Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower())


def _short(value: Any, most: int = 60) -> str:
    shown = repr(value)
    return shown if len(shown) <= most else f"{shown[:most]}..."
