"""Domains and traces: Definition 1, the state model, and domains as data."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain, StripsError
from tests.models.strips.definition_1 import f_m
from tests.models.strips.strategies import domains, domains_with_traces


@settings(max_examples=40)
@given(domains_with_traces())
def test_labels_are_definition_1_of_every_action_in_turn(case):
    domain, trace = case
    assert domain.is_positive(trace) == (f_m(domain, trace) == 0)
    for i in range(len(trace)):
        if domain.is_positive(trace[:i]):
            assert domain.labels(trace)[i] == f_m(domain, trace[: i + 1])


@settings(max_examples=40)
@given(domains_with_traces())
def test_next_actions_are_those_that_keep_the_trace_positive(case):
    domain, trace = case
    assert domain.next_actions(trace) == [b for b in domain.action_names if f_m(domain, [*trace, b]) == 0]


@settings(max_examples=40)
@given(domains_with_traces(), st.data())
def test_applicable_traces_are_positive(case, data):
    domain, trace = case
    initial = data.draw(st.sets(st.sampled_from(domain.propositions))) if domain.propositions else set()
    if domain.is_applicable(trace, initial):
        assert domain.is_positive(trace)


@settings(max_examples=40)
@given(domains(most_propositions=3, most_actions=3), st.data())
def test_positive_means_applicable_from_some_state(domain, data):
    trace = data.draw(st.lists(st.sampled_from(domain.action_names), max_size=6))
    states = [domain.unmask(mask) for mask in range(2 ** len(domain.propositions))]
    if any(domain.is_applicable(trace, state) for state in states):
        assert domain.is_positive(trace)


@settings(max_examples=40)
@given(domains_with_traces())
def test_a_domain_survives_json_and_names_survive_indices(case):
    domain, trace = case
    assert StripsDomain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain
    assert domain.decode(domain.encode(trace)) == trace
    for mask in range(2 ** len(domain.propositions)):
        assert domain.mask(domain.unmask(mask)) == mask


@pytest.mark.parametrize(
    ("propositions", "actions", "says"),
    [
        (("p", "p"), (), "unique"),
        (("p",), (StripsAction("a"), StripsAction("a")), "unique"),
        (("",), (), "empty"),
        (("p",), (StripsAction("a", pre=frozenset({"q"})),), "'q'"),
        (("p",), (StripsAction("a", add=frozenset({"p"}), delete=frozenset({"p"})),), "both adds and deletes"),
    ],
)
def test_a_domain_that_contradicts_itself_is_refused(propositions, actions, says):
    with pytest.raises(StripsError, match=says):
        StripsDomain(propositions, actions)


def test_actions_take_any_collection_of_names_but_no_string():
    assert StripsAction("a", ["p"], {"q"}, ("r", "p")) == StripsAction(
        "a", frozenset({"p"}), frozenset({"q"}), frozenset({"r", "p"})
    )
    for kind in ("pre", "add", "delete"):
        with pytest.raises(StripsError, match=f"{kind} must be a set .* 'lit'"):
            StripsAction("a", **{kind: "lit"})


@pytest.mark.parametrize(
    "changes",
    [
        {"propositions": None},
        {"propositions": [["p"]]},
        {"actions": 5},
        {"actions": ["a"]},
        {"actions": [{"name": "a", "pre": None, "add": [], "del": []}]},
        {"actions": [{"name": "a", "pre": [["p"]], "add": [], "del": []}]},
        {"actions": [{"name": "a", "pre": "p", "add": [], "del": []}]},
    ],
)
def test_data_of_another_form_is_refused(changes):
    with pytest.raises(StripsError):
        StripsDomain.from_dict({"propositions": ["p"], "actions": [], **changes})


def test_unknown_names_and_indices_are_refused():
    domain = StripsDomain(("p",), (StripsAction("a"),))
    with pytest.raises(StripsError, match="position 1"):
        domain.encode(["a", "b"])
    with pytest.raises(StripsError, match="out of range"):
        domain.encode([1])
    with pytest.raises(StripsError, match="'q'"):
        domain.mask(["q"])
    with pytest.raises(StripsError, match="actions"):
        StripsDomain.from_dict({"propositions": []})
