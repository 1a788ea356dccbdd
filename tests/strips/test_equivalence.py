"""Do two domains accept the same traces?"""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.models.strips.strips_errors import DomainError
from hf_mech.planning.bundled import BUNDLED, load_bundled
from hf_mech.planning.equivalence import find_distinguishing_trace
from tests.strips.definition_1 import f_m
from tests.strips.strategies import domains

small = domains(most_propositions=2, actions=2)


@given(domains(actions=3), domains(actions=3))
def test_it_is_symmetric_and_its_trace_tells_the_two_apart(a, b):
    found, reverse = find_distinguishing_trace(a, b), find_distinguishing_trace(b, a)
    assert found.equivalent == reverse.equivalent
    if not found.equivalent:
        assert f_m(a, found.trace) != f_m(b, found.trace)
        assert len(found.trace) == len(reverse.trace)


@given(small, small)
def test_no_shorter_trace_tells_them_apart(a, b):
    found = find_distinguishing_trace(a, b)
    longest = 5 if found.equivalent else len(found.trace) - 1
    for length in range(longest + 1):
        for trace in product(a.action_names, repeat=length):
            assert f_m(a, trace) == f_m(b, trace)


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


@pytest.mark.parametrize("name", BUNDLED)
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
    with pytest.raises(DomainError, match=r"\['a'\].*\['b'\]"):
        find_distinguishing_trace(StripsDomain((), (StripsAction("a"),)), StripsDomain((), (StripsAction("b"),)))
