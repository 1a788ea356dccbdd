"""The two-part code: its cells are a simulation's, and its bits are the formula's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.domains import instance
from hf_mech.planning.lifted.learning.choose import Choice
from hf_mech.planning.lifted.learning.code import Code, broken_steps, code_length_reference, forbidden_cells
from hf_mech.planning.lifted.learning.events import bits_of, kinds_of, read_steps, touches_of
from hf_mech.planning.lifted.learning.rules import Rule, Search
from hf_mech.planning.lifted.walks import LiftedWalks, LogSettings
from tests.planning.lifted.learning import naive
from tests.planning.lifted.learning.naive import Case, case_of, cases, rules_of


def cells_of(case: Case, rule: Rule) -> np.ndarray:
    patterns = len(case.kinds[rule.kind].patterns)
    return forbidden_cells(rule, patterns, case.touches[rule.kind], case.steps, case.universe)


def possible(case: Case) -> list[list[tuple]]:
    """For each trace: the actions of the log whose objects all occur in it, in the order of the cells."""
    numbers = {name: number for number, name in enumerate(case.steps.objects)}
    schemas = {name: number for number, name in enumerate(case.steps.names)}
    every = {action for action, _ in itertools.chain(*case.log)}
    ordered = sorted(every, key=lambda a: (schemas[a.name], [numbers[each] for each in a.objects]))
    objects = [{each for action, _ in trace for each in action.objects} for trace in case.log]
    return [[action for action in ordered if set(action.objects) <= own] for own in objects]


@given(cases())
@settings(max_examples=50)
def test_cells_are_the_actions_that_a_trace_could_have_taken(case: Case):
    own, universe = possible(case), case.universe
    flat = [(number, action) for number, trace in enumerate(case.log) for action, _ in trace]
    assert universe.size.tolist() == [len(own[number]) for number, _ in flat]
    assert universe.base.tolist() == np.cumsum([0, *universe.size])[:-1].tolist()
    assert universe.taken.tolist() == [
        base + own[number].index(action) for base, (number, action) in zip(universe.base, flat, strict=True)
    ]
    assert universe.step.tolist() == [step for step, size in enumerate(universe.size) for _ in range(size)]
    assert [case.steps.names[each] for each in universe.schema] == [a.name for number, _ in flat for a in own[number]]


@given(cases(), st.data())
@settings(max_examples=60)
def test_forbidden_cells_are_those_of_a_simulation(case: Case, data: st.DataObject):
    own, universe = possible(case), case.universe
    for rule in data.draw(rules_of(case.kinds)):
        expected, base = [], iter(universe.base)
        for number, trace in enumerate(case.log):
            for known in naive.falsified(case, [rule], trace):
                first = int(next(base))
                expected += [first + i for i, each in enumerate(own[number]) if naive.forbidden(case, known, each)]
        assert sorted(cells_of(case, rule).tolist()) == expected


@given(cases(), st.data())
@settings(max_examples=60)
def test_broken_steps_are_those_of_a_simulation(case: Case, data: st.DataObject):
    """An atom is true from an add to the next delete, false from a delete to the next add, and unknown before."""
    for rule in data.draw(rules_of(case.kinds)):
        kind, adds = case.kinds[rule.kind], set(bits_of(rule.adds))
        deletes = data.draw(st.sets(st.integers(0, len(kind.patterns) - 1))) | {rule.delete}
        true, false, step = set(), set(), -1
        for trace in case.log:
            value: dict[tuple, bool] = {}
            for action, failed in trace:
                step += 1
                if failed:
                    continue
                for own, patterns in naive.matches(case, kind, action).items():
                    if rule.need in patterns and own in value:
                        (true if value[own] else false).add(step)
                    if patterns & (adds | deletes):
                        value[own] = bool(patterns & adds)
        mask = sum(1 << pattern for pattern in deletes)
        found = broken_steps(case.touches[rule.kind], case.steps, rule.adds, mask, rule.need)
        assert [each.tolist() for each in found] == [sorted(true), sorted(false)]


CHANCES = st.sampled_from([0.001, 0.03, 0.2])
WORTH = st.sampled_from([1.0, 0.3])


def length(case: Case, rules: list[Rule], code: Code, habits: dict[Rule, float] | None = None) -> float:
    weights = code.weights.tolist()
    chances = code.epsilon, code.unexplained
    return code_length_reference(case.steps, case.kinds, rules, weights, *chances, habits, code.walks, code.uniform)


@given(cases(), st.data(), CHANCES, CHANCES, WORTH, st.booleans())
@settings(max_examples=60)
def test_the_bits_are_the_formula(
    case: Case, data: st.DataObject, epsilon: float, unexplained: float, walks: float, uniform: bool
):
    """With failures, exceptions, habits and rules taken back; and a gain is a difference of two lengths."""
    rules = data.draw(rules_of(case.kinds))
    code = Code(case.steps, case.universe, epsilon, walks, uniform)
    code.unexplained = unexplained
    code.fit()
    assert code.bits == pytest.approx(length(case, [], code), abs=1e-6)
    habit, *rules = rules
    code.add_habit(cells_of(case, habit), 0.25)
    assert code.bits == pytest.approx(length(case, [], code, {habit: 0.25}), abs=1e-4)
    for number, rule in enumerate(rules):
        gain, broken = code.gain(cells_of(case, rule))
        before, after = (length(case, rules[:count], code, {habit: 0.25}) for count in (number, number + 1))
        assert gain == pytest.approx(before - after, abs=1e-2)  # weights of cells are single numbers
        exceptions = int((~code.right & ~case.steps.failed).sum())
        code.add(cells_of(case, rule))
        assert code.bits == pytest.approx(length(case, rules[: number + 1], code, {habit: 0.25}), abs=1e-4)
        assert int((~code.right & ~case.steps.failed).sum()) == exceptions + broken
        assert code.weights.sum() == pytest.approx(1)
    wrong = [verdict for trace in case.log for verdict in naive.verdicts(case, rules, trace)]
    assert (~code.right).tolist() == [bool(v) != f for v, f in zip(wrong, case.steps.failed.tolist(), strict=True)]
    for rule in rules:
        code.add(cells_of(case, rule), -1)
    assert code.bits == pytest.approx(length(case, [], code, {habit: 0.25}), abs=1e-4)


@given(cases(failures=False), st.data(), WORTH)
@settings(max_examples=60)
def test_the_gain_of_a_habit_is_the_difference_of_two_lengths(case: Case, data: st.DataObject, walks: float):
    """For the weights before it, of a log without failures and exceptions."""
    habit, other = (*data.draw(rules_of(case.kinds)), None)[:2]
    code = Code(case.steps, case.universe, 0.01, walks)
    rules = [other] if other and not code.gain(cells_of(case, other))[1] else []
    for rule in rules:
        code.add(cells_of(case, rule))
    gain, share = code.habit(cells_of(case, habit))
    assert 0 < share <= 1
    before, after = length(case, rules, code), length(case, rules, code, {habit: share})
    assert gain == pytest.approx(before - after, abs=1e-3)


def test_the_weights_are_those_of_the_walk():
    """Two schemas that are always possible, one of them taken eight times as often for each of its actions."""
    die = np.random.default_rng(5)
    actions = ["go a", "go b", "put a", "put b"]
    rows = die.choice(4, 4000, p=np.array([8, 8, 1, 1]) / 18).tolist()
    steps = read_steps([[actions[row] for row in rows]])
    kinds = kinds_of(steps, 1)
    touches = [touches_of(steps, kind) for kind in kinds]
    code = Code(steps, naive.Case([], steps, kinds, touches).universe, 0.0)
    weight = dict(zip(steps.names, code.weights, strict=True))
    assert weight["go"] / weight["put"] == pytest.approx(8, rel=0.15)
    for factor in (0.7, 1.4):  # others are worse
        other = code.weights * [factor if name == "go" else 1.0 for name in steps.names]
        assert code_length_reference(steps, kinds, [], other, code.epsilon) > code.bits


def test_an_action_that_was_never_possible_takes_no_weight_from_the_others():
    """It was tried in traces that did nothing."""
    case = case_of([[(GroundAction("go", ("a",)), 1)], [(GroundAction("put"), 0)] * 5])
    code = Code(case.steps, case.universe, 0.01)
    for _ in range(5):
        code.fit()
    assert code.weights[case.steps.names.index("put")] > 0.4
    assert code.bits == pytest.approx(length(case, [], code), abs=1e-6)


@pytest.mark.parametrize("failures", [0.0, 0.2])
def test_the_true_rules_shorten_the_log_of_a_walk_and_false_ones_do_not(failures: float):
    logs = LiftedWalks(instance("ferry")).traces(400, 50, 3, LogSettings(failure_rate=failures))
    case = case_of([list(zip(*log, strict=True)) for log in logs])
    code = Code(case.steps, case.universe, 0.01)
    places = [number for number, kind in enumerate(case.kinds) if len(kind.types) == 1]

    def rule(adds: str, delete: str, need: str) -> Rule:
        """Of patterns such as `sail 1`."""
        for number in places:
            names = [f"{case.steps.names[p.action]} {p.places[0]}" for p in case.kinds[number].patterns]
            if {adds, delete, need} <= set(names):
                return Rule(number, 1 << names.index(adds), names.index(delete), names.index(need))
        raise AssertionError

    for true in (rule("sail 1", "sail 0", "sail 0"), rule("board 0", "debark 0", "debark 0")):
        gain, broken = code.gain(cells_of(case, true))
        assert broken == 0
        assert gain > 30
        code.add(cells_of(case, true))
    gain, broken = code.gain(cells_of(case, rule("sail 0", "sail 1", "sail 0")))
    assert broken > 100
    assert gain < 0


@pytest.mark.parametrize("noise", [{}, {"wrong_action": 0.03, "failure_rate": 0.1}])
def test_the_bits_of_a_chosen_domain_are_the_formula(noise: dict):
    """The search's own count, on a log of a real domain; its exceptions are those of a simulation."""
    logs = LiftedWalks(instance("ferry")).traces(400, 50, 6, LogSettings(**noise))
    case = case_of([list(zip(*log, strict=True)) for log in logs])
    choice = Choice(case.steps, case.kinds, case.touches, case.gaps, case.universe, Search())
    chosen = choice.choose(0.03 if noise else 0.0)
    assert chosen.rules
    assert not chosen.habits
    wrong = [verdict for trace in case.log for verdict in naive.verdicts(case, list(chosen.rules), trace)]
    assert (chosen.right == (np.array(wrong, bool) == case.steps.failed)).all()
    assert chosen.right[~case.steps.failed].all() == (not noise)
    exceptions, failed = int((~chosen.right & ~case.steps.failed).sum()), int(case.steps.failed.sum())
    code = Code(case.steps, case.universe, (exceptions + 0.5) / (len(chosen.right) + 1))
    if failed:
        code.unexplained = (int((~chosen.right & case.steps.failed).sum()) + 0.5) / (failed + 1)
    for rule in chosen.rules:
        code.add(cells_of(case, rule))
    described = chosen.bits - length(case, list(chosen.rules), code)
    assert 0 < described < sum(choice.price(rule, {}) for rule in chosen.rules)  # what is shared is told once
