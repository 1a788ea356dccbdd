"""Plans reach their goals."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.data.random_numbers import Die
from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.models.strips.strips_lifted import LiftedAction, LiftedDomain
from hf_mech.planning import planner
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.planner import plan
from hf_mech.planning.problem import PlanningError, StripsProblem, begin_from, common_start, reachable_states
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH, Walks
from tests.models.strips.strategies import domains


def reaches(domain, trace, initial, goal):
    state = domain.mask(initial)
    for action in domain.encode(trace):
        assert action in domain.applicable(state)
        state = domain.apply(state, action)
    return domain.mask(goal) & ~state == 0


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_bundled_problems_are_solved(name):
    problem = load_bundled(name)
    found = plan(problem.domain, problem.initial, problem.goal)
    assert found
    assert reaches(problem.domain, found, problem.initial, problem.goal)


@settings(max_examples=10)
@given(domains(most_propositions=3, most_actions=3), st.data())
def test_there_is_a_plan_exactly_if_a_goal_state_is_reachable(domain, data):
    some = st.sets(st.sampled_from(domain.propositions)) if domain.propositions else st.just(set())
    initial, goal = data.draw(some), data.draw(some)
    wanted = domain.mask(goal)
    reachable = any(wanted & ~state == 0 for state in reachable_states(StripsProblem(domain, frozenset(initial))))
    found = plan(domain, initial, goal)
    assert (found is not None) == reachable
    assert found is None or reaches(domain, found, initial, goal)


@pytest.mark.parametrize("status", ["UNSOLVABLE_INCOMPLETELY", "TIMEOUT"])
def test_a_planner_that_gives_up_has_not_shown_that_there_is_no_plan(monkeypatch, status):
    from unified_planning.engines import PlanGenerationResult, PlanGenerationResultStatus
    from up_pyperplan.engine import EngineImpl

    def give_up(self, problem, *args, **kwargs):
        return PlanGenerationResult(PlanGenerationResultStatus[status], None, self.name)

    monkeypatch.setattr(EngineImpl, "_solve", give_up)
    monkeypatch.setattr(planner, "_COMPLETE", ())
    problem = load_bundled("simple")
    with pytest.raises(PlanningError, match=status):
        plan(problem.domain, problem.initial, problem.goal)


def test_what_is_missing_is_named():
    domain = load_bundled("simple").domain
    with pytest.raises(PlanningError, match=r"pip install 'hf-mech\[plan\]"):
        plan(domain, [], ["q"], planner="no-such-planner")
    with pytest.raises(StripsError, match="zork"):
        plan(domain, ["zork"], ["q"])


def test_the_common_start_of_traces():
    problem = load_bundled("ferry-1c")
    domain = problem.domain
    walks = Walks(domain)
    start = domain.mask(problem.initial)
    traces = [walks.walk(start, 20, True, Die(0, (number,))).actions for number in range(20)]
    assert common_start(domain, traces) == problem.initial
    texts = [[re.sub(r"[(),]+", " ", name) for name in domain.decode(trace)] for trace in traces]
    assert common_start(domain, texts) == problem.initial
    names = [["nothing", *domain.decode(trace)] for trace in traces]
    failed = [[0] * len(trace) for trace in names]
    names[0].insert(
        1, next(name for name in domain.action_names if domain.encode([name])[0] not in domain.applicable(start))
    )
    failed[0].insert(1, 1)
    assert common_start(domain, names, failed) == problem.initial
    assert common_start(domain, []) == frozenset()
    names[1].insert(1, names[0][1])  # was not possible there
    assert common_start(domain, names, [[0] * len(trace) for trace in names]) > problem.initial
    assert common_start(domain, names, [[0] * len(trace) for trace in names], noise=0.2) == problem.initial


def test_a_domain_that_begins_from_a_state():
    problem = load_bundled("ferry-1c")
    domain = begin_from(problem.domain, problem.initial)
    for action in problem.domain.action_names:
        assert domain.is_positive(["begin", action]) == problem.domain.is_applicable([action], problem.initial)
    assert not domain.is_positive(["begin", "begin"])
    assert plan(domain, goal=problem.goal, after=["begin"]) == plan(problem.domain, problem.initial, problem.goal)
    with pytest.raises(StripsError, match="unique"):
        begin_from(domain, problem.initial)


def test_a_lifted_domain_is_grounded_first():
    lifted = LiftedDomain({"dark": ("lamp",)}, (LiftedAction("on", ("lamp",), delete=frozenset({("dark", (0,))})),))
    with pytest.raises(PlanningError, match=r"plan\(learned.ground\(\), ...\)"):
        plan(lifted, until=["on(l1)"])
