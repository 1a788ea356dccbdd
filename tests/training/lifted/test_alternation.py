"""The plain alternation test, and what it cannot bear."""

from __future__ import annotations

from hf_mech.models.strips.strips_lifted import GroundAction, parse_action
from hf_mech.planning.lifted.learning.events import kinds_of, read_steps, touches_of
from training.lifted.alternation import alternating, features, gaps_between, learn_by_alternation


def trace_of(*actions: str) -> list[GroundAction]:
    return [parse_action(action) for action in actions]


LAMPS = [
    trace_of("light a", "light b", "douse a", "dim b", "light a", "douse a"),
    trace_of("douse b", "light b", "dim b", "light b"),
]


def test_a_lamp_is_lit_or_dark():
    domain, cut = learn_by_alternation(LAMPS, limit=60)
    assert not cut
    assert domain.labels(["light x", "douse x", "light x", "light y", "dim x"]) == [0] * 5
    assert domain.labels(["light x", "light y", "light x"]) == [0, 0, 1]
    assert domain.labels(["dim x", "douse x"]) == [0, 1]


def test_one_wrong_step_is_enough_to_lose_the_predicate():
    domain, _ = learn_by_alternation([*LAMPS, trace_of("light a", "light a")], limit=60)
    assert domain.labels(["light x", "light y", "light x"]) == [0, 0, 0]


def test_features_are_the_sets_whose_effects_alternate():
    steps = read_steps(LAMPS)
    kind = next(kind for kind in kinds_of(steps, 1) if kind.types)
    names = [steps.names[pattern.action] for pattern in kind.patterns]
    gaps = gaps_between(touches_of(steps, kind))
    sets, whole = alternating(len(names), gaps)
    assert whole
    found = [{names[bit] for bit in range(3) if (one.adds | one.deletes) >> bit & 1} for one in features(sets, gaps)]
    assert found == [{"light", "douse", "dim"}]


def test_no_time_means_no_domain_and_it_says_so():
    domain, cut = learn_by_alternation(LAMPS, limit=-1)
    assert cut
    assert domain.predicates == {}
