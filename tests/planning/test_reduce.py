"""Fewer propositions, same traces."""

import random

import pytest
from hypothesis import given, settings

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.equivalence import find_distinguishing_trace
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.problem import SearchBoundError
from hf_mech.planning.reduce import known_false_states, reduce_propositions
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH
from tests.models.strips.strategies import domains


def without(domain, proposition):
    rest = frozenset(domain.propositions) - {proposition}
    return StripsDomain(
        tuple(p for p in domain.propositions if p in rest),
        tuple(StripsAction(a.name, a.pre & rest, a.add & rest, a.delete & rest) for a in domain.actions),
    )


def merged(domain, p, q):
    """p gone, q needed wherever p was."""
    actions = [StripsAction(a.name, a.pre | ({q} if p in a.pre else set()), a.add, a.delete) for a in domain.actions]
    return without(StripsDomain(domain.propositions, tuple(actions)), p)


def same(a, b):
    return find_distinguishing_trace(a, b).equivalent


@settings(max_examples=40)
@given(domains(most_propositions=6))
def test_the_traces_stay_and_no_single_step_is_left(domain):
    reduced = reduce_propositions(domain)
    assert same(domain, reduced)
    for p in reduced.propositions:
        assert not same(domain, without(reduced, p))
        for q in reduced.propositions:
            assert p == q or not same(domain, merged(reduced, p, q))
    assert reduce_propositions(reduced) == reduced


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_bundled_domains_are_minimal_already(name):
    domain = load_bundled(name).domain
    assert reduce_propositions(domain) == domain


def test_twice_as_many_heads_as_needed():
    """Blocksworld with three blocks and sixteen more propositions, weakened copies of its own."""
    domain = load_bundled("blocksworld-3b").domain
    rng = random.Random(0)
    parts = {a.name: (set(a.pre), set(a.add), set(a.delete)) for a in domain.actions}
    extra = [f"extra-{i}" for i in range(16)]
    for name in extra:
        model = rng.choice(domain.propositions)
        for a in domain.actions:
            pre, add, delete = parts[a.name]
            if model in a.pre and rng.random() < 0.8:
                pre.add(name)
            if model in a.add or rng.random() < 0.1:
                add.add(name)
            elif model in a.delete:
                delete.add(name)
    actions = tuple(StripsAction(n, *map(frozenset, sets)) for n, sets in parts.items())
    learned = StripsDomain((*extra, *domain.propositions), actions)
    reduced = reduce_propositions(learned)
    assert len(reduced.propositions) == 16
    assert same(reduced, domain)


def test_too_many_states_are_refused():
    domain = load_bundled("blocksworld-2b").domain
    assert len(known_false_states(domain)) == 105
    with pytest.raises(SearchBoundError, match="max_states=104"):
        known_false_states(domain, max_states=104)
    with pytest.raises(SearchBoundError):
        reduce_propositions(domain, max_states=20)
