"""One record of a log, an event or a whole trace, as ground actions, each done or failed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.models.strips.strips_lifted import GroundAction, parse_action

_OK = {
    **dict.fromkeys(("", "true", "1", "yes", "ok", "success", "succeeded", "done", "complete", "completed"), True),
    **dict.fromkeys(("false", "0", "no", "fail", "failed", "failure", "error"), False),
}
_OURS = {"case", "time", "action", "arguments", "ok"}
_XES = ("concept:name", "time:timestamp", "lifecycle:transition")
_NAME = re.compile(r"[^\s(),\ud800-\udfff]+")


class Refused(Exception):
    """What is wrong with a row."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns, and how a record's values become actions."""

    case: str
    time: str
    action: str
    arguments: str | tuple[str, ...]
    ok: str
    separator: str | None
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the named arguments of each action, as first seen

    def named(self) -> set[str]:
        """The columns that have other names than ours, so they must be there."""
        arguments = {self.arguments} if isinstance(self.arguments, str) else set(self.arguments)
        return ({self.case, self.time, self.action, self.ok} | arguments) - _OURS

    def read(self) -> set[str]:
        """The columns that are read."""
        arguments = {self.arguments} if isinstance(self.arguments, str) else set(self.arguments)
        return {self.case, self.time, self.action, self.ok, "actions", "labels", *_XES} | arguments

    def events(self, record: Mapping[str, Any]) -> Iterator[tuple[GroundAction, bool]]:
        """The actions of a record, an event or a whole trace, and whether each failed. Raises Refused."""
        actions = record.get("actions")
        if actions is None:
            yield self._event(record)
            return
        if isinstance(actions, Mapping):  # lists by name, as some data sets store a list of calls
            actions = [dict(zip(actions, values, strict=True)) for values in zip(*actions.values(), strict=True)]
        key = self.arguments if isinstance(self.arguments, str) else "arguments"
        arguments, labels = record.get(key), record.get("labels")
        for name, values in (("actions", actions), (key, arguments), ("labels", labels)):
            if values is not None and (isinstance(values, str | Mapping) or not isinstance(values, Sequence)):
                raise Refused(f"expected a list of {name}, got {values!r}")
            if values is not None and len(values) != len(actions):
                raise Refused(f"expected one of {name} for each of {len(actions)} actions, got {len(values)}")
        for position, action in enumerate(actions):
            call = {self.action: action, key: arguments[position] if arguments else None}
            if isinstance(action, Mapping):
                call = {self.action: action.get("name"), **action}
            elif isinstance(action, list | tuple):
                call = {self.action: action[0] if action else None, key: list(action[1:])}
            try:
                event, failed = self._event(call)
                if labels is not None:
                    failed = _label(labels[position])
            except Refused as error:
                raise Refused(f"action {position}: {error}") from None
            yield event, failed

    def _event(self, record: Mapping[str, Any]) -> tuple[GroundAction, bool]:
        name, columns = record.get(self.action), self.arguments
        if not isinstance(name, str) or not name.strip():
            others = "" if self.action in record else f"; the row has {list(record)}"
            raise Refused(f"expected the name of an action in {self.action!r}, got {name!r}{others}")
        several = not isinstance(columns, str)
        given: Any = [record.get(column) for column in columns] if several else record.get(str(columns))
        objects = self._objects(name, given)
        try:
            action = GroundAction(name.strip(), objects) if objects else parse_action(name)
        except StripsError as error:
            raise Refused(str(error)) from None
        for word in action.name, *action.objects:
            if not _NAME.fullmatch(word):
                raise Refused(_not_a_name(word))
        return action, not _is_ok(record.get(self.ok), self.ok)

    def _objects(self, name: str, given: Any) -> tuple[str, ...]:
        if isinstance(given, str):
            if given.lstrip()[:1] in ("{", "["):  # arguments of a tool call are often JSON in a text
                try:
                    given = json.loads(given)
                except ValueError as error:
                    raise Refused(f"expected JSON in the arguments {given!r}: {error}") from None
            else:
                given = given.split(self.separator)
        if isinstance(given, Mapping):
            keys = self.keys.setdefault(name, tuple(given))
            if keys != tuple(given) and set(keys) != set(given):
                raise Refused(f"expected the arguments {list(keys)}, as {name!r} had before, got {list(given)}")
            given = [given[key] for key in keys]
        if given is None:
            return ()
        if not isinstance(given, Iterable):
            given = [given]
        objects = []
        for value in given:
            if isinstance(value, Mapping | list | tuple):
                raise Refused(f"expected names of objects as arguments, got {value!r}")
            if value is not None and (text := str(value).strip()):
                objects.append(text)
        return tuple(objects)


def _not_a_name(word: str) -> str:
    if re.search("[\ud800-\udfff]", word):
        return f"expected names in UTF-8, got {word.encode('utf-8', 'surrogateescape')!r}; save the file as UTF-8"
    wanted = "expected names of one word without parentheses and commas"
    return f"{wanted}, got {word!r}; rename it, or give the separator of the arguments"


def _label(value: Any) -> bool:
    if value not in (0, 1):
        raise Refused(f"expected the label 0, or 1 if the action failed, got {value!r}")
    return bool(value)


def _is_ok(value: Any, column: str) -> bool:
    """Whether a column `ok` says that the action was done; an empty one does."""
    said = "" if value is None else str(value).strip().lower()
    if said.endswith(".0"):  # a table with gaps makes 1 a 1.0
        said = said[:-2]
    if said == "nan":
        said = ""
    if said not in _OK:
        raise Refused(
            f"expected {column!r} to be true, 1, yes, ok, success, done or empty, or, if the action failed, false, 0, "
            f"no, failed or error, got {value!r}"
        )
    return _OK[said]


def seconds_of(value: Any) -> float | None:
    """A time as a number: a number, or a date of ISO 8601, without a zone in UTC; None if there is none.

    Raises:
        Refused: it is neither.
    """
    if value is None or value == "":
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        try:
            date = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
        except ValueError:
            raise Refused(f"expected a time, a number or a date such as 2026-05-01T12:00:00, got {value!r}") from None
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise Refused(f"expected a time, got {value!r}")
    return seconds
