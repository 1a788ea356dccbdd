"""PDDL beyond STRIPS as users write it, and unified-planning's simulator as the judge of its compilation."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

from hf_mech.planning.problem import StripsProblem

LOGISTICS = (
    """(define (domain logistics) ; with action costs
  (:requirements :strips :typing :action-costs)
  (:types place parcel vehicle - object truck plane - vehicle city airport - place)
  (:predicates (at ?o - object ?p - place) (in ?o - parcel ?v - vehicle) (road ?a ?b - place) (air ?a ?b - airport))
  (:functions (total-cost) - number (length ?a ?b - place) - number)
  (:action drive :parameters (?t - truck ?a ?b - place) :precondition (and (at ?t ?a) (road ?a ?b))
   :effect (and (not (at ?t ?a)) (at ?t ?b) (increase (total-cost) (length ?a ?b))))
  (:action fly :parameters (?f - plane ?a ?b - airport) :precondition (and (at ?f ?a) (air ?a ?b))
   :effect (and (not (at ?f ?a)) (at ?f ?b) (increase (total-cost) 90)))
  (:action load :parameters (?o - parcel ?v - vehicle ?p - place) :precondition (and (at ?v ?p) (at ?o ?p))
   :effect (and (not (at ?o ?p)) (in ?o ?v) (increase (total-cost) 2)))
  (:action unload :parameters (?o - parcel ?v - vehicle ?p - place) :precondition (and (at ?v ?p) (in ?o ?v))
   :effect (and (not (in ?o ?v)) (at ?o ?p) (increase (total-cost) 2))))""",
    """(define (problem two-cities) (:domain logistics)
  (:objects bonn - city cgn ber - airport lorry - truck jet - plane letter - parcel)
  (:init (at lorry bonn) (at jet ber) (at letter bonn) (road bonn cgn) (road cgn bonn) (air cgn ber) (air ber cgn)
   (= (total-cost) 0) (= (length bonn cgn) 30) (= (length cgn bonn) 30))
  (:goal (at letter ber)) (:metric minimize (total-cost)))""",
)

BRIEFCASE = (
    """(define (domain briefcase)
  (:requirements :adl)
  (:types location portable)
  (:predicates (at ?y - portable ?x - location) (in ?x - portable) (is-at ?x - location))
  (:action move :parameters (?m ?l - location) :precondition (and (is-at ?m) (not (= ?m ?l)))
   :effect (and (is-at ?l) (not (is-at ?m))
     (forall (?x - portable) (when (in ?x) (and (at ?x ?l) (not (at ?x ?m)))))))
  (:action take-out :parameters (?x - portable) :precondition (in ?x) :effect (not (in ?x)))
  (:action put-in :parameters (?x - portable ?l - location)
   :precondition (and (not (in ?x)) (at ?x ?l) (is-at ?l)) :effect (in ?x)))""",
    """(define (problem get-paid) (:domain briefcase)
  (:objects home office - location letter cheque - portable)
  (:init (is-at home) (at letter home) (at cheque office))
  (:goal (and (at cheque home) (not (in cheque)) (forall (?p - portable) (at ?p home)))))""",
)

LIFT = (
    """(define (domain lift) (:requirements :adl)
  (:types passenger floor) (:constants lobby - floor)
  (:predicates (aboard ?p - passenger) (served ?p - passenger) (vip ?p - passenger) (at ?f - floor)
    (from ?p - passenger ?f - floor) (to ?p - passenger ?f - floor) (alarm) (rang))
  (:action go :parameters (?a ?b - floor)
   :precondition (and (at ?a) (not (= ?a ?b))
     (or (not (alarm)) (= ?b lobby))
     (imply (exists (?v - passenger) (and (vip ?v) (aboard ?v)))
            (exists (?v - passenger) (and (vip ?v) (aboard ?v) (to ?v ?b)))))
   :effect (and (at ?b) (not (at ?a))))
  (:action open :parameters (?f - floor) :precondition (at ?f)
   :effect (and
     (forall (?p - passenger) (when (and (from ?p ?f) (not (served ?p)) (not (aboard ?p))) (aboard ?p)))
     (forall (?p - passenger) (when (and (aboard ?p) (to ?p ?f)) (and (served ?p) (not (aboard ?p)))))))
  (:action ring :parameters () :precondition (exists (?p - passenger) (aboard ?p)) :effect (when (not (alarm)) (alarm)))
  (:action look :parameters () :precondition (or (alarm) (forall (?p - passenger) (served ?p)))))""",
    """(define (problem morning) (:domain lift)
  (:objects first second - floor ann ben - passenger)
  (:init (at lobby) (vip ann) (from ann lobby) (to ann second) (from ben first) (to ben lobby))
  (:goal (forall (?p - passenger) (served ?p))))""",
)


def assert_same_plans(texts: tuple[str, str], ours: StripsProblem, most: int = 400) -> int:
    """Walks through the states of the PDDL files and of `ours` together, breadth first; returns their number.

    In every state, an action of the files is applicable exactly if a version of it is, all applicable versions lead to
    the same state, both states hold the same atoms, and both or neither reach the goal.
    """
    from unified_planning.engines.sequential_simulator import UPSequentialSimulator
    from unified_planning.io import PDDLReader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", "(We cannot establish whether|The Grounder used in) ")
        original = PDDLReader().parse_problem_string(*texts)
        simulator = UPSequentialSimulator(original, error_on_failed_checks=False)
    domain = ours.domain

    def named(schema: Any, parameters: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
        choices = itertools.product(*(list(original.objects(p.type)) for p in parameters))
        return {f"{schema.name}({','.join(o.name for o in c)})" if c else schema.name: (schema, c) for c in choices}

    actions = {k: v for a in original.actions for k, v in named(a, a.parameters).items()}
    fluents = [f for f in original.fluents if f.type.is_bool_type()]
    atoms = {k: f(*c) for fluent in fluents for k, (f, c) in named(fluent, fluent.signature).items()}
    versions: dict[str, list[int]] = {name: [] for name in actions}
    for index, own in enumerate(ours.original_names(domain.action_names)):
        versions[own].append(index)
    with simulator:

        def check(theirs: Any, mask: int) -> None:
            held = {name for name, atom in atoms.items() if theirs.get_value(atom).is_true()}
            true = domain.unmask(mask)
            for proposition in domain.propositions:
                if proposition in atoms:
                    assert (proposition in true) == (proposition in held)
                else:
                    assert (proposition in true) == (proposition.removeprefix("not-") not in held)
            assert simulator.is_goal(theirs) == (ours.goal <= true)

        start = (simulator.get_initial_state(), domain.mask(ours.initial))
        check(*start)
        queue, seen = [start], {start[1]}
        for theirs, mask in queue:  # grows during the loop
            possible = set(domain.applicable(mask))
            for name, (action, parameters) in actions.items():
                successor = _apply(original, simulator, theirs, action, parameters)
                following = {domain.apply(mask, v) for v in versions[name] if v in possible}
                assert len(following) == (successor is not None), (name, domain.unmask(mask))
                for after in following:
                    if after not in seen and len(seen) < most:
                        check(successor, after)
                        seen.add(after)
                        queue.append((successor, after))
        return len(seen)


def _apply(problem: Any, simulator: Any, state: Any, action: Any, parameters: tuple[Any, ...]) -> Any | None:
    """The next state, None if the action is inapplicable.

    The simulator refuses ground actions without effects and those that add and delete an atom; for these, the lifted
    conditions and effects are evaluated one by one, and adding wins.
    """
    from unified_planning.exceptions import UPInvalidActionError
    from unified_planning.model.walkers import StateEvaluator

    try:
        return simulator.apply(state, action, parameters)
    except UPInvalidActionError:
        evaluate = StateEvaluator(problem).evaluate
        binding = dict(
            zip(action.parameters, map(problem.environment.expression_manager.ObjectExp, parameters), strict=True)
        )
        if not all(evaluate(c.substitute(binding), state).is_true() for c in action.preconditions):
            return None
        values: dict[Any, bool] = {}
        for effect in itertools.chain.from_iterable(e.expand_effect(problem) for e in action.effects):
            if evaluate(effect.condition.substitute(binding), state).is_true():
                atom = effect.fluent.substitute(binding)
                values[atom] = values.get(atom, False) or effect.value.is_true()
        promote = problem.environment.expression_manager.auto_promote
        return state.make_child({atom: promote(value)[0] for atom, value in values.items()})
