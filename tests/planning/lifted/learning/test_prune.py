"""Rules that are left out change no verdict of a log that keeps the others."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.learning.prune import implied, independent
from hf_mech.planning.lifted.learning.rules import Rule
from tests.planning.lifted.learning import naive
from tests.planning.lifted.learning.naive import Case, cases, rules_of


def kept(case: Case, rules: list[Rule]) -> list[list[int]]:
    """The verdicts of each trace, the actions that rules forbid left out of it as failed ones are."""
    found = []
    for trace in case.log:
        own: naive.Trace = []
        for action, failed in trace:
            wrong = naive.verdicts(case, rules, [*own, (action, failed)])[-1]
            own.append((action, failed | wrong))
        found.append(naive.verdicts(case, rules, own))
    return found


@given(cases(), st.data())
@settings(max_examples=150)
def test_what_is_left_out_is_implied(case: Case, data: st.DataObject):
    rules = data.draw(rules_of(case.kinds, 8))
    fewer = independent(rules, {number: set(own.done.tolist()) for number, own in enumerate(case.touches)})
    assert set(fewer) <= set(rules)
    assert fewer == [rule for rule in rules if rule in set(fewer)]
    assert kept(case, rules) == kept(case, fewer)


def test_an_alternation_of_three():
    """a, b, c in a circle: that c follows b and b follows a implies that c does not follow a."""
    first, second = Rule(0, 0b010, 0, 2), Rule(0, 0b010, 2, 2)  # behind a, and behind c, no c until b
    assert not implied(first, [second])
    chain = [Rule(0, 0b010, 0, 0), Rule(0, 0b100, 1, 1), Rule(0, 0b001, 2, 2)]
    assert independent(chain) == chain
    wider = Rule(0, 0b110, 0, 2)  # allows more than the first
    assert implied(wider, [first])
    assert independent([first, wider]) == [first]


def test_an_object_twice_in_an_action():
    """`link a a` adds and deletes; after `link a b` no `link b a` can come."""
    case = naive.case_of(
        [[(GroundAction("link", own), 0) for own in ("aa", "ab")] + [(GroundAction("cut", ("a",)), 0)]]
    )
    (number,) = (number for number, kind in enumerate(case.kinds) if len(kind.types) == 1)
    first, second, cut = range(3)
    others = [Rule(number, 1 << second, first, cut), Rule(number, 0, first, second)]
    rule = Rule(number, 0, first, cut)
    assert independent([*others, rule]) == others
    assert rule in independent([*others, rule], {number: case.touches[number].done.tolist()})
    trace = [(GroundAction("link", ("a", "a")), 0), (GroundAction("cut", ("a",)), 0)]
    assert (naive.verdicts(case, others, trace), naive.verdicts(case, [rule], trace)) == ([0, 0], [0, 1])
