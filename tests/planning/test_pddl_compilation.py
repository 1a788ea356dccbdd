"""PDDL beyond STRIPS is compiled to STRIPS with the same plans, and says what was compiled away."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.planning.pddl import read_pddl, write_pddl
from hf_mech.planning.planner import plan
from hf_mech.planning.problem import PlanningError

from .adl import BRIEFCASE, LIFT, LOGISTICS, assert_same_plans


@pytest.mark.parametrize("prune", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("texts", "features", "states"),
    [
        (LOGISTICS, {"costs and metric": ("drive", "fly", "load", "unload")}, 20),
        (
            BRIEFCASE,
            {
                "forall and exists": ("move", "the goal"),
                "conditional effects (when)": ("move",),
                "negative conditions": ("move", "put-in", "the goal"),
            },
            18,
        ),
        (
            LIFT,
            {
                "forall and exists": ("go", "open", "ring", "look", "the goal"),
                "conditional effects (when)": ("open", "ring"),
                "disjunctive conditions": ("open", "ring", "look"),
                "negative conditions": ("go", "open", "ring"),
            },
            33,
        ),
    ],
    ids=["logistics", "briefcase", "lift"],
)
def test_the_plans_stay_the_same(texts, features, states, prune):
    problem = read_pddl(*texts, prune=prune)
    assert assert_same_plans(texts, problem) >= states
    if prune:
        assert {note.feature: note.where for note in problem.notes} == features
    found = plan(problem.domain, problem.initial, problem.goal)
    assert found
    assert read_pddl(*write_pddl(problem), prune=False).domain == problem.domain


CONDITIONS = st.recursive(
    st.sampled_from(["(p)", "(q)", "(r ?x)", "(r o1)", "(= ?x o2)", "(s ?x)"]),
    lambda inner: st.one_of(
        st.builds("(not {})".format, inner),
        st.builds("(and {} {})".format, inner, inner),
        st.builds("(or {} {})".format, inner, inner),
        st.builds("(imply {} {})".format, inner, inner),
        st.builds("(forall (?y) (or (r ?y) {}))".format, inner),
        st.builds("(exists (?y) (and (r ?y) {}))".format, inner),
    ),
    max_leaves=4,
)
LITERALS = st.sampled_from(["(p)", "(not (p))", "(q)", "(not (q))", "(r ?x)", "(not (r ?x))", "(not (r o2))"])
EFFECTS = st.one_of(
    LITERALS,
    st.builds("(when {} {})".format, CONDITIONS, LITERALS),
    st.builds("(forall (?z) (when {} (not (r ?z))))".format, CONDITIONS),
    st.builds("(forall (?z) (when (not (r ?z)) (and (r ?z) {})))".format, LITERALS),
)


@settings(max_examples=5)
@given(
    st.lists(st.tuples(CONDITIONS, st.lists(EFFECTS, max_size=3)), min_size=1, max_size=2),
    CONDITIONS,
    st.booleans(),
)
def test_random_domains_keep_their_plans(actions, condition, prune):
    schemas = " ".join(
        f"(:action a{i} :parameters (?x) :precondition {pre} :effect (and {' '.join(effects)}))"
        for i, (pre, effects) in enumerate(actions)
    )
    texts = (
        f"(define (domain d) (:requirements :adl) (:constants o1 o2) (:predicates (p) (q) (r ?x) (s ?x)) {schemas})",
        "(define (problem one) (:domain d) (:init (p) (r o1) (s o2)) (:goal (p)))",
    )
    assert_same_plans(texts, read_pddl(*texts, prune=prune))


def test_versions_of_an_action_map_back_to_its_name():
    problem = read_pddl(*BRIEFCASE)
    assert problem.variants["move#1(home,office)"] == "move(home,office)"
    assert "put-in(letter,home)" in problem.domain.action_names  # one version: its name stays
    found = plan(problem.domain, problem.initial, problem.goal)
    assert problem.original_names(found) == [
        "move(home,office)",
        "put-in(cheque,office)",
        "move(office,home)",
        "take-out(cheque)",
    ]
    assert "not-in(letter)" in problem.domain.propositions
    assert "not-in(letter)" in problem.initial
    assert "not-in(cheque)" in problem.goal


def test_the_notes_are_read_and_logged_once(caplog, tmp_path):
    paths = [tmp_path / "domain.pddl", tmp_path / "problem.pddl"]
    for path, text in zip(paths, BRIEFCASE, strict=True):
        path.write_text(text)
    notes = {note.feature: str(note) for note in read_pddl(*BRIEFCASE).notes}
    assert "8 actions, such as move#1(home,office), from 2" in notes["conditional effects (when)"]
    assert "2 complementary propositions added, such as not-in(letter)" in notes["negative conditions"]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "hf_mech.planning.pddl.read"):
        for _ in range(3):
            read_pddl(*map(str, paths))
    assert [record.getMessage().partition(". ")[0] for record in caplog.records] == [
        f"{paths[0]} and {paths[1]} were compiled to STRIPS"
    ]
    assert read_pddl(*write_pddl(read_pddl(*LOGISTICS))).notes == ()


def test_a_false_goal_is_not_an_empty_one():
    text = LOGISTICS[1].replace("(:goal (at letter ber))", "(:goal (air ber ber))")
    problem = read_pddl(LOGISTICS[0], text)
    assert plan(problem.domain, problem.initial, problem.goal) is None


def test_too_many_versions_are_refused():
    objects = " ".join(f"o{i}" for i in range(30))
    text = BRIEFCASE[1].replace("letter cheque", f"letter cheque {objects}")
    with pytest.raises(PlanningError, match=r"max_ground=1,000 versions.*split the action"):
        read_pddl(BRIEFCASE[0], text, max_ground=1000)
    wide = "(:action w :parameters () :precondition (forall (?a ?b ?c ?d - portable) (in ?d)) :effect (is-at home))"
    domain = BRIEFCASE[0].replace(
        "(:types location portable)", "(:types location portable) (:constants home - location)"
    )
    with pytest.raises(PlanningError, match=r"quantifiers of 'w' stand for about 1,048,57[0-9]"):
        read_pddl(domain[:-1] + wide + ")", text.replace("home office", "office"))


# ------------------------------------------------------------------------------------------------------------- files


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.pddl").write_bytes(b"(define (domain d)\n; caf\xe9\n)")
    (tmp_path / "problem.pddl").write_text(LOGISTICS[1])
    with pytest.raises(PlanningError, match=r"domain file is not UTF-8 text: byte 0xe9 in line 2.*iconv"):
        read_pddl(tmp_path / "latin.pddl", tmp_path / "problem.pddl")
    for missing in (tmp_path / "no.pddl", str(tmp_path), "no\0.pddl"):
        with pytest.raises(PlanningError, match=r"problem file cannot be read .*give the path of a PDDL file") as error:
            read_pddl(LOGISTICS[0], missing)
        assert error.value.source == str(missing)


@pytest.mark.parametrize(
    ("texts", "says", "source"),
    [
        ((LOGISTICS[1], LOGISTICS[0]), "the two are swapped. Pass the domain first", "domain"),
        ((LOGISTICS[0], BRIEFCASE[0]), "this is a domain, expected a problem", "problem"),
        ((LOGISTICS[1], BRIEFCASE[1]), "this is a problem, expected a domain", "domain"),
        ((LOGISTICS[0], BRIEFCASE[1]), "of the domain 'briefcase', but the domain given .* 'logistics'", "problem"),
    ],
)
def test_files_that_do_not_belong_together(texts, says, source):
    with pytest.raises(PlanningError, match=says) as error:
        read_pddl(*texts)
    assert error.value.source == source


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("(at jet ber)", "(at jet jfk)", "jfk"),
        ("(at jet ber)", "(parked jet ber)", "parked jet ber"),
        ("lorry - truck", "lorry - tractor", "'tractor'"),
        ("(at jet ber)", "(at jet)", "arity 2 but 1"),
    ],
)
def test_a_problem_with_names_that_its_domain_lacks(old, new, says):
    with pytest.raises(
        PlanningError, match=rf"{says}.*Check that the problem uses the objects, predicates and types"
    ) as e:
        read_pddl(LOGISTICS[0], LOGISTICS[1].replace(old, new))
    assert e.value.source == "problem"
    assert e.value.line == (3 if "jet" in old else None)


def test_static_preconditions_that_exclude_the_same_object():
    """Untyped domains say types by static predicates: the ball is no place, and no road begins or ends at it."""
    domain = """(define (domain roads) (:predicates (place ?x) (road ?x ?y) (at ?x))
      (:action go :parameters (?x ?y) :precondition (and (place ?x) (place ?y) (road ?x ?y) (at ?x))
       :effect (and (at ?y) (not (at ?x)))))"""
    problem = """(define (problem there) (:domain roads) (:objects home shop ball)
      (:init (place home) (place shop) (road home shop) (at home)) (:goal (at shop)))"""
    read = read_pddl(domain, problem)
    assert read.domain.action_names == ("go(home,shop)",)
    assert read.domain.propositions == ("at(home)", "at(shop)")
