"""PDDL in and out: bundled files, round trips, errors that say where."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain, StripsError
from hf_mech.planning.equivalence import find_distinguishing_trace
from hf_mech.planning.pddl import BUNDLED, decode_name, encode_name, load_bundled, read_pddl, write_pddl
from hf_mech.planning.problem import PlanningError, StripsProblem, reachable_states
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH
from tests.models.strips.strategies import domains

DOMAIN = """(define (domain d)
  (:requirements :adl)
  (:predicates (p) (q) (r ?x))
  {})"""
PROBLEM = "(define (problem d) (:domain d) (:objects o1 o2) (:init (p)) (:goal (p)))"


def action(effect="(q)", precondition="(p)", parameters=""):
    return f"(:action a :parameters ({parameters}) :precondition {precondition} :effect {effect})"


def read(text, **kwargs):
    return read_pddl(DOMAIN.format(text), PROBLEM, **kwargs)


# -------------------------------------------------------------------------------------------------- bundled domains


@pytest.mark.parametrize(
    ("name", "propositions", "actions", "states"),
    [
        ("simple", 3, 3, 4),
        ("blocksworld-2b", 9, 8, 5),
        ("blocksworld-3b", 16, 18, 22),
        ("ferry-1c", 6, 6, 6),
        ("ferry-2c", 9, 10, 16),
        ("gripper-3b", 16, 26, 88),
        ("gripper-8b", 36, 66, 11_776),
        ("logistics-2p", 20, 30, 392),
        ("logistics-4p", 34, 54, 19_208),
        ("miconic-2p", 8, 16, 64),
        pytest.param("sokoban-4x4", 48, 80, 240, marks=pytest.mark.slow),
    ],
)
def test_bundled_domains_have_their_size(name, propositions, actions, states):
    problem = load_bundled(name)
    assert (len(problem.domain.propositions), len(problem.domain.actions)) == (propositions, actions)
    assert len(reachable_states(problem)) == states
    assert problem.domain.name == name


def test_bundled_names():
    larger = {"gripper-3b", "gripper-8b", "logistics-2p", "logistics-4p", "miconic-2p", "sokoban-4x4"}
    assert {*BUNDLED} == {*PAPER_MAX_TRAIN_LENGTH} | larger
    with pytest.raises(PlanningError, match="blocksworld-2b"):
        load_bundled("blocksworld-9b")


FIGURE_1 = """Domain simple
Atoms: p, q, r
Actions:
  a:
    pre(a) = [p, r]
    add(a) = [q]
    del(a) = [p, r]
  b:
    pre(b) = [q, r]
    add(b) = [p]
    del(b) = [q, r]
  c:
    pre(c) = []
    add(c) = [r]
    del(c) = []"""


def test_simple_is_figure_1():
    assert str(load_bundled("simple").domain) == FIGURE_1


# ------------------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_bundled_problems_survive_writing(name):
    problem = load_bundled(name)
    assert read_pddl(*write_pddl(problem)) == problem


def test_files_are_read_and_named_in_errors(tmp_path):
    domain, problem = tmp_path / "domain.pddl", tmp_path / "problem.pddl"
    texts = write_pddl(load_bundled("simple"))
    domain.write_text(texts[0])
    problem.write_text(texts[1])
    assert read_pddl(domain, str(problem)) == load_bundled("simple")
    problem.write_text("(define")
    with pytest.raises(PlanningError, match=r"problem\.pddl, line 1"):
        read_pddl(domain, problem)


def test_a_path_with_a_parenthesis_is_a_path_and_a_comment_begins_pddl(tmp_path):
    texts = write_pddl(load_bundled("simple"))
    paths = [tmp_path / "domain (1).pddl", tmp_path / "problem (1).pddl"]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    assert read_pddl(*map(str, paths)) == load_bundled("simple")
    assert read_pddl(*(f"\n; a comment\n{text}" for text in texts)) == load_bundled("simple")


@settings(max_examples=5)
@given(domains())
def test_domains_come_back(domain):
    assert read_pddl(*write_pddl(domain), prune=False).domain == domain
    assert find_distinguishing_trace(read_pddl(*write_pddl(domain)).domain, domain).equivalent


@settings(max_examples=5)
@given(domains(), st.data())
def test_problems_come_back(domain, data):
    some = st.sets(st.sampled_from(domain.propositions)) if domain.propositions else st.just(set())
    problem = StripsProblem(domain, frozenset(data.draw(some)), frozenset(data.draw(some)))
    assert read_pddl(*write_pddl(problem), prune=False) == problem


names = (
    st.text(min_size=1)
    | st.text("x\0_-a", min_size=1)
    | st.from_regex(r"[a-z-]{1,4}\([a-z_-]{1,3}(,[a-z0-9]{1,3})?\)", fullmatch=True)
)


@given(names, st.sets(st.just("a")))
def test_any_name_has_a_pddl_name_and_comes_back(name, taken):
    encoded = encode_name(name, taken)
    assert decode_name(encoded) == name
    assert encoded not in taken
    assert encoded.isascii()
    assert encoded == encoded.lower()
    assert encoded[0].isalpha()
    assert encoded.replace("-", "").replace("_", "").isalnum()


@given(st.text("abx_-0123cf", min_size=1))
def test_decoding_takes_any_pddl_name(name):
    assert decode_name(name)


def test_names_of_every_kind_survive_files():
    names = ("on(a,b)", "Handempty", "and", "a", "2nd", "hand empty", "über", "x__00a", "f()", "a--b")
    domain = StripsDomain(
        names, tuple(StripsAction(n, frozenset({n}), frozenset(), frozenset({n})) for n in names), "D 1"
    )
    assert "stack--a--b" in write_pddl(load_bundled("blocksworld-2b"))[0]
    assert read_pddl(*write_pddl(domain)).domain == domain


# --------------------------------------------------------------------------------------------- meaning, and pruning


def test_an_atom_added_and_deleted_stays_added():
    domain = read(action("(and (r ?x) (not (r ?y)))", parameters="?x ?y")).domain
    assert [(a.name, set(a.add), set(a.delete)) for a in domain.actions] == [
        ("a(o1,o1)", {"r(o1)"}, set()),
        ("a(o1,o2)", {"r(o1)"}, {"r(o2)"}),
        ("a(o2,o1)", {"r(o2)"}, {"r(o1)"}),
        ("a(o2,o2)", {"r(o2)"}, set()),
    ]
    (both,) = read(action("(and (q) (not (q)))")).domain.actions
    assert (both.add, both.delete) == ({"q"}, set())


def test_static_predicates_are_dropped_with_the_actions_they_forbid():
    texts = action("(q)", "(and (p) (r ?x))", "?x")
    problem = PROBLEM.replace("(p))", "(p) (r o2))", 1)
    pruned = read_pddl(DOMAIN.format(texts), problem)
    assert pruned.domain.propositions == ("q",)
    assert [(a.name, set(a.pre)) for a in pruned.domain.actions] == [("a(o2)", set())]
    assert pruned.goal == frozenset()
    whole = read_pddl(DOMAIN.format(texts), problem, prune=False)
    assert whole.domain.propositions == ("p", "q", "r(o1)", "r(o2)")
    assert len(whole.domain.actions) == 2


def test_a_goal_that_nothing_reaches_is_kept():
    problem = read_pddl(DOMAIN.format(action()), PROBLEM.replace("(:goal (p))", "(:goal (r o1))"))
    assert problem.goal == {"r(o1)"}
    assert "r(o1)" in problem.domain.propositions


# ------------------------------------------------------------------------------------------------------------ errors


FUNCTION = "(:functions (f)) "


@pytest.mark.parametrize(
    ("text", "changes", "where", "feature"),
    [
        (
            FUNCTION + action("(increase (f) 1)", "(> (f) 1)"),
            {},
            "Action 'a'",
            "numeric effect on f, which a condition",
        ),
        (FUNCTION + action(precondition="(> (f) 1)"), {}, "Action 'a'", "numeric condition"),
        (
            action("(and (q) (r ?x))", parameters="?x"),
            {"(:goal (p))": "(:goal (exists (?x) (r ?x)))"},
            "The goal",
            "a disjunction",
        ),
        (action(), {"(:goal (p))": "(:goal (and (p) (not (p))))"}, "The goal", "a contradiction"),
        (action(), {"(:init (p))": "(:init (p) (at 5 (q)))"}, "The problem", "timed literals"),
        (action(), {"(:goal (p))": "(:goal (p)) (:constraints (always (p)))"}, "The problem", "constraints on"),
        (action(), {"(:goal (p))": "(:goal (preference g (p)))"}, "PDDL problem", "preferences"),
        ("(:derived (q) (p)) " + action(), {}, "PDDL domain", "derived predicates"),
        (action() + " (:event e :parameters () :precondition (p) :effect (q))", {}, "The problem", "events"),
        (action("(when (not (and (p) (q))) (when (q) (p)))"), {}, "PDDL domain", "`when` in the effect of a `when`"),
        (action("(when (q) (and (p) (forall (?x) (r ?x))))"), {}, "PDDL domain", "`forall` in the effect"),
    ],
)
def test_what_has_no_strips_form_is_named(text, changes, where, feature):
    problem = PROBLEM
    for old, new in changes.items():
        assert old in problem
        problem = problem.replace(old, new)
    with pytest.raises(PlanningError, match=feature) as error:
        read_pddl(DOMAIN.format(text), problem)
    assert str(error.value).startswith(where)


def test_durations_are_refused():
    conditions = ":duration (= ?duration 3) :condition (at start (p)) :effect (at end (q))"
    with pytest.raises(PlanningError, match="durations"):
        read(f"(:durative-action a :parameters () {conditions})")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("(:action a :parameters ( :precondition (p) :effect (q))", 4, 28),
        ("(:action a :parameters () :precondition (s) :effect (q))", 4, 44),
        ("(:action a :parameters () :precondition (p) :effect (zork q))", 4, 55),
    ],
)
def test_what_does_not_parse_is_located(text, line, column):
    with pytest.raises(PlanningError) as error:
        read(text)
    assert (error.value.source, error.value.line, error.value.column) == ("domain", line, column)
    assert text in str(error.value)


def test_the_problem_is_blamed_for_its_own_mistakes():
    with pytest.raises(PlanningError) as error:
        read_pddl(DOMAIN.format(action()), PROBLEM.replace("(p)", "(zork)"))
    assert error.value.source == "problem"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (":adl", ":adl :domain-axioms", "does not know one of these requirements"),
        ("() :precondition (p)", "(?y) :precondition (s ?y)", r"\(s \?y\)\. Check that the predicates .* are declared"),
    ],
)
def test_a_misspelt_name_is_said_to_be_one(old, new, said):
    with pytest.raises(PlanningError, match=said):
        read_pddl(DOMAIN.format(action()).replace(old, new), PROBLEM)


def test_a_misspelt_type_of_the_problem_is_said_to_be_one():
    with pytest.raises(PlanningError, match=r"PDDL problem: unknown name 'blok'. Check"):
        read_pddl(DOMAIN.format(action()), PROBLEM.replace("o1 o2", "o1 o2 - blok"))


def test_too_many_arguments_are_told_in_words():
    with pytest.raises(PlanningError, match=r"problem.*: In FluentExp, .*1 parameters were passed\. Check") as error:
        read_pddl(DOMAIN.format(action()), PROBLEM.replace("(:init (p)", "(:init (p o1)"))
    assert "UPExpression" not in str(error.value)


def test_nothing_is_no_pddl(tmp_path):
    (tmp_path / "empty.pddl").write_text("\n")
    with pytest.raises(PlanningError, match=r"the domain file is empty; give a PDDL file with \(define \(domain"):
        read_pddl(tmp_path / "empty.pddl", PROBLEM)
    with pytest.raises(PlanningError, match="the problem is an empty string"):
        read_pddl(DOMAIN.format(action()), "")


def test_the_cure_names_the_encoding(tmp_path):
    (tmp_path / "wide.pddl").write_text(DOMAIN.format(action()), "utf-16")
    with pytest.raises(PlanningError, match="iconv -f utf-16 -t utf-8"):
        read_pddl(tmp_path / "wide.pddl", PROBLEM)


def test_what_is_too_large_is_refused_before_grounding():
    variables = " ".join(f"?v{i}" for i in range(18))
    with pytest.raises(PlanningError, match=r"about 262,144 ground actions.*max_ground=262144"):
        read(action(parameters=variables))
    with pytest.raises(PlanningError, match="ground atoms"):
        read(action(), max_ground=3)


def test_a_file_that_ends_too_early():
    """The parser then names a line behind the last one."""
    domain = write_pddl(load_bundled("simple"))[0]
    with pytest.raises(PlanningError, match="end of text"):
        read_pddl(domain, "(define (problem simple) (:domain simple)\n (:init ((p))\n (:goal (q))\n)\n")


@settings(max_examples=10)
@given(
    st.sampled_from(["domain", "problem"]),
    st.integers(0, 10**6),
    st.integers(0, 12),
    st.text("()?:-ab ;=0", max_size=3),
)
def test_mutated_pddl_gives_a_problem_or_a_typed_error(which, where, length, instead):
    texts = dict(zip(("domain", "problem"), write_pddl(load_bundled("simple")), strict=True))
    start = where % len(texts[which])
    texts[which] = texts[which][:start] + instead + texts[which][start + length :]
    with contextlib.suppress(PlanningError, StripsError):
        assert isinstance(read_pddl(texts["domain"], texts["problem"]), StripsProblem)
