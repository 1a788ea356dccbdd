"""Types, kinds and touches are what a walk through the traces finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.learning.events import Pattern, bits_of, key_of, kinds_of, read_steps
from hf_mech.planning.problem import PlanningError
from tests.planning.lifted.learning import naive
from tests.planning.lifted.learning.naive import Case, cases


@given(cases())
@settings(max_examples=60)
def test_the_arrays_are_the_log(case: Case):
    steps, flat = case.steps, list(itertools.chain(*case.log))
    rows = zip(steps.action.tolist(), steps.arguments.tolist(), strict=True)
    read = [(steps.names[a], tuple(steps.objects[each] for each in own if each >= 0)) for a, own in rows]
    assert read == [tuple(action) for action, _ in flat]
    assert steps.failed.tolist() == [bool(failed) for _, failed in flat]
    assert np.diff(steps.starts).tolist() == [len(trace) for trace in case.log]
    assert steps.trace.tolist() == [number for number, trace in enumerate(case.log) for _ in trace]
    for count in range(1, len(case.log) + 1):
        if any(case.log[:count]):
            assert len(steps.first(count).action) == sum(map(len, case.log[:count]))


@given(cases())
@settings(max_examples=60)
def test_types_are_the_closure_of_shared_objects(case: Case):
    found: dict[int, set[tuple[str, int]]] = {}
    for name, types in zip(case.steps.names, case.steps.types, strict=True):
        for place, type_ in enumerate(types):
            found.setdefault(type_, set()).add((name, place))
    assert set(map(frozenset, found.values())) == naive.types_by_closure(case.log)
    assert sorted(found) == list(range(len(found))) == list(case.steps.objects_of)
    for type_, objects in case.steps.objects_of.items():
        seen = {a.objects[place] for a, _ in itertools.chain(*case.log) for n, place in found[type_] if n == a.name}
        assert {case.steps.objects[each] for each in objects} == seen


@given(cases(), st.integers(0, 3))
@settings(max_examples=60)
def test_kinds_have_every_choice_of_places_once(case: Case, most: int):
    steps, expected = case.steps, set()
    for schema, types in enumerate(steps.types):
        for size in range(most + 1):
            for places in itertools.product(range(len(types)), repeat=size):
                own = tuple(types[place] for place in places)
                if len(set(places)) == size and own == tuple(sorted(own)):
                    expected.add((own, Pattern(schema, places)))
    found = [(kind.types, pattern) for kind in kinds_of(steps, most) for pattern in kind.patterns]
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(cases())
@settings(max_examples=60)
def test_one_of_the_mirror_images_is_canonical(case: Case):
    """Patterns of one action and one set of places are images of each other; one stands for all."""
    for kind in case.kinds:
        for _, group in itertools.groupby(
            sorted(range(len(kind.patterns)), key=lambda p: (kind.patterns[p].action, sorted(kind.patterns[p].places))),
            key=lambda p: (kind.patterns[p].action, sorted(kind.patterns[p].places)),
        ):
            assert sum(kind.canonical(pattern) for pattern in group) == 1


@given(cases())
@settings(max_examples=60)
def test_touches_are_those_of_a_walk(case: Case):
    for kind, touches in zip(case.kinds, case.touches, strict=True):
        expected = naive.touched(case, kind)
        able = naive.possible(case, kind)
        numbers = {name: number for number, name in enumerate(case.steps.objects)}
        tuples = {key_of((numbers[each] for each in own), len(numbers)): own for own in able}
        assert len(tuples) == len(able)
        groups = {}
        for group, (key, trace) in enumerate(zip(touches.keys.tolist(), touches.trace.tolist(), strict=True)):
            events = range(touches.starts[group], touches.starts[group + 1])
            times = touches.time[events].tolist()
            assert times == sorted(set(times))
            groups[trace, tuples[key]] = {
                int(touches.time[event]): (set(bits_of(int(touches.done[event]))), 0)
                if touches.done[event]
                else (set(bits_of(int(touches.failed[event]))), 1)
                for event in events
            }
            assert set(bits_of(int(touches.possible[group]))) == able[tuples[key]]
        assert groups == expected
        assert not (touches.done & touches.failed).any()


def test_an_object_twice_in_an_action_is_one_event_of_all_its_patterns():
    case = naive.case_of([[(GroundAction("join", ("a", "a")), 0), (GroundAction("join", ("a", "b")), 1)]])
    (single,) = (t for k, t in zip(case.kinds, case.touches, strict=True) if len(k.types) == 1)
    assert (single.done.tolist(), single.failed.tolist()) == ([3, 0, 0], [0, 1, 2])
    (pair,) = (t for k, t in zip(case.kinds, case.touches, strict=True) if len(k.types) == 2)
    assert (pair.keys.tolist(), pair.done.tolist(), pair.failed.tolist()) == ([0, 1, 2], [3, 0, 0], [0, 1, 2])


def test_all_forms_of_an_action_are_the_same():
    forms = ["go a b", "(go a b)", "go(a,b)", ("go", "a", "b"), ["go", "a", "b"], GroundAction("go", ("a", "b"))]
    steps = read_steps([forms])
    assert (steps.names, steps.objects, len(steps.action)) == (("go",), ("a", "b"), 6)
    assert (steps.action == 0).all()
    assert (steps.arguments == [0, 1]).all()


@pytest.mark.parametrize(
    ("traces", "labels", "says"),
    [
        ([], None, "no traces to learn from; give at least one"),
        ([[], []], [[], []], "no traces to learn from"),
        ("go a", None, "Trace 0 must be a list of actions, got the string 'g'"),
        (["go a"], None, r"Trace 0 must be a list of actions, got the string 'go a'; write \['go a'\]"),
        ([["go a"], 5], None, "Trace 1 must be a list of actions, got 5"),
        ([["go a"], None], None, "Trace 1 must be a list of actions, got None"),
        ([["go a"], ["go b", 5]], None, "Trace 1: The action at position 1 must be a text .* got 5"),
        ([["go a", ""]], None, "Trace 0: The action at position 1 must be a text .* got ''"),
        ([["go a", ["go", 1]]], None, "position 1 must be a text"),
        ([["go a", [["go"], "a"]]], None, "position 1 must be a text"),
        (
            [["go a"], ["go a b"]],
            None,
            "'go' has 2 objects at position 0 of trace 1, and 1 before.* names of their own",
        ),
        ([["go a", "go b"]], [[0]], r"Trace 0 needs a label for each of its 2 actions, 0 \(done\) or 1 .*got \[0\]"),
        ([["go a"]], [[2]], r"Trace 0 needs a label .* got \[2\]"),
        ([["go a"]], [["0"]], "Trace 0 needs a label"),
        ([["go a"]], [[None]], "Trace 0 needs a label"),
        ([["go a"], ["go b"]], [[0]], r"Trace 1 needs a label"),
        ([["go a"]], [[0], [1]], "got 1 traces, labels of 2"),
        ([["go a"], ["go b"]], [0, 1], "Trace 0 needs a label for each of its 1 actions, .* got 0"),
        ([["go a"]], [None], "Trace 0 needs a label for each of its 1 actions, .* got None"),
        ([["go a"]], 0, "Labels are lists, one for each trace.* got 0"),
        (5, None, "Traces are lists of actions.* got 5"),
    ],
)
def test_logs_that_make_no_sense(traces, labels, says):
    with pytest.raises(PlanningError, match=says):
        read_steps(traces, labels)
