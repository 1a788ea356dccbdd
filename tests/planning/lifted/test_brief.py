"""A learned domain for the eye: fewer predicates that refuse the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hf_mech.planning import begin_from, brief_domain, common_start, learn_lifted_domain
from hf_mech.planning.lifted import brief as brief_module
from hf_mech.planning.lifted.domains import instance
from hf_mech.planning.lifted.learning import LearnedLiftedDomain
from hf_mech.planning.lifted.walks import LiftedWalks, LogSettings


@pytest.fixture(scope="module")
def learned() -> LearnedLiftedDomain:
    walks = LiftedWalks(instance("ferry", "small", seed=0))
    logs = walks.traces(actions=1500, length=50, seed=0, settings=LogSettings(failure_rate=0.1))
    return learn_lifted_domain([log.texts for log in logs], [log.labels for log in logs], progress=False)


def test_few_predicates_refuse_what_all_refuse(learned: LearnedLiftedDomain) -> None:
    found = brief_domain(learned)
    assert set(found.domain.predicates) < set(learned.domain.predicates)
    assert len(found.domain.predicates) <= 6  # of the hidden domain 4: at-ferry, at, on, empty-ferry
    assert found.refused > 0.995
    for own in found.domain.actions:
        whole = learned.domain.by_name[own.name]
        assert own.pre <= whole.pre
        assert own.add <= whole.add
        assert own.delete <= whole.delete


def test_the_verdicts_on_other_walks_stay(learned: LearnedLiftedDomain) -> None:
    walks = LiftedWalks(instance("ferry", "small", seed=0))
    logs = walks.traces(actions=400, length=50, seed=9, settings=LogSettings(failure_rate=0.3))
    traces, labels = [log.texts for log in logs], [log.labels for log in logs]
    start = common_start(learned.ground(), traces, labels)
    verdicts = []
    for domain in (learned.domain, brief_domain(learned).domain):
        ground = replace(learned, domain=domain).ground()
        whole = begin_from(ground, start & set(ground.propositions))
        verdicts.append([whole.labels(["begin", *map(str, log.actions)], [0, *log.labels]) for log in logs])
    pairs = [pair for full, brief in zip(*verdicts, strict=True) for pair in zip(full, brief, strict=True)]
    assert sum(a == b for a, b in pairs) > 0.99 * len(pairs)


def test_too_many_calls_leave_the_domain_as_it_is(
    learned: LearnedLiftedDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brief_module, "_MOST_CALLS", 3)
    assert brief_domain(learned).domain is learned.domain
