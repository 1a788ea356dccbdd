"""The domain that is built says what its rules say; its names, its PDDL, and its static relations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.strips_lifted import GroundAction, LiftedDomain
from hf_mech.planning import learn_lifted_domain, plan
from hf_mech.planning.lifted.domains import instance
from hf_mech.planning.lifted.learning.build import build_domain, type_names
from hf_mech.planning.lifted.learning.events import bits_of, read_steps
from hf_mech.planning.lifted.learning.learn import LearnedLiftedDomain
from hf_mech.planning.lifted.learning.rules import Rule
from hf_mech.planning.lifted.learning.statics import static_relations
from hf_mech.planning.lifted.pddl import DIFFERENT, LiftedProblem, read_lifted_pddl
from hf_mech.planning.lifted.walks import LiftedTrace, LiftedWalks
from hf_mech.planning.problem import PlanningError
from tests.planning.lifted.learning import naive
from tests.planning.lifted.learning.naive import Case, cases, rules_of
from tests.planning.lifted.test_walks import simulate


def built(case: Case, rules: Iterable[Rule]) -> LiftedDomain:
    return build_domain(case.steps, case.kinds, rules, [], [], "built")[0]


@given(cases(), st.data())
@settings(max_examples=100)
def test_the_domain_s_labels_are_the_verdicts_of_the_rules(case: Case, data: st.DataObject):
    """On other traces over other objects, with failures."""
    rules = data.draw(rules_of(case.kinds, 8))
    domain = built(case, rules)
    pools = [[f"new{type_}{number}" for number in range(3)] for type_ in case.steps.objects_of]
    step = st.integers(0, len(case.steps.names) - 1).flatmap(
        lambda schema: st.tuples(
            st.tuples(*(st.sampled_from(pools[type_]) for type_ in case.steps.types[schema])).map(
                lambda objects: GroundAction(case.steps.names[schema], objects)
            ),
            st.integers(0, 1),
        )
    )
    trace = data.draw(st.lists(step, max_size=15))
    failed = [label for _, label in trace]
    assert domain.labels([action for action, _ in trace], failed) == naive.verdicts(case, rules, trace)


@given(cases(), st.data())
@settings(max_examples=60)
def test_a_precondition_stands_on_its_rules(case: Case, data: st.DataObject):
    rules = data.draw(rules_of(case.kinds, 8))
    domain, facts, behind = build_domain(case.steps, case.kinds, rules, [], [], "built")
    assert not facts
    assert sorted(itertools.chain(*behind.values())) == sorted(rules)
    assert {(a.name, atom) for a in domain.actions for atom in a.pre} == set(behind)
    assert all(types == tuple(sorted(types, key=type_names(case.steps).index)) for types in domain.predicates.values())
    used = {atom.predicate for action in domain.actions for atom in action.pre}
    assert used == set(domain.predicates)
    assert not any(action.add & action.delete for action in domain.actions)
    for (_, atom), own in behind.items():
        kind = case.kinds[own[0].kind]
        patterns = {(case.steps.names[kind.patterns[a].action], kind.patterns[a].places) for a in bits_of(own[0].adds)}
        assert patterns == {(a.name, p.places) for a in domain.actions for p in a.add if p.predicate == atom.predicate}


@given(cases(), st.data())
@settings(max_examples=10)
def test_the_pddl_is_the_domain(case: Case, data: st.DataObject):
    domain = built(case, data.draw(rules_of(case.kinds, 8)))
    learned = LearnedLiftedDomain(domain, frozenset(), {}, 0, 0, (), case.steps, (), {}, {})
    assert read_lifted_pddl(learned.to_pddl()) == domain


@pytest.mark.parametrize(
    ("actions", "names"),
    [
        (["go b1 c1", "go b2 c2"], ["b", "c"]),
        (["go Truck-1 x", "go Truck-2 y"], ["truck", "type1"]),
        (["go 1 2", "go 3 4"], ["type0", "type1"]),
        (["go object1 object2"], ["type0", "type1"]),  # PDDL has a type object
        (["go object1 n1", "go object2 n2"], ["type0", "n"]),
        (["go a1 aa", "go a2 ab"], ["a", "type1"]),
        (["go only x"], ["only", "type1"]),
    ],
)
def test_types_are_named_after_their_objects(actions: list[str], names: list[str]):
    found = type_names(read_steps([actions]))
    assert len(set(found)) == len(found)
    assert found == names


def test_names_are_unique_and_can_be_pddl():
    """Actions whose names are like those of predicates, with letters that PDDL does not have, of any case."""
    lamp = ["on l1", "after-on l1", "on l1", "after-on l1", "on l2", "after-on l2", "Pay! l1", "Pay! l2"] * 20
    learned = learn_lifted_domain([lamp, lamp[2:]], progress=False)
    assert {"on", "after-on", "Pay!"} == set(learned.domain.by_name)
    assert read_lifted_pddl(learned.to_pddl()) == learned.domain


# --------------------------------------------------------------------------------------------------- static relations


def relation_bits(told: list[str], possible: int) -> float:
    """What the docstring says: log2 n for each tuple, less its adaptive price; and eight bits for the relation."""
    bits, seen = -8.0, set[str]()
    for number, each in enumerate(told):
        new = (len(seen) + 0.5) / (number + 1)
        price = len(seen) / (1 - new) if each in seen else (possible - len(seen)) / new
        bits += math.log2(possible) - math.log2(price)
        seen.add(each)
    return bits


@given(st.integers(2, 6), st.integers(1, 60), st.integers(0, 9))
@settings(max_examples=60)
def test_a_relation_is_listed_if_that_is_shorter(size: int, actions: int, seed: int):
    die = np.random.default_rng(seed)
    pairs = [(f"a{i}", f"b{j}") for i in range(size) for j in range(size) if (i + j) % 3]
    rows = die.integers(len(pairs), size=actions)
    log = [f"go {' '.join(pairs[row])}" for row in rows]
    every = [f"see a{i} b{j}" for i in range(size) for j in range(size)]  # all pairs
    steps = read_steps([*([action] for action in log), every])
    relations, different = static_relations(steps)
    assert not different
    seen = {action.split()[1:][0] + " " + action.split()[2] for action in log[:actions]}
    own = [relation for relation in relations if len(relation.types) == 2]
    single = [relation for relation in relations if len(relation.types) == 1]
    if not single:  # they would leave fewer pairs
        assert bool(own) == (len(seen) < size**2 and relation_bits([action[3:] for action in log], size**2) > 0)
    for relation in own:
        assert {" ".join(steps.objects[each] for each in pair) for pair in relation.tuples} == seen
        assert [(steps.names[schema], places) for schema, places in relation.uses] == [("go", (0, 1))]


def learned_from(name: str, actions: int = 1000, seed: int = 5) -> tuple[LearnedLiftedDomain, LiftedWalks]:
    walks = LiftedWalks(instance(name))
    return learn_lifted_domain((t.actions for t in walks.traces(actions, 100, seed)), progress=False), walks


@pytest.mark.parametrize("name", ["ferry", "gripper", "miconic", "blocksworld"])
def test_the_ground_actions_of_the_log_s_objects_are_the_hidden_ones(name: str):
    learned, walks = learned_from(name)
    assert set(learned.ground().action_names) == {str(action) for action in walks.actions}


def test_hanoi_has_smaller_and_different():
    """No disc was ever put on a smaller one, nor on itself."""
    learned, walks = learned_from("hanoi")
    smaller = {objects for name, objects in walks.problem.facts if name == "smaller"}
    refused = ("move(d4,peg1,d1)", "move(d1,d2,d2)", "move(d1,d1,peg1)", "move(peg1,d1,d2)")
    ground = set(learned.ground().action_names)
    assert ground.isdisjoint(refused)
    for action in map(GroundAction._make, [("move", tuple(name[5:-1].split(","))) for name in ground]):
        disc, _, onto = action.objects
        assert {(disc, onto), (onto, disc)} & smaller, action
    pairs = [atom for atom in learned.domain.by_name["move"].pre if atom.predicate == DIFFERENT]
    assert {atom.places for atom in pairs} == {(0, 1), (0, 2), (1, 2)}


def test_miconic_has_above_of_one_relation_for_up_and_down():
    learned, walks = learned_from("miconic")
    above = {objects for name, objects in walks.problem.facts if name == "above"}
    uses = [
        (action.name, atom)
        for action in learned.domain.actions
        for atom in action.pre
        if atom.predicate in learned.domain.static - {DIFFERENT} and len(atom.places) == 2
    ]
    (up,) = (atom for name, atom in uses if name == "up")
    (down,) = (atom for name, atom in uses if name == "down")
    assert up.predicate == down.predicate
    assert up.places == down.places[::-1]
    found = {objects for predicate, objects in learned.facts if predicate == up.predicate}
    assert found in (above, {pair[::-1] for pair in above})


def test_facts_of_new_objects_are_asked_for_by_name():
    """Miconic's relations, told for a bigger instance, leave its ground actions."""
    learned, _ = learned_from("miconic")
    big = LiftedWalks(instance("miconic", "big"))
    given, static = as_learned(learned, big.problem), learned.domain.static - {DIFFERENT}
    with pytest.raises(
        PlanningError, match=r"says nothing of the objects .*give facts=\[...\], the true atoms"
    ) as error:
        learned.ground(given)
    assert all(predicate in str(error.value) for predicate in static)
    facts = {
        atom.ground(action.objects)
        for action in big.actions
        for atom in learned.domain.by_name[action.name].pre
        if atom.predicate in static
    }
    assert set(learned.ground(given, facts).action_names) == {str(action) for action in big.actions}
    texts = [f"{predicate}({','.join(own)})" for predicate, own in facts]
    assert learned.ground(given, texts).actions == learned.ground(given, facts).actions


def test_new_objects_need_no_facts_where_nothing_is_static():
    learned, _ = learned_from("ferry")
    assert len(learned.ground({"c": ["x"], "l": ["y", "z", "w"]}).action_names) == 3 * 2 + 2 * 3
    with pytest.raises(PlanningError, match=r"no types \['car'\], only \['"):
        learned.ground({"car": ["x"], "l": ["y", "z"]})


def as_learned(learned: LearnedLiftedDomain, problem: LiftedProblem) -> dict[str, list[str]]:
    """The objects of a problem under the learned types; names of one type begin alike in all instances."""
    type_of = {each[0]: type_ for type_, own in learned.objects.items() for each in own}
    found: dict[str, list[str]] = {}
    for each in problem.type_of:
        found.setdefault(type_of[each[0]], []).append(each)
    return found


@pytest.mark.parametrize("size", ["small", "big"])
@pytest.mark.parametrize("name", ["ferry", "blocksworld", "gripper"])
def test_plans_in_the_learned_domain_are_right_in_the_hidden_one(name: str, size: str):
    """The plan begins behind a walk that has touched all atoms, and makes some action possible."""
    learned, _ = learned_from(name, 2000)
    walks = LiftedWalks(instance(name, size))
    domain, hidden = learned.ground(as_learned(learned, walks.problem)), walks.problem.domain
    assert set(domain.action_names) == {str(action) for action in walks.actions}
    begin = [str(action) for action in walks.traces(4000, 4000, seed=11)[0].actions]
    for goal in walks.actions[:: len(walks.actions) // 3]:
        found = plan(domain, after=begin, until=[str(goal)])
        assert found is not None
        actions = tuple(hidden.read(action) for action in [*begin, *found, str(goal)])
        assert simulate(walks.problem, LiftedTrace(actions, (0,) * len(actions)))
