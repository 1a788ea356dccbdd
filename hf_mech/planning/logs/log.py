"""Logs as traces: rows of any format become cases of ground actions, the failed ones marked, every place kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tqdm.auto import tqdm

from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.logs.formats import (
    FORMATS,
    SUFFIXES,
    LogError,
    Options,
    Row,
    format_of,
    objects_of_problem,
    open_text,
)
from hf_mech.planning.logs.record import Columns, Refused, seconds_of

if TYPE_CHECKING:
    import datasets

_SHOWN = 10
"""The most bad rows that a message shows."""


class Place(NamedTuple):
    """Where an event comes from: a file and its line, from 1; or a data set's row, from 0."""

    source: str
    number: int
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.source}, {self.unit} {self.number}"


class BadRow(NamedTuple):
    """A row that cannot be read: its place, and what was wrong, expected and got."""

    place: Place
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


@dataclass(frozen=True)
class Log:
    """The cases of a log. A case is a list of ground actions in the order in which they were taken.

    A failed action has the label 1: it changed nothing, and the case goes on after it.

    Attributes:
        traces, labels: the actions, and 1 where one failed; what `learn_lifted_domain` takes.
        cases: the name of each trace's case. A case with a skipped row is several traces: nobody knows what that row
            changed, so what follows it begins anew.
        places: where each action comes from.
        skipped: the rows that were skipped, with `on_error="skip"`.
        unread: the columns of the log that were not read.
    """

    traces: list[list[GroundAction]]
    labels: list[list[int]]
    cases: list[str]
    places: list[list[Place]] = field(repr=False)
    skipped: list[BadRow] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def events(self) -> int:
        """The number of actions, failed ones included."""
        return sum(map(len, self.traces))

    @property
    def failures(self) -> int:
        """The number of actions that failed."""
        return sum(map(sum, self.labels))

    def __str__(self) -> str:
        actions = {action.name for trace in self.traces for action in trace}
        said = f"cases: {len(set(self.cases)):,}, events: {self.events:,}, failed: {self.failures:,}"
        said += f", actions: {len(actions):,}"
        said += f", rows skipped: {len(self.skipped):,}" if self.skipped else ""
        said += f"\ncolumns not read: {', '.join(self.unread)}" if self.unread else ""
        if not any(action.objects for trace in self.traces for action in trace):
            said += "\nno action has an argument: name their columns, arguments=[...] (on the command line --arguments)"
        return said

    def to_dataset(self) -> datasets.Dataset:
        """The traces as a data set with the columns `case`, `actions` (lists of {name, arguments}) and `labels`."""
        import datasets

        actions = [[{"name": a.name, "arguments": list(a.objects)} for a in trace] for trace in self.traces]
        call = {"name": datasets.Value("string"), "arguments": datasets.List(datasets.Value("string"))}
        features = {
            "case": datasets.Value("string"),
            "actions": datasets.List(call),
            "labels": datasets.List(datasets.ClassLabel(names=["ok", "failed"])),
        }
        columns = {"case": self.cases, "actions": actions, "labels": self.labels}
        return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


# ------------------------------------------------------------------------------------------------------------- all rows


@dataclass
class _Entry:
    """A row that was read: its actions, or None if it is bad."""

    place: Place
    case: str | None
    time: float | None
    events: list[tuple[GroundAction, bool]] | None


def read_log(
    source: str | Path | Iterable[Any],
    *,
    case: str = "case",
    time: str = "time",
    action: str = "action",
    arguments: str | Sequence[str] = "arguments",
    ok: str = "ok",
    separator: str | None = None,
    delimiter: str | None = None,
    format: str | None = None,
    problem: str | Path | None = None,
    own_objects: bool = False,
    on_error: Literal["raise", "skip"] = "raise",
    progress: bool = False,
) -> Log:
    """Read a log of actions.

    A row is an event, {case, time, action, arguments, ok}, or a whole trace, {actions: [...], labels: [...]}. Only the
    action must be there. Rows without a case are one case, a file or a data set; rows with a time are sorted by it
    within their case. An action may hold its arguments, `stack(b1,b2)` or `stack b1 b2`. Arguments are a text, a list,
    or a dictionary, also as JSON in a text. The actions of a trace are texts, or dictionaries {name, arguments, ok}.
    `ok` is true, 1, yes or ok, or false, 0, no or failed, and empty means ok.

    An action that failed changed nothing; its label is 1. The labels of a trace are read in the same way.

    Args:
        source: a file, a folder of files, several of them, a `datasets.Dataset`, or records. The formats, by suffix,
            also with `.gz`: JSON lines (`.jsonl`, `.ndjson`, `.json`), CSV (`.csv`, `.tsv`), PDDL plans (`.plan`,
            `.soln`, `.sol`), one case each, and event logs in XES (`.xes`), whose aborted events (`ate_abort`) failed.
        case, time, action, arguments, ok: the names of the columns; `arguments` may be several.
        separator: between arguments in a text; None: white space.
        delimiter: between the columns of CSV; None: the comma, semicolon, tab or bar that parts the header.
        format: jsonl, csv, plan or xes, whatever the suffix.
        problem: the PDDL problem of the plans, or a folder with `<name>.pddl` for each `<name>.plan`; then an object
            that it does not declare makes a bad row.
        own_objects: the objects of each case are its own, whatever they are called, as in plans of several problems:
            `b1` of the third case becomes `b1_3`. Otherwise an object is the same in all cases.
        on_error: "skip" leaves out rows that cannot be read, and keeps them in `Log.skipped`; the case goes on as a
            new trace.
        progress: show a bar.

    Raises:
        LogError: rows that cannot be read, named by file and line, the first ten of them in the message, unless they
            are skipped; a file that cannot be read; a format that is not known; no event at all.
    """
    if on_error not in ("raise", "skip"):
        raise LogError(f"on_error must be 'raise' or 'skip', got {on_error!r}.")
    if separator == "":
        raise LogError("separator must be a text between arguments, or None for white space, got ''.")
    columns = Columns(case, time, action, arguments if isinstance(arguments, str) else tuple(arguments), ok, separator)
    missing, known = columns.named(), dict[str, None]()
    entries: list[_Entry] = []
    bad: list[BadRow] = []
    same: dict[GroundAction, GroundAction] = {}  # equal actions are one object: a long log has few
    rows = _rows(source, format, Options(action, delimiter), problem)
    for place, row, declared in tqdm(rows, "reading", unit=" rows", disable=None if progress else True):
        entry = _Entry(place, None, None, None)
        entries.append(entry)
        if row.columns is None:
            bad.append(BadRow(place, row.problem))
            continue
        missing -= row.columns.keys()
        if missing and isinstance(calls := row.columns.get("actions"), list):
            missing -= {key for call in calls if isinstance(call, Mapping) for key in call}
        if len(known) < 100:
            known.update(dict.fromkeys(row.columns))
        whole = row.columns.get("actions") is not None
        try:
            entry.case = _case(row.columns, case, place if whole else None)
            entry.time = seconds_of(row.columns.get(time))
            entry.events = [(same.setdefault(a, a), failed) for a, failed in columns.events(row.columns)]
            _check_objects(entry.events, declared)
        except Refused as error:
            bad.append(BadRow(place, str(error)))
            entry.events = None
    if missing and known:
        several = " Give several columns one by one, --arguments A --arguments B." if "," in "".join(missing) else ""
        raise LogError(
            f"No row has the columns {sorted(missing)}; the rows have {list(known)}. Correct the names.{several}"
        )
    bad += _uneven(entries, case, time) + _wrong_numbers(entries)
    if bad:
        order = {entry.place: number for number, entry in enumerate(entries)}
        bad.sort(key=lambda row: order[row.place])
    if bad and on_error == "raise":
        raise _refusal(bad, len(entries))
    log = _assemble(entries, bad)
    log.unread.extend(name for name in known if name not in columns.read())
    if own_objects:
        log = _apart(log)
    if not log.events:
        raise _refusal(bad, len(entries)) if bad else LogError(f"The log {_name(source)} has no event.")
    return log


def _name(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"given ({type(source).__name__})"


def _rows(
    source: Any, format: str | None, options: Options, problem: str | Path | None
) -> Iterator[tuple[Place, Row, frozenset[str] | None]]:
    """Every row with its place, and the objects that its PDDL problem declares."""
    if isinstance(source, str | Path):
        source = [source]
    elif isinstance(source, Mapping):
        raise LogError(f"A log is a path, a Dataset or records, got a dictionary of {list(source)}; choose a split.")
    elif not isinstance(source, Iterable) or (hasattr(source, "to_dict") and not hasattr(source, "with_format")):
        raise LogError(
            f"A log is a path, a Dataset or records, got a {type(source).__name__}; for a DataFrame write "
            "read_log(frame.to_dict('records'))."
        )
    elif hasattr(source, "with_format"):
        source = _records(source)
    for number, each in enumerate(source):
        if isinstance(each, str | Path):
            for path in _files(Path(each), format):
                kind = format or format_of(path)
                if not path.exists():
                    open_text(path)  # refuses it
                if kind not in FORMATS:
                    raise LogError(
                        f"{path}: the format is not known; expected a name that ends with {', '.join(SUFFIXES)} (or "
                        f"one of them and .gz), or a format of {', '.join(FORMATS)}, got {format or path.suffix!r}.",
                        str(path),
                    )
                declared = _declared(path, problem)
                for row in FORMATS[kind](path, options):
                    yield Place(str(path), row.line), row, declared
        else:
            place = Place("the log", number, "row")
            yield place, Row(number, each) if isinstance(each, Mapping) else Row(number, None, f"got {each!r}"), None


def _records(dataset: Any) -> Iterator[Mapping[str, Any]]:
    """The rows of a Dataset; ids of actions, as in `hf_mech/strips_traces`, become their names."""
    plain = dataset.with_format(None)
    names = getattr(getattr((plain.features or {}).get("input_ids"), "feature", None), "names", None)
    for row in plain:
        if names and "actions" not in row:
            row = {"actions": [names[i] for i in row["input_ids"]], "labels": row.get("labels")}
        yield row


def _files(path: Path, format: str | None) -> list[Path]:
    """The file itself; of a folder, the logs in it."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.is_file() and (format or format_of(file)))
    if not found:
        raise LogError(f"The folder {path} has no log, a file that ends with {', '.join(SUFFIXES)}.", str(path))
    return found


def _declared(path: Path, problem: str | Path | None) -> frozenset[str] | None:
    if problem is None:
        return None
    file = Path(problem)
    return objects_of_problem(file / f"{path.stem}.pddl" if file.is_dir() else file)


def _check_objects(events: Sequence[tuple[GroundAction, bool]], declared: frozenset[str] | None) -> None:
    for action, _ in events if declared is not None else ():
        if unknown := sorted(set(action.objects) - (declared or frozenset())):
            raise Refused(f"the problem does not declare {', '.join(unknown)}, got {action}; is it another's plan?")


def _case(record: Mapping[str, Any], column: str, own: Place | None) -> str | None:
    """The name of the record's case; a whole trace without one is a case by itself."""
    given = record.get(column)
    if given is None or not str(given).strip():
        return None if own is None else f"{own.unit} {own.number}"
    return str(given).strip()


def _uneven(entries: Sequence[_Entry], case: str, time: str) -> list[BadRow]:
    """Rows without a case or a time, where others have one."""
    bad = []
    good = [entry for entry in entries if entry.events is not None]
    for column, name in (("case", case), ("time", time)):
        has = sum(getattr(entry, column) is not None for entry in good)
        for entry in good if 0 < has < len(good) else ():
            if getattr(entry, column) is None and entry.events is not None:
                bad.append(BadRow(entry.place, f"expected a {column} in {name!r}, as other rows have, got none"))
                entry.events = None
    return bad


def _wrong_numbers(entries: Sequence[_Entry]) -> list[BadRow]:
    """Rows with an action that has another number of arguments than it mostly has."""
    counts: dict[str, Counter[int]] = {}
    for entry in entries:
        for action, _ in entry.events or ():
            counts.setdefault(action.name, Counter())[len(action.objects)] += 1
    usual = {name: count.most_common(1)[0][0] for name, count in counts.items()}
    if all(len(count) == 1 for count in counts.values()):
        return []
    bad = []
    for entry in entries:
        wrong = next((a for a, _ in entry.events or () if len(a.objects) != usual[a.name]), None)
        if wrong is not None:
            problem = (
                f"expected {usual[wrong.name]} arguments of {wrong.name!r}, as it mostly has, got "
                f"{len(wrong.objects)}: {wrong}; give actions with other arguments another name"
            )
            bad.append(BadRow(entry.place, problem))
            entry.events = None
    return bad


def _refusal(bad: Sequence[BadRow], rows: int) -> LogError:
    lines = [f"{len(bad):,} of {rows:,} rows of the log cannot be read:", *(f"  {row}" for row in bad[:_SHOWN])]
    if len(bad) > _SHOWN:
        lines.append(f"  ... and {len(bad) - _SHOWN:,} more")
    lines.append("Correct them, or skip them: on_error='skip' (on the command line: --skip-bad-rows).")
    first = bad[0].place
    return LogError("\n".join(lines), first.source, first.number if first.unit == "line" else None, tuple(bad))


def _assemble(entries: Sequence[_Entry], bad: list[BadRow]) -> Log:
    """The traces, case by case, in the order of the cases' first rows."""
    timed = any(entry.time is not None for entry in entries if entry.events is not None)
    if timed:
        for before, entry in pairwise(entries):  # a bad row stays behind the row before it
            if entry.time is None:
                entry.time = before.time
        first = next(entry.time for entry in entries if entry.time is not None)
        entries = sorted(entries, key=lambda entry: first if entry.time is None else entry.time)
    open_: dict[str, int] = {}  # the trace of each case that the next event joins
    log = Log([], [], [], [], bad)
    for entry in entries:
        name = entry.case if entry.case is not None else entry.place.source
        if entry.events is None:
            if entry.case is None:
                open_.clear()  # any of the cases may have changed
            else:
                open_.pop(name, None)
        if not entry.events:
            continue
        if name not in open_:
            open_[name] = len(log.traces)
            for column in (log.traces, log.labels, log.places):
                column.append([])
            log.cases.append(name)
        number = open_[name]
        for action, failed in entry.events:
            log.traces[number].append(action)
            log.labels[number].append(int(failed))
            log.places[number].append(entry.place)
    return log


def _apart(log: Log) -> Log:
    """The log with objects of other names in each case."""
    numbers = {case: number for number, case in enumerate(dict.fromkeys(log.cases), 1)}
    traces = [
        [GroundAction(action.name, tuple(f"{name}_{numbers[case]}" for name in action.objects)) for action in trace]
        for case, trace in zip(log.cases, log.traces, strict=True)
    ]
    return replace(log, traces=traces)
