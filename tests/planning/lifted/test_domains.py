"""The lifted domains: their PDDL, their instances, and that random walks use all of each."""

from collections import Counter

import pytest

from hf_mech.models.strips import StripsTransformer
from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.models.strips.strips_lifted import LiftedAction, LiftedAtom, LiftedDomain
from hf_mech.planning.lifted.domains import DEVELOPMENT, DOMAINS, SIZES, instance, lifted_domain
from hf_mech.planning.lifted.pddl import LiftedProblem, problem_to_pddl, read_lifted_pddl, to_pddl
from hf_mech.planning.lifted.walks import LiftedWalks
from hf_mech.planning.pddl import BUNDLED, load_bundled, read_pddl
from hf_mech.planning.problem import PlanningError


def test_the_names() -> None:
    assert len(DOMAINS) == len(set(DOMAINS)) == 26
    assert DOMAINS[: len(DEVELOPMENT)] == DEVELOPMENT
    assert [name for name in BUNDLED if name.split("-")[0] not in ("simple", *DOMAINS)] == []


@pytest.mark.parametrize("name", DOMAINS)
def test_pddl_round_trip(name: str) -> None:
    domain = lifted_domain(name)
    assert domain.name == name
    assert read_lifted_pddl(to_pddl(domain)) == domain


@pytest.mark.parametrize("name", DOMAINS)
def test_a_transformer_holds_every_domain(name: str) -> None:
    """Its atoms of `different` too, whose arguments may be of any type."""
    domain = lifted_domain(name)
    assert StripsTransformer.from_domain(domain).to_domain(name=name) == domain


@pytest.mark.parametrize("name", DOMAINS)
def test_walks_use_every_action(name: str) -> None:
    """2,000 actions of a small instance, and of a big one."""
    for size in SIZES:
        problem = instance(name, size, seed=1)
        counts = Counter(a.name for trace in LiftedWalks(problem).traces(2000, 100) for a in trace.actions)
        assert min(counts[action.name] for action in problem.domain.actions) >= 3, (size, counts)
    small, big = (instance(name, size).objects for size in SIZES)
    assert sum(map(len, big.values())) >= 1.7 * sum(map(len, small.values()))
    assert all(len(big[type_]) >= len(small[type_]) for type_ in small)


def test_an_instance_as_pddl_is_the_same_for_the_propositional_reader() -> None:
    """unified-planning grounds the written files as the walks and `LiftedDomain.ground` do."""
    for name in ("ferry", "hanoi", "miconic", "parking", "depots"):
        problem = instance(name)
        read = read_pddl(to_pddl(problem.domain), problem_to_pddl(problem))
        ours = problem.domain.ground(problem.objects, problem.facts)
        assert set(read.domain.action_names) == set(ours.action_names)
        assert {str(action) for action in LiftedWalks(problem).actions} == set(ours.action_names)
        by_name = {action.name: action for action in ours.actions}
        for action in read.domain.actions:
            assert (action.pre, action.add) == (by_name[action.name].pre, by_name[action.name].add), action.name


def test_the_lifted_domain_of_a_bundled_problem_grounds_to_it() -> None:
    bundled = load_bundled("blocksworld-3b").domain
    ours = lifted_domain("blocksworld").ground(
        {"block": "abc"}, [("different", (a, b)) for a in "abc" for b in "abc" if a != b]
    )
    assert set(ours.actions) == set(bundled.actions)


def test_names_that_pddl_does_not_have() -> None:
    """Types, predicates and actions of one name, upper case, keywords, and no types at all."""
    move = LiftedAction(
        "at", ("Thing", "object"), [LiftedAtom("at", (0, 1))], [LiftedAtom("not")], [LiftedAtom("at", (0, 1))]
    )
    domain = LiftedDomain(
        {"at": ("Thing", "object"), "not": (), "Thing": ("Thing",)}, (move,), "My Domain", {"Thing": "object"}
    )
    assert read_lifted_pddl(to_pddl(domain)) == domain
    problem = LiftedProblem(domain, {"Thing": ("at", "X")}, {("at", ("X", "at"))}, {("not", ())}, "at")
    assert len(read_pddl(to_pddl(domain), problem_to_pddl(problem)).initial) == 1


def refused(body: str, says: str, constants: str = "", more: str = "") -> None:
    text = f"""(define (domain d) (:requirements :adl :action-costs) (:types t) {constants}
      (:predicates (p ?x - t) (q ?x - t) {more}) (:functions (total-cost) - number (n ?x - t) - number) {body})"""
    with pytest.raises(PlanningError, match=says):
        read_lifted_pddl(text)


def test_domains_that_strips_cannot_say_are_refused() -> None:
    action = "(:action a :parameters (?x - t) :precondition {} :effect {})"
    refused(action.format("(not (p ?x))", "(q ?x)"), "Action 'a' uses the condition .*not")
    refused(action.format("(or (p ?x) (q ?x))", "(q ?x)"), "Action 'a' uses the condition")
    refused(action.format("(forall (?y - t) (p ?y))", "(q ?x)"), "Action 'a' uses the condition")
    refused(action.format("(p ?x)", "(when (p ?x) (q ?x))"), "conditional")
    refused(action.format("(p ?x)", "(forall (?y - t) (q ?y))"), "quantified")
    refused(action.format("(> (n ?x) 1)", "(increase (n ?x) 1)"), "numeric effect")
    refused(action.format("(p c)", "(q ?x)"), r"the constants \['c'\]", "(:constants c - t)")
    refused(action.format("(r ?x)", "(q ?x)"), "PDDL domain")
    refused(action.format("(not (= ?x ?x))", "(q ?x)"), "predicate 'different'", more="(different ?x - t)")
    with pytest.raises(PlanningError, match="cannot be read"):
        read_lifted_pddl("no.pddl")


def test_costs_are_dropped_and_equality_is_a_static_predicate() -> None:
    domain = read_lifted_pddl(
        """(define (domain d) (:requirements :strips :typing :negative-preconditions :equality :action-costs) (:types t)
        (:predicates (p ?x - t)) (:functions (total-cost) - number)
        (:action a :parameters (?x ?y - t) :precondition (and (p ?x) (not (= ?x ?y)))
         :effect (and (p ?y) (not (p ?x)) (increase (total-cost) 3))))"""
    )
    assert domain.actions[0].pre == {LiftedAtom("p", (0,)), LiftedAtom("different", (0, 1))}
    assert domain.static == {"different"}
    walks = LiftedWalks(LiftedProblem(domain, {"t": ("b", "c")}, {("p", ("b",))}))
    assert [str(action) for action in walks.actions] == ["a(b,c)", "a(c,b)"]


def test_wrong_instances_are_refused() -> None:
    for given in (("no",), ("ferry", "huge"), ("ferry", "big", -1)):
        with pytest.raises(PlanningError):
            instance(*given)
    ferry = lifted_domain("ferry")
    for objects, atoms, says in (
        ({"boat": ("b",)}, [], "no types"),
        ({"car": ("x",), "port": ("x",)}, [], "once"),
        ({"car": ("c",)}, [("at", ("c", "c"))], r"at\(c,c\)"),
        ({"car": ("c",)}, [("on", ("d",))], "undeclared"),
        ({"car": ("c",)}, [("off", ("c",))], "no such predicate"),
    ):
        with pytest.raises(PlanningError, match=says):
            LiftedProblem(ferry, objects, atoms)
    with pytest.raises(PlanningError, match="No action"):
        LiftedWalks(LiftedProblem(ferry, {"car": ("c",)}, []))
    with pytest.raises(StripsError):
        ferry.read("fly c1")
