"""`learn_domain`: the hidden domain comes back."""

from __future__ import annotations

import pytest

from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.planning import find_distinguishing_trace, load_bundled, reachable_states
from hf_mech.planning.problem import PlanningError
from hf_mech.planning.traces import TraceSettings, generate_traces
from hf_mech.planning.two_part_code import TwoPartCode, learn_domain


def learned_from(name: str, size: int, seed: int, **more):
    problem = load_bundled(name)
    train = generate_traces(problem, TraceSettings(seed=seed, num_train=size, num_test=2)).train
    names = problem.domain.action_names
    rows = [[names[action] for action in trace.actions] for trace in train]
    return problem, learn_domain(rows, [trace.labels for trace in train], names, progress=False, **more)


@pytest.mark.parametrize("num_propositions", [None, 4])
def test_it_proves_simple_equal_to_the_hidden_domain(num_propositions):
    problem, learned = learned_from("simple", 100, 21, num_propositions=num_propositions)
    assert learned.wrong_labels == 0
    assert learned.bits == min(learned.restart_bits)
    assert len(learned.restart_bits) == 4
    verdict = find_distinguishing_trace(learned.domain, problem.domain, initial_states=reachable_states(problem))
    assert verdict.equivalent, str(verdict)


def test_propositions_too_many_stay_empty():
    problem, learned = learned_from("simple", 100, 22, num_propositions=15, restarts=2, jobs=2)
    assert learned.wrong_labels == 0
    assert len(learned.domain.propositions) == 3
    verdict = find_distinguishing_trace(learned.domain, problem.domain, initial_states=reachable_states(problem))
    assert verdict.equivalent, str(verdict)


def test_a_few_wrong_labels_are_found():
    problem = load_bundled("blocksworld-2b")
    train = generate_traces(problem, TraceSettings(seed=23, num_train=400, num_test=2)).train
    labels = [list(trace.labels) for trace in train]
    for trace in labels[::40]:
        trace[-1] ^= 1
    learned = learn_domain(
        [trace.actions for trace in train],
        labels,
        problem.domain.action_names,
        restarts=1,
        code=TwoPartCode(label_noise=0.025),
        progress=False,
    )
    assert learned.wrong_labels == 10
    verdict = find_distinguishing_trace(learned.domain, problem.domain, initial_states=reachable_states(problem))
    assert verdict.equivalent, str(verdict)


@pytest.mark.parametrize("name", ["simple", "blocksworld-2b"])
def test_actions_that_fail_in_the_middle_change_nothing(name):
    problem = load_bundled(name)
    train = generate_traces(problem, TraceSettings(seed=24, num_train=300, num_test=2, failure_rate=0.2)).train
    rows, labels = [trace.actions for trace in train], [trace.labels for trace in train]
    assert sum(any(told[:-1]) for told in labels) > 100
    learned = learn_domain(rows, labels, problem.domain.action_names, restarts=2, progress=False)
    assert learned.wrong_labels == 0
    verdict = find_distinguishing_trace(learned.domain, problem.domain, initial_states=reachable_states(problem))
    assert verdict.equivalent, str(verdict)


@pytest.mark.parametrize(
    "more", [{"restarts": 0}, {"jobs": 0}, {"num_propositions": 0}, {"restarts": 2.5}, {"seed": -1}, {"seed": 1.5}]
)
def test_numbers_out_of_range(more):
    with pytest.raises(PlanningError, match=r"whole number, [01] or more"):
        learn_domain([[0]], [[0]], ["a"], **more)


def test_other_settings_than_those_of_the_code():
    with pytest.raises(PlanningError, match="TwoPartCode"):
        learned_from("simple", 50, 0, code={"sweeps": 3})


def test_an_empty_name_is_refused_before_the_search():
    with pytest.raises(StripsError, match="empty action name"):
        learn_domain([[0]], [[0]], ["a", ""], code=TwoPartCode(sweeps=10**9), progress=False)


def test_the_same_name_twice():
    with pytest.raises(PlanningError, match="different names"):
        learn_domain([[0]], [[0]], ["a", "a"])
