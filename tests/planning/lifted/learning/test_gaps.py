"""The statistics of gaps, and the evidence of rules, are those of a count over every step, tuple and pattern."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.domains import instance
from hf_mech.planning.lifted.learning.events import bits_of, kinds_of, read_steps, touches_of
from hf_mech.planning.lifted.learning.gaps import NEVER, gaps_of
from hf_mech.planning.lifted.learning.rules import Evidence, Pair, Rule, Search, candidates, pairs_of, relatives
from hf_mech.planning.lifted.walks import LiftedWalks
from tests.planning.lifted.learning import naive
from tests.planning.lifted.learning.naive import Case, Moment, cases, rules_of


@given(cases())
@settings(max_examples=50)
def test_gaps_are_a_count_of_moments(case: Case):
    for kind, gaps in zip(case.kinds, case.gaps, strict=True):
        time, done, failed = Counter(), Counter(), Counter()
        for moment in naive.moments(case, kind):
            row = moment.delete, moment.since
            time[row, moment.possible] += 1
            done.update((row, pattern) for pattern in moment.done)
            failed.update((row, pattern) for pattern in moment.failed)
        rows = [
            (d, None if since == NEVER else frozenset(bits_of(int(since))))
            for d, since in zip(gaps.pattern.tolist(), gaps.since, strict=True)
        ]
        assert len(rows) == len(set(rows))
        columns = [frozenset(bits_of(int(each))) for each in gaps.possible]

        def counted(table: np.ndarray, columns: list | range, rows: list = rows) -> Counter:
            return Counter({(rows[r], columns[c]): int(table[r, c]) for r, c in zip(*table.nonzero(), strict=True)})

        assert counted(gaps.time, columns) == time
        assert counted(gaps.done, range(len(kind.patterns))) == done
        assert counted(gaps.failed, range(len(kind.patterns))) == failed


def test_more_rows_than_the_first_table_holds():
    """Twenty actions without objects, in random order: 2,000 gaps and more."""
    numbers = np.random.default_rng(0).integers(0, 20, 3000).tolist()
    case = naive.case_of([[(GroundAction(f"a{number}"), 0) for number in numbers]])
    (gaps,) = case.gaps
    rows = {(moment.delete, moment.since) for moment in naive.moments(case, case.kinds[0])}
    assert (gaps.time.sum(1) > 0).sum() == len(rows) > 2000
    assert gaps.time.sum() == 20 * 3000
    assert gaps.done.sum() == 20 * 3000


def evidence_by_counting(moments: list[Moment], rule: Rule, epsilon: float) -> Evidence:
    """The formula of `rules.py`, from every moment of the rule's delete for which its need is possible."""
    adds = set(bits_of(rule.adds))
    able = [moment for moment in moments if rule.need in moment.possible]
    silent = [moment for moment in able if moment.since is None]  # the rule allows, for no delete has come
    behind = [moment for moment in able if moment.since is not None and moment.since & adds]
    force = [moment for moment in able if moment.since is not None and not moment.since & adds]

    def came(own: list[Moment]) -> int:
        return sum(rule.need in moment.done for moment in own)

    def refused(own: list[Moment]) -> int:
        return sum(rule.need in moment.failed for moment in own)

    free, lost, broken, tried = silent + behind, refused(silent + behind), came(force), refused(force)
    rate = came(free) / len(free) if free else 0.0
    cautious = (came(behind) - came(behind) ** 0.5) / max(1, len(behind))
    expected = max(rate, cautious) * len(force) if came(free) else 0.0
    bits = (expected * (1 - epsilon) + broken * np.log(epsilon)) / np.log(2)
    bits -= tried * np.log2((lost + 0.5) / (lost + came(free) + 1))
    return Evidence(float(bits), expected, broken, tried)


def same(one: Evidence, other: Evidence) -> bool:
    return one == pytest.approx(other, rel=1e-9, abs=1e-9)


@given(cases(), st.data())
@settings(max_examples=50)
def test_evidence_is_the_formula(case: Case, data: st.DataObject):
    for rule in data.draw(rules_of(case.kinds)):
        kind, gaps = case.kinds[rule.kind], case.gaps[rule.kind]
        if not kind.canonical(rule.delete):
            continue
        rows = np.flatnonzero(gaps.pattern == rule.delete)
        (found,) = Pair(gaps, rows, rule.need).evidence([rule.adds], 0.03)
        moments = [moment for moment in naive.moments(case, kind) if moment.delete == rule.delete]
        assert same(found, evidence_by_counting(moments, rule, 0.03))


@given(cases(), st.data())
@settings(max_examples=50)
def test_a_rule_is_broken_in_evidence_where_a_simulation_breaks_it(case: Case, data: st.DataObject):
    for rule in data.draw(rules_of(case.kinds)):
        gaps = case.gaps[rule.kind]
        if not case.kinds[rule.kind].canonical(rule.delete):
            continue
        (found,) = Pair(gaps, np.flatnonzero(gaps.pattern == rule.delete), rule.need).evidence([rule.adds], 0.03)
        broken = refused = 0
        for trace in case.log:
            for known, (action, failed) in zip(naive.falsified(case, [rule], trace), trace, strict=True):
                tuples = [
                    own
                    for own, patterns in naive.matches(case, case.kinds[rule.kind], action).items()
                    if rule.need in patterns and (rule, own) in known
                ]
                broken, refused = (broken, refused + len(tuples)) if failed else (broken + len(tuples), refused)
        assert (found.broken, found.refused) == (broken, refused)


@given(cases())
@settings(max_examples=40)
def test_candidates_and_relatives_have_their_evidence(case: Case):
    search = Search(price=-20.0)  # nearly everything is worth it
    for number, (kind, gaps) in enumerate(zip(case.kinds, case.gaps, strict=True)):
        found = candidates(number, kind, gaps, 0.03, search)
        sets = {rule.adds for rule in found} | {0}
        moments = list(naive.moments(case, kind))
        for rule, evidence in (found | relatives(number, kind, gaps, 0.03, sets)).items():
            assert rule.kind == number
            assert not rule.adds >> rule.delete & 1
            own = [moment for moment in moments if moment.delete == rule.delete]
            assert same(evidence, evidence_by_counting(own, rule, 0.03))
        each: dict[tuple[int, int], list[int]] = {}
        for rule in found:
            each.setdefault((rule.delete, rule.need), []).append(rule.adds)
        for adds in each.values():
            assert len(adds) <= search.kept
            assert not any(one != other and one & other == one for one in adds for other in adds)
        assert set(each) <= {(delete, need) for delete, need, _ in pairs_of(gaps, kind)}


TRUE = {  # predicates with their adds, deletes and needs, as (action, places)
    "ferry": [
        ({("sail", (1,))}, {("sail", (0,))}, {("sail", (0,)), ("board", (1,)), ("debark", (1,))}),
        ({("board", (0,))}, {("debark", (0,))}, {("debark", (0,))}),
        ({("debark", ())}, {("board", ())}, {("board", ())}),
        ({("debark", (0, 1))}, {("board", (0, 1))}, {("board", (0, 1))}),
    ],
    "blocksworld": [
        ({("pick-up", (0,)), ("unstack", (0,))}, {("put-down", (0,)), ("stack", (0,))}, {("stack", (0,))}),
        ({("stack", (0, 1))}, {("unstack", (0, 1))}, {("unstack", (0, 1))}),
        ({("stack", ()), ("put-down", ())}, {("pick-up", ()), ("unstack", ())}, {("pick-up", ()), ("unstack", ())}),
    ],
}


@pytest.mark.parametrize("name", TRUE)
@pytest.mark.parametrize("epsilon", [0.0, 0.03])
def test_the_true_rules_are_candidates(name: str, epsilon: float):
    """Or rules with fewer adds, which forbid more and are right as well in these instances."""
    steps = read_steps(trace.actions for trace in LiftedWalks(instance(name)).traces(3000, 100, 7))
    kinds = kinds_of(steps, 2)
    for adds, deletes, needs in TRUE[name]:
        parts = {}
        for number, kind in enumerate(kinds):
            numbers = {}
            for position, pattern in enumerate(kind.patterns):
                schema = steps.names[pattern.action]
                numbers[schema, pattern.places] = position
                numbers.setdefault((schema, pattern.places[::-1]), position)
            if all(each in numbers for each in adds | deletes | needs):
                types = {tuple(sorted(steps.types[steps.names.index(a)][p] for p in own)) for a, own in needs}
                if types == {kind.types}:
                    parts[number] = numbers
        assert len(parts) == 1
        (number, numbers) = parts.popitem()
        gaps = gaps_of(steps, kinds[number], touches_of(steps, kinds[number]))
        found = candidates(number, kinds[number], gaps, epsilon, Search())
        for delete in deletes:
            for need in needs:
                own = [r for r in found if (r.delete, r.need) == (numbers[delete], numbers[need])]
                true = sum(1 << numbers[each] for each in adds)
                assert any(rule.adds & true == rule.adds for rule in own), (adds, delete, need, own)
                assert all(found[rule].broken == 0 for rule in own if rule.adds & true == true)
