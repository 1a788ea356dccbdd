"""Do two domains accept the same traces?"""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.equivalence import find_distinguishing_trace
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.problem import PlanningError, StripsProblem, reachable_states
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH
from tests.models.strips.definition_1 import f_m
from tests.models.strips.strategies import domains

small = domains(most_propositions=2, actions=2)


@given(domains(actions=3), domains(actions=3))
def test_it_is_symmetric_and_its_trace_tells_the_two_apart(a, b):
    found, reverse = find_distinguishing_trace(a, b), find_distinguishing_trace(b, a)
    assert found.equivalent == reverse.equivalent
    if not found.equivalent:
        assert f_m(a, found.trace) != f_m(b, found.trace)
        assert len(found.trace) == len(reverse.trace)


@pytest.mark.slow
@given(small, small)
def test_no_shorter_trace_tells_them_apart(a, b):
    found = find_distinguishing_trace(a, b)
    longest = 5 if found.equivalent else len(found.trace) - 1
    for length in range(longest + 1):
        for trace in product(a.action_names, repeat=length):
            assert f_m(a, trace) == f_m(b, trace)


def shown(domain, trace, states):
    """Whether an instance of the domain shows the trace: it applies, or its last action contradicts the others."""
    return any(domain.is_applicable(trace[:-1], state) for state in states) and (
        f_m(domain, trace) == 1 or any(domain.is_applicable(trace, state) for state in states)
    )


@given(small, small, st.data())
def test_on_the_traces_of_instances_against_all_of_them(a, b, data):
    initial = data.draw(st.sets(st.sampled_from(b.propositions))) if b.propositions else set()
    masks = reachable_states(StripsProblem(b, frozenset(initial)))
    states = [b.unmask(mask) for mask in masks]
    found = find_distinguishing_trace(a, b, initial_states=masks)
    if not found.equivalent:
        assert shown(b, found.trace, states)
        assert f_m(a, found.trace) != f_m(b, found.trace)
    longest = 5 if found.equivalent else len(found.trace) - 1
    for length in range(1, longest + 1):
        for trace in product(a.action_names, repeat=length):
            if shown(b, trace, states):
                assert f_m(a, trace) == f_m(b, trace)


@given(domains(actions=3), domains(actions=3))
def test_equivalent_on_all_sequences_is_equivalent_on_instances(a, b):
    if find_distinguishing_trace(a, b).equivalent:
        assert find_distinguishing_trace(a, b, initial_states=range(2 ** len(b.propositions))).equivalent


def test_a_domain_says_more_than_its_instances_show():
    """With one car aboard the ferry, another cannot be: no instance shows that Definition 1 does not know it."""
    problem = load_bundled("ferry-2c")
    ferry, states = problem.domain, reachable_states(problem)
    trace = ["board(c1,l1)", "debark(c2,l1)"]
    assert f_m(ferry, trace) == 0
    assert not any(ferry.is_applicable(trace, ferry.unmask(state)) for state in states)
    knows = frozenset({"knows"})
    stricter = StripsDomain(
        (*ferry.propositions, *knows),
        tuple(
            StripsAction(
                a.name,
                a.pre | (knows if a.name == trace[1] else set()),
                a.add | (knows if a.name.startswith("board(c2") else set()),
                a.delete | (knows if a.name == trace[0] else set()),
            )
            for a in ferry.actions
        ),
    )
    assert find_distinguishing_trace(stricter, ferry).trace == trace
    assert find_distinguishing_trace(stricter, ferry, initial_states=states).equivalent


def test_no_initial_states_are_refused():
    domain = load_bundled("simple").domain
    with pytest.raises(PlanningError, match="initial_states is empty"):
        find_distinguishing_trace(domain, domain, initial_states=[])


@given(domains(), st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(domain, random):
    new = {p: f"new-{p}" for p in domain.propositions}

    def rename(names):
        return frozenset(new[p] for p in names)

    actions = [StripsAction(a.name, rename(a.pre), rename(a.add), rename(a.delete)) for a in domain.actions]
    propositions = list(new.values())
    random.shuffle(actions)
    random.shuffle(propositions)
    assert find_distinguishing_trace(domain, StripsDomain(tuple(propositions), tuple(actions))).equivalent


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_a_bundled_domain_without_one_precondition_is_another(name):
    domain = load_bundled(name).domain
    first = next(a for a in domain.actions if a.pre)
    loose = StripsDomain(
        domain.propositions,
        tuple(StripsAction(a.name, frozenset() if a is first else a.pre, a.add, a.delete) for a in domain.actions),
    )
    found = find_distinguishing_trace(domain, loose)
    assert found.equivalent is False
    assert (domain.is_positive(found.trace), loose.is_positive(found.trace)) == (False, True)
    assert "told apart" in str(found)


def test_the_bound_leaves_it_undecided():
    domain = load_bundled("blocksworld-2b").domain
    found = find_distinguishing_trace(domain, domain, max_pairs=10)
    assert (found.equivalent, found.trace, found.pairs) == (None, None, 10)
    assert "undecided" in str(found)
    assert find_distinguishing_trace(domain, domain).equivalent


def test_other_actions_are_refused():
    with pytest.raises(PlanningError, match=r"\['a'\].*\['b'\]"):
        find_distinguishing_trace(StripsDomain((), (StripsAction("a"),)), StripsDomain((), (StripsAction("b"),)))
