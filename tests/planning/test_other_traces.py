"""Traces that are not the paper's: other negatives, biased walks, wrong labels, plans, failed attempts."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from hf_mech.planning import load_bundled, plan, traces
from hf_mech.planning.problem import PlanningError, state_after
from hf_mech.planning.traces import TooFewTracesError, TraceSettings, generate_traces
from hf_mech.planning.walks import Trace, Walks

PROBLEM = load_bundled("blocksworld-2b")
DOMAIN = PROBLEM.domain


def splits(**given):
    return generate_traces(PROBLEM, TraceSettings(**{"num_train": 300, "num_test": 300, "seed": 4, **given}))


def states_before_the_last(trace, starts):
    """The states that the walk may have reached, from those in which it may have begun."""
    for state in starts:
        for action in trace.actions[:-1]:
            if action not in DOMAIN.applicable(state):
                break
            state = DOMAIN.apply(state, action)
        else:
            yield state


def test_negatives_that_the_hidden_state_forbids():
    made = splits(negatives="inapplicable")
    negatives = [trace for trace in made.train if not trace.valid]
    assert len(negatives) == 240
    for trace in negatives:
        reached = list(states_before_the_last(trace, made.train_states))
        assert any(trace.actions[-1] not in DOMAIN.applicable(state) for state in reached)
    assert sum(DOMAIN.is_positive(trace.actions) for trace in negatives) > 20  # no contradiction by Definition 1


def test_their_number_is_exact():
    """All traces that end with an action that the state forbids are found, and no more are promised."""
    simple = load_bundled("simple")
    every = {"negatives": "inapplicable", "test_negatives": "contradiction", "negative_fraction": 1.0}
    with pytest.raises(TooFewTracesError) as short:
        generate_traces(simple, TraceSettings(seed=1, num_train=10**6, num_test=2, max_train_length=5, **every))
    found = short.value.found
    made = generate_traces(simple, TraceSettings(seed=1, num_train=found, num_test=2, max_train_length=5, **every))
    assert len(set(made.train)) == found
    with pytest.raises(TooFewTracesError):
        generate_traces(simple, TraceSettings(seed=1, num_train=found + 1, num_test=2, max_train_length=5, **every))


def test_random_actions_until_one_is_inapplicable():
    made, usual = splits(negatives="first_inapplicable"), splits()
    for trace in made.train:
        if not trace.valid:
            assert DOMAIN.labels(trace.actions) == trace.labels
            assert list(states_before_the_last(trace, made.train_states))
    length = {
        kind: sum(len(trace.actions) for trace in own.train if not trace.valid) / 240
        for kind, own in (("first", made), ("usual", usual))
    }
    assert length["first"] < 0.7 * length["usual"]


def test_the_test_split_alone():
    made, usual = splits(test_negatives="first_inapplicable"), splits()
    assert made.train == usual.train
    assert made.test != usual.test


def test_a_biased_walk_prefers_half_of_the_actions():
    made, usual = splits(walk_bias=9, negative_fraction=0.0), splits(negative_fraction=0.0)
    shares = []
    for own in (made, usual):
        counts = Counter(action for trace in own.train for action in trace.actions)
        most = sum(count for _, count in counts.most_common(4))
        shares.append(most / sum(counts.values()))
    assert shares[0] > shares[1] + 0.1
    assert not set(made.train) & set(made.test)


def test_so_many_labels_are_wrong():
    made, clean = splits(label_noise=0.05), splits()
    wrong = [noisy for noisy, own in zip(made.train, clean.train, strict=True) if noisy != own]
    assert len(wrong) == 15
    for noisy, own in zip(made.train, clean.train, strict=True):
        assert noisy.actions == own.actions
    assert made.test == clean.test


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"negatives": "none"}, "negatives must be one of contradiction"),
        ({"negatives": None}, "negatives must be one of"),
        ({"test_negatives": "none"}, "test_negatives must be one of"),
        ({"walk_bias": -1}, "walk_bias must be a whole number"),
        ({"label_noise": 1.5}, "label_noise must be a number in 0 to 1"),
        ({"policy": "plan"}, "policy must be one of walk, expert"),
        ({"failure_rate": 1}, "failure_rate must be below 1"),
        ({"failure_rate": 0.1, "negatives": "first_inapplicable"}, "failure_rate must be below 1, and 0 with"),
    ],
)
def test_settings_that_make_no_sense(given, names):
    with pytest.raises(PlanningError, match=names):
        TraceSettings(**given)


# ------------------------------------------------------------------------------------------- plans, failed attempts


def test_an_expert_takes_shortest_plans():
    """Walks from the same states, towards the goals; as short as those of a planner."""
    made, usual = splits(policy="expert"), splits()
    assert made.train_states == usual.train_states
    assert not {trace.actions for trace in made.train} & {trace.actions for trace in made.test}
    for trace in made.train:
        assert DOMAIN.labels(trace.actions) == trace.labels
        assert list(states_before_the_last(trace, made.train_states))
    walks, start = Walks(DOMAIN), DOMAIN.mask(PROBLEM.initial)
    for goal in (["on(a,b)"], ["on(b,a)"], ["holding(b)"], ["on(a,b)", "on(b,a)"]):
        ours, planned = walks.expert.shortest_plan(start, DOMAIN.mask(goal)), plan(DOMAIN, PROBLEM.initial, goal)
        assert (ours is None) == (planned is None)
        if ours is not None and planned is not None:
            assert len(ours) == len(planned)
            assert set(goal) <= state_after(DOMAIN, ours, PROBLEM.initial)


def test_an_expert_wanders_less():
    """Fewer of its actions are undone by the next."""
    sail = load_bundled("ferry-2c")
    back = {}
    for policy in ("walk", "expert"):
        settings = TraceSettings(num_train=200, num_test=2, policy=policy, negative_fraction=0.0)
        made = generate_traces(sail, settings)
        pairs = [pair for trace in made.train for pair in pairwise(sail.domain.decode(trace.actions))]
        undone = [(a, b) for a, b in pairs if a.replace("board", "debark") == b or b.replace("board", "debark") == a]
        back[policy] = len(undone) / len(pairs)
    assert back["expert"] < 0.8 * back["walk"]


@pytest.mark.parametrize("negatives", ["contradiction", "inapplicable"])
def test_failed_attempts_change_nothing(negatives):
    """Without them, a trace is an ordinary one; each of them is wrong where it stands."""
    made = splits(failure_rate=0.2, negatives=negatives)
    attempts = rows = 0
    for trace in made.train:
        done = [a for i, a in enumerate(trace.actions) if i not in trace.failed]
        assert any(states_before_the_last(Trace(tuple(done), trace.valid), made.train_states))
        for i in trace.failed:
            before = [a for j, a in enumerate(trace.actions[:i]) if j not in trace.failed]
            reached = list(states_before_the_last(Trace((*before, trace.actions[i]), False), made.train_states))
            assert any(trace.actions[i] not in DOMAIN.applicable(state) for state in reached)
            if negatives == "contradiction":
                assert DOMAIN.labels([*before, trace.actions[i]])[-1] == 1
        expected = [int(i in trace.failed) for i in range(len(trace.actions))]
        expected[-1] = int(not trace.valid)
        assert trace.labels == expected
        attempts += len(trace.failed)
        rows += len(trace.actions) - 1
    assert 0.15 * rows < attempts < 0.25 * rows
    assert not any(trace.failed for trace in made.test)
    assert not {trace.actions for trace in made.train} & {trace.actions for trace in made.test}


def test_too_few_plans(monkeypatch):
    """The search ends, and the error says how many plans there are."""
    monkeypatch.setitem(traces.PATIENCE, "expert", 200)
    with pytest.raises(TooFewTracesError, match=r"200 traces in a row add none to \d+"):
        generate_traces(load_bundled("simple"), TraceSettings(num_test=2, max_train_length=10, policy="expert"))
