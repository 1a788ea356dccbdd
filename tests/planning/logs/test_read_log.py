"""Logs of every format become the same traces, and what cannot be read is named by its line."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path
from xml.etree import ElementTree

import datasets
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.strips_lifted import GroundAction, parse_action
from hf_mech.planning.logs import LogError, read_log
from hf_mech.planning.pddl import read as pddl_read

TRACES = [["pick-up b1", "stack b1 b2", "noop"], ["pick-up b3", "pick-up b2", "put-down b3"]]
LABELS = [[0, 0, 0], [0, 1, 0]]
ACTIONS = [[parse_action(action) for action in trace] for trace in TRACES]

CSV = """case,time,action,arguments,ok
one,2026-05-01T10:00:00Z,pick-up,b1,true
two,2026-05-01T10:00:01Z,pick-up,b3,
one,2026-05-01T10:00:03Z,noop,,yes
two,2026-05-01T10:00:02Z,pick-up,b2,failed
one,2026-05-01T10:00:02Z,stack,b1 b2,1
two,2026-05-01T10:00:03Z,put-down,b3,OK
"""
XES = """<?xml version="1.0" encoding="UTF-8"?>
<log xmlns="http://www.xes-standard.org/">
 <global scope="event"><string key="concept:name" value="unknown"/></global>
 <trace><string key="concept:name" value="one"/>
  <event><string key="concept:name" value="pick-up"/><string key="arguments" value="b1"/></event>
  <event><string key="concept:name" value="stack"/>
   <list key="arguments"><values><string key="x" value="b1"/><string key="y" value="b2"/></values></list>
   <string key="lifecycle:transition" value="complete"/></event>
  <event><string key="concept:name" value="noop"/><string key="lifecycle:transition" value="start"/></event>
  <event><string key="concept:name" value="noop"><int key="nested" value="1"/></string></event>
 </trace>
 <trace><string key="concept:name" value="two"/>
  <event><string key="concept:name" value="pick-up"/><string key="arguments" value="b3"/></event>
  <event><string key="concept:name" value="pick-up"/><string key="arguments" value="b2"/>
   <string key="lifecycle:transition" value="ate_abort"/></event>
  <event><string key="concept:name" value="put-down"/><string key="arguments" value="b3"/></event>
 </trace>
</log>
"""


def events() -> list[dict]:
    """The events, by their times, in turn from both cases."""
    return [
        {"case": str(case), "action": action.name, "arguments": list(action.objects), "ok": not label}
        for pair in zip(*(zip(ACTIONS[c], LABELS[c], [c] * 3, strict=True) for c in (0, 1)), strict=True)
        for action, label, case in pair
    ]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def lines(records: list[dict]) -> str:
    return "".join(json.dumps(record) + "\n\n" for record in records)


def test_csv(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "log.csv", CSV))
    assert (log.traces, log.labels, log.cases) == (ACTIONS, LABELS, ["one", "two"])
    assert [place.number for place in log.places[0]] == [2, 6, 4]
    assert str(log.places[1][1]) == f"{tmp_path / 'log.csv'}, line 5"
    assert (log.events, log.failures) == (6, 1)
    assert str(log) == "cases: 2, events: 6, failed: 1, actions: 4"


def test_a_csv_of_other_habits(tmp_path: Path) -> None:
    text = "\ufeffjob;when;tool;from;onto;done\na;2;stack;b1;b2;0\na;1;pick-up;b1;;\n\na;3;noop;;;1\n"
    log = read_log(
        write(tmp_path / "calls.txt", text),
        format="csv",
        case="job",
        time="when",
        action="tool",
        arguments=["from", "onto"],
        ok="done",
    )
    assert log.traces == [ACTIONS[0]]
    assert log.labels == [[0, 1, 0]]
    assert [place.number for place in log.places[0]] == [3, 2, 5]


def test_arguments_with_a_separator(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "log.csv", 'action,arguments\nstack,"b1, b2"\nstack(b1 b2),\n'), separator=",")
    assert log.traces == [[ACTIONS[0][1]] * 2]


def test_lines_are_those_of_the_file_where_values_have_several(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "log.csv", 'action,note\nnoop,"two\nlines"\nnoop,\n'))
    assert [place.number for place in log.places[0]] == [2, 4]


def test_json_lines_of_events(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "log.jsonl", lines(events())))
    assert (log.traces, log.labels, log.cases) == (ACTIONS, LABELS, ["0", "1"])
    assert log.places[1][0].number == 3


def test_json_lines_of_traces(tmp_path: Path) -> None:
    rows = [{"actions": TRACES[0]}, {"actions": TRACES[1], "labels": LABELS[1]}]
    log = read_log(write(tmp_path / "log.jsonl", lines(rows)))
    assert (log.traces, log.labels) == (ACTIONS, LABELS)
    assert log.cases == ["line 1", "line 3"]


def test_named_arguments_of_tool_calls(tmp_path: Path) -> None:
    rows = [
        {"tool": "stack", "input": {"from": "b1", "onto": "b2"}},
        {"tool": "stack", "input": json.dumps({"onto": "b2", "from": "b1"})},
        {"tool": "noop", "input": "{}"},
    ]
    log = read_log(write(tmp_path / "log.jsonl", lines(rows)), action="tool", arguments="input")
    assert log.traces == [[ACTIONS[0][1], ACTIONS[0][1], GroundAction("noop")]]
    rows[1]["input"] = {"from": "b1"}
    with pytest.raises(LogError, match=r"line 3: expected the arguments \['from', 'onto'\]"):
        read_log(write(tmp_path / "log.jsonl", lines(rows)), action="tool", arguments="input")


def test_traces_of_tool_calls_with_other_names(tmp_path: Path) -> None:
    rows = [{"actions": [{"tool": "stack", "input": {"from": "b1", "onto": "b2"}, "status": "no"}, {"tool": "noop"}]}]
    log = read_log(write(tmp_path / "log.jsonl", lines(rows)), action="tool", arguments="input", ok="status")
    assert (log.traces, log.labels) == ([[ACTIONS[0][1], GroundAction("noop")]], [[1, 0]])


def test_plans_of_a_folder_with_their_problems(tmp_path: Path) -> None:
    write(tmp_path / "p1.plan", "; cost = 3\n(PICK-UP b1)\n0.5: (stack b1 b2) [1.0] ; a step\n\n(noop)\n")
    write(tmp_path / "p2.soln", "(pick-up b3)\n(put-down b3)")
    head = "(define (problem p) (:domain d) ; objects next\n"
    write(
        tmp_path / "p1.pddl", head + "(:objects b1 b2 - (either block stone) ; (\n b9 - block) (:init) (:goal (and)))"
    )
    write(tmp_path / "p2.pddl", head + "(:objects B3))")
    log = read_log(tmp_path, problem=tmp_path)
    assert log.traces == [ACTIONS[0], [ACTIONS[1][0], ACTIONS[1][2]]]
    assert log.places[0][1].number == 3
    write(tmp_path / "p2.pddl", head + "(:objects b1 - block))")
    with pytest.raises(LogError, match="does not declare b3, got pick-up"):
        read_log(tmp_path, problem=tmp_path)


def test_the_bundled_problems_declare_their_objects() -> None:
    from hf_mech.planning.logs.formats import objects_of_problem

    for name in pddl_read.BUNDLED:
        problem = pddl_read.load_bundled(name)
        file = pddl_read._FILES[name]
        used = {word for action in problem.domain.action_names for word in parse_action(action).objects}
        assert used <= objects_of_problem(file), file
    with pytest.raises(LogError, match="expected a PDDL problem"):
        objects_of_problem(file.parent / "domain.pddl")


def test_xes(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "log.xes", XES))
    assert (log.traces, log.labels, log.cases) == (ACTIONS, LABELS, ["one", "two"])
    assert [place.number for place in log.places[0]] == [5, 6, 10]


def test_what_activities_are_called_in_event_logs(tmp_path: Path) -> None:
    text = XES.replace('value="noop"', 'value="Create  Fine"').replace("</log>", "")
    with pytest.raises(LogError, match=r"line 19: this is no XML \(no element found: line 19, column 0\); the rest"):
        read_log(write(tmp_path / "log.xes", text))
    log = read_log(write(tmp_path / "log.xes", text), on_error="skip")
    assert log.traces[0][2] == GroundAction("Create_Fine")
    assert len(log.skipped) == 1


@pytest.mark.parametrize("name", ["log.csv", "log.xes"])
def test_a_packed_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress((CSV if name == "log.csv" else XES).encode()))
    assert read_log(path).traces == ACTIONS
    path.write_text("no gzip")
    with pytest.raises(LogError, match="cannot be read"):
        read_log(path)


def test_a_data_set_of_structured_calls(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "log.csv", CSV))
    again = read_log(log.to_dataset())
    assert (again.traces, again.labels, again.cases) == (log.traces, log.labels, log.cases)
    assert str(again.places[1][0]) == "the log, row 1"


def test_a_data_set_of_lists() -> None:
    rows = datasets.Dataset.from_dict(
        {
            "actions": [[action.name for action in trace] for trace in ACTIONS],
            "arguments": [[list(action.objects) for action in trace] for trace in ACTIONS],
            "labels": LABELS,
        }
    )
    log = read_log(rows.with_format("torch"))
    assert (log.traces, log.labels) == (ACTIONS, LABELS)


def test_the_data_set_of_strips_traces() -> None:
    names = datasets.List(datasets.ClassLabel(names=["stack(b1,b2)", "noop"]))
    features = datasets.Features({"input_ids": names, "labels": datasets.List(datasets.Value("int64"))})
    rows = datasets.Dataset.from_dict({"input_ids": [[1, 0]], "labels": [[0, 1]]}, features=features)
    log = read_log(rows)
    assert (log.traces, log.labels) == ([[ACTIONS[0][2], ACTIONS[0][1]]], [[0, 1]])


def test_cases_with_objects_of_their_own(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "log.csv", CSV), own_objects=True)
    assert log.traces[0][1] == GroundAction("stack", ("b1_1", "b2_1"))
    assert log.traces[1][0] == GroundAction("pick-up", ("b3_2",))
    skipped = read_log(write(tmp_path / "log.csv", CSV.replace("b2,1", "b2,2")), on_error="skip", own_objects=True)
    assert skipped.cases == ["one", "two", "one"]
    assert skipped.traces[0][0].objects == ("b1_1",)


def test_several_files_are_one_log(tmp_path: Path) -> None:
    head, *rows = CSV.splitlines(keepends=True)
    first = write(tmp_path / "1.csv", head + "".join(rows[:3]))
    second = write(tmp_path / "2.csv", head + "".join(rows[3:]))
    assert read_log([first, str(second)]).traces == ACTIONS


# ------------------------------------------------------------------------------------------------------------- bad rows


BAD = [
    ("one,soon,noop,,", "expected a time, a number or a date"),
    ("one,nan,noop,,", "expected a time, got 'nan'"),
    ("one,5,noop,,perhaps", "no, failed or error, got 'perhaps'"),
    ("one,5,,,", "expected the name of an action in 'action', got ''"),
    ("one,5,noop,", "expected the header's 5 values, got 4"),
    ("one,5,stack,b1,b2,", "got 6; put quotes around a value with a delimiter"),
    (",5,noop,,", "expected a case in 'case', as other rows have, got none"),
    ("one,,noop,,", "expected a time in 'time', as other rows have, got none"),
    ("one,5,stack,b1 b2 b3,", "expected 2 arguments of 'stack', as it mostly has, got 3: stack(b1,b2,b3)"),
    ('one,5,stack,"b1,b2",', "got 'b1,b2'; rename it, or give the separator"),
    ('one,5,stack,"{""from"": [1]}",', "expected names of objects as arguments, got [1]"),
    ('one,5,stack,"{",', "expected JSON in the arguments '{'"),
    ('one,5,noop,"",""oops', "this is no CSV"),
]


@pytest.mark.parametrize(("row", "said"), BAD, ids=[row for row, _ in BAD])
def test_bad_rows_of_csv(row: str, said: str, tmp_path: Path) -> None:
    good = "case,time,action,arguments,ok\none,1,stack,b1 b2,\none,2,stack,b1 b2,\n"
    path = write(tmp_path / "log.csv", good + row + "\none,9,noop,,\n")
    with pytest.raises(LogError) as caught:
        read_log(path)
    assert f"{path}, line 4: " in str(caught.value)
    assert said in str(caught.value)
    assert (caught.value.source, caught.value.line, len(caught.value.bad)) == (str(path), 4, 1)
    log = read_log(path, on_error="skip")
    assert [len(trace) for trace in log.traces] == [2, 1]  # nobody knows what the bad row changed
    assert [row.place.number for row in log.skipped] == [4]


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes("action,note\nnoop,caf\xe9\ncaf\xe9,\n".encode("latin1"))
    with pytest.raises(LogError, match=r"1 of 2 rows .*\n.*line 3: expected names in UTF-8"):
        read_log(path)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "this is no JSON"),
        ("[]", r"expected a JSON object, {...}, got []"),
        ('{"case": "one"}', "expected the name of an action in 'action', got None"),
        ('{"case": "one", "action": 3}', "got 3"),
        ('{"case": "one", "action": "noop", "arguments": [["b1"]]}', "expected names of objects"),
        ('{"actions": "noop"}', "expected a list of actions, got 'noop'"),
        ('{"actions": ["noop"], "labels": 1}', "expected a list of labels, got 1"),
        ('{"actions": [1]}', "action 0: expected the name of an action in 'action', got 1"),
        ('{"actions": ["noop"], "labels": [0, 1]}', "expected one of labels for each of 1 actions, got 2"),
        ('{"actions": ["noop", "noop"], "labels": [0, 2]}', "action 1: expected the label 0, or 1"),
        ('{"actions": [{"name": "noop", "ok": "hm"}]}', "action 0: expected 'ok' to be"),
    ],
)
def test_bad_rows_of_json(row: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", '{"case": "one", "action": "noop"}\n' + row + "\n")
    with pytest.raises(LogError) as caught:
        read_log(path)
    assert f"{path}, line 2: " in str(caught.value)
    assert said in str(caught.value)


def test_a_bad_step_of_a_plan(tmp_path: Path) -> None:
    path = write(tmp_path / "a.plan", "(noop)\nstack b1 b2\n()\n")
    with pytest.raises(LogError, match=r"line 2: expected a step such as \(stack a b\), got 'stack b1 b2'") as caught:
        read_log(path)
    assert [row.place.number for row in caught.value.bad] == [2, 3]


def test_the_first_ten_bad_rows_are_shown(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", "{\n" * 25)
    with pytest.raises(LogError, match=r"25 of 25 rows of the log cannot be read") as caught:
        read_log(path)
    assert str(caught.value).count("no JSON") == 10
    assert "... and 15 more" in str(caught.value)
    with pytest.raises(LogError, match="25 of 25"):  # nothing is left
        read_log(path, on_error="skip")


# ------------------------------------------------------------------------------------------------------- the whole log


def test_logs_that_are_refused_as_a_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", "case,verb\n1,noop\n")
    for source, how, said in (
        (path, {}, r"has no column 'action' for the actions; its columns are \['case', 'verb'\]"),
        (
            path,
            {"action": "verb", "ok": "okay"},
            r"No row has the columns \['okay'\]; the rows have \['case', 'verb'\]",
        ),
        (path, {"on_error": "ignore"}, "on_error must be"),
        (path, {"separator": ""}, "separator must be"),
        (path, {"format": "xlsx"}, "the format is not known"),
        (tmp_path / "none.csv", {}, "none.csv cannot be read: No such file"),
        (write(tmp_path / "log.doc", ""), {}, "the format is not known; expected a name that ends with .jsonl"),
        (write(tmp_path / "empty.csv", ""), {}, "the file is empty"),
        (write(tmp_path / "blank.jsonl", "\n"), {}, "has no event"),
        (datasets.DatasetDict(), {}, "choose a split"),
        (None, {}, "got a NoneType"),
    ):
        with pytest.raises(LogError, match=said):
            read_log(source, **how)
    (tmp_path / "folder").mkdir()
    with pytest.raises(LogError, match="has no log"):
        read_log(tmp_path / "folder")


def test_a_frame_is_refused_with_the_way_out() -> None:
    import pandas

    frame = pandas.DataFrame({"action": ["noop", "stack(b1,b2)"], "ok": [1, float("nan")]})
    with pytest.raises(LogError, match="to_dict"):
        read_log(frame)
    assert read_log(frame.to_dict("records")).labels == [[0, 0]]


# --------------------------------------------------------------------------------------------------------- all formats

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_./:é☃<&>", min_size=1, max_size=6)
CASES = st.lists(
    st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3), st.booleans()), min_size=1, max_size=5),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases=CASES, dice=st.randoms(use_true_random=False))
def test_every_format_says_the_same(cases: list, dice: random.Random, tmp_path: Path) -> None:
    places = {name: str(len(objects)) for case in cases for name, objects, _ in case}
    cases = [
        [(name + places[name], (objects + ["x"] * 3)[: int(places[name])], ok) for name, objects, ok in case]
        for case in cases
    ]
    traces = [[GroundAction(name, tuple(objects)) for name, objects, _ in case] for case in cases]
    labels = [[int(not ok) for *_, ok in case] for case in cases]
    rows = [
        {"case": f"c{number}", "time": time, "action": name, "arguments": objects, "ok": ok}
        for number, case in enumerate(cases)
        for time, (name, objects, ok) in enumerate(case)
    ]
    dice.shuffle(rows)
    with (tmp_path / "log.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(row | {"arguments": " ".join(row["arguments"])} for row in rows)
    write(tmp_path / "log.jsonl", lines(rows))
    root = ElementTree.Element("log")
    for number, case in enumerate(cases):
        trace = ElementTree.SubElement(root, "trace")
        ElementTree.SubElement(trace, "string", key="concept:name", value=f"c{number}")
        for name, objects, ok in case:
            event = ElementTree.SubElement(trace, "event")
            for key, value in {"concept:name": name, "arguments": " ".join(objects), "ok": str(ok).lower()}.items():
                ElementTree.SubElement(event, "string", key=key, value=value)
    ElementTree.ElementTree(root).write(tmp_path / "log.xes", encoding="utf-8")
    for source in (tmp_path / "log.csv", tmp_path / "log.jsonl", tmp_path / "log.xes", rows):
        log = read_log(source)
        read = dict(zip(log.cases, zip(log.traces, log.labels, strict=True), strict=True))
        assert [read[f"c{number}"] for number in range(len(cases))] == list(zip(traces, labels, strict=True)), source
    for number, case in enumerate(cases):
        steps = "".join(f"({' '.join([name, *objects])})\n" for name, objects, _ in case)
        write(tmp_path / f"{number}.plan", steps)
    plans = read_log([tmp_path / f"{number}.plan" for number in range(len(cases))])
    assert plans.traces == traces


def test_what_a_log_did_not_read(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("run,operation,arm,outcome\n1,pick,left,fail\n1,pick,right,done\n")
    log = read_log(file, action="operation")
    assert log.unread == ["run", "arm", "outcome"]
    assert "columns not read: run, arm, outcome" in str(log)
    assert "no action has an argument" in str(log)
    log = read_log(file, case="run", action="operation", arguments="arm", ok="outcome")
    assert (log.unread, log.labels) == ([], [[1, 0]])
    assert str(log) == "cases: 1, events: 2, failed: 1, actions: 1"


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (b"action,arguments\npick,\xe9s\n", {}, r"expected names in UTF-8, got b'\xe9s'; save the file as UTF-8"),
        ("action\npick\n".encode("utf-16"), {}, "expected UTF-8; save the file as UTF-8"),
        (b"", {}, "the file is empty"),
        (b"action,arguments\n", {"ok": "done"}, "has no event"),
        (b"action,state\npick,gone\n", {"ok": "state"}, "expected 'state' to be true, 1, yes"),
        (b"action,a,b\npick,x,y\n", {"arguments": "a,b"}, "--arguments A --arguments B"),
    ],
)
def test_how_to_mend_a_file(tmp_path: Path, content: bytes, options: dict[str, str], said: str) -> None:
    file = tmp_path / "runs.csv"
    file.write_bytes(content)
    with pytest.raises(LogError) as caught:
        read_log(file, **options)
    assert said in str(caught.value)


def test_a_record_without_the_action_shows_its_columns() -> None:
    with pytest.raises(LogError, match=r"'action', got None; the row has \['name', 'input'\]"):
        read_log([{"name": "pick", "input": {}}])


def test_a_file_that_is_not_there_is_named_before_its_format(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="No such file"):
        read_log(tmp_path / "sample")
