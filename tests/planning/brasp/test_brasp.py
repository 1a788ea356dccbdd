"""B-RASP: the language, its interpreter, the program of a domain, and its compilation."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.planning.brasp import (
    FALSE,
    TRUE,
    Attention,
    Initial,
    PositionWise,
    Program,
    all_of,
    any_of,
    compile_strips_transformer,
    compile_theta,
    run,
    strips_program,
)
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.problem import PlanningError
from tests.models.strips.definition_1 import f_m
from tests.models.strips.strategies import domains, domains_with_traces

FIGURE_1 = {
    "accbca": """
        I_a 100001  I_b 000100  I_c 011010
        Q_p 100001  K_p 100101  V_p 100001  Y_p 000000
        Q_q 000100  K_q 100101  V_q 000100  Y_q 000000
        Q_r 100101  K_r 111111  V_r 100101  Y_r 000000
        Y 000000  Z 000000""",
    "acacbb": """
        I_a 101000  I_b 000011  I_c 010100
        Q_p 101000  K_p 101011  V_p 101000  Y_p 001000
        Q_q 000011  K_q 101011  V_q 000011  Y_q 000001
        Q_r 101011  K_r 111111  V_r 101011  Y_r 000001
        Y 001001  Z 111111""",
}


@pytest.mark.parametrize("trace", FIGURE_1)
def test_figure_1(trace):
    words = FIGURE_1[trace].split()
    expected = dict(zip(words[::2], words[1::2], strict=True))
    vectors = run(strips_program(load_bundled("simple").domain), trace)
    assert {name: "".join(str(int(bit)) for bit in vector) for name, vector in vectors.items()} == expected


bits = st.lists(st.booleans(), min_size=3, max_size=3)


@given(
    st.text("ab", max_size=7),
    st.sampled_from(["leftmost", "rightmost"]),
    st.sampled_from(["all", "before", "after"]),
    bits,
    bits,
    st.booleans(),
)
def test_attention_is_equation_1(word, direction, mask, score, value, default):
    """Against the definition: look at every j that mask and score allow, take the first or last of them."""
    a = Initial("a")

    def formula(chosen):  # a small family of formulas over i and j
        constant, negated, at_i = chosen
        literal = a.i if at_i else a.j
        return any_of([all_of([TRUE if constant else FALSE, a.i]), ~literal if negated else literal])

    def truth(chosen, i, j):
        constant, negated, at_i = chosen
        return (constant and word[i] == "a") or ((word[i if at_i else j] == "a") != negated)

    found = run(
        Program("ab", [Attention("P", direction, mask, formula(score), formula(value), ~a if default else FALSE)]), word
    )["P"]
    allowed = {"all": lambda i, j: True, "before": lambda i, j: j < i, "after": lambda i, j: j > i}[mask]
    for i in range(len(word)):
        js = [j for j in range(len(word)) if allowed(i, j) and truth(score, i, j)]
        if js:
            assert found[i] == truth(value, i, min(js) if direction == "leftmost" else max(js))
        else:
            assert found[i] == (default and word[i] != "a")


@given(domains())
def test_compile_reads_equations_8_to_10(domain):
    theta = compile_theta(strips_program(domain))
    assert theta.shape == (len(domain.propositions), len(domain.actions), 3)
    for p, proposition in enumerate(domain.propositions):
        for m, action in enumerate(domain.actions):
            affected = proposition in action.add | action.delete
            assert theta[p, m].tolist() == [proposition in action.pre, affected, proposition in action.delete]


def test_compile_follows_positionwise_definitions():
    a, b = Initial("a"), Initial("b")
    not_a = PositionWise("not_a", ~a)
    q = PositionWise("Q", not_a & b)
    y_p = Attention("Y_p", "rightmost", "before", score=not_a.j & q.i, value=a.j)
    y = PositionWise("Y", y_p)
    z = Attention("Z", "leftmost", "all", score=y.j, value=TRUE)
    assert np.array_equal(compile_theta(Program("ab", [not_a, q, y_p, y, z])), [[[0, 0, 1], [1, 1, 0]]])


def test_vectors_stand_for_their_entry_at_i_on_either_side():
    a, b = Initial("a"), Initial("b")
    assert a & b == a.i & b.i == a & b.i
    assert a | b == a.i | b.i
    assert ~a == ~a.i
    assert (str(a & b), str(a | ~b)) == ("(I_a(i) ∧ I_b(i))", "(I_a(i) ∨ ¬I_b(i))")  # noqa: RUF001
    operations = _almost_strips()
    expected = compile_theta(Program("ab", operations))
    q, k = operations[:2]
    assert np.array_equal(compile_theta(Program("ab", _almost_strips(score=q & k.j))), expected)


@given(domains_with_traces())
def test_theorem_4(case):
    """The compiled transformer computes Definition 1, and is the one that the domain gives directly."""
    domain, trace = case
    assume(domain.propositions)
    model = compile_strips_transformer(strips_program(domain))
    assert (model.config.actions, model.config.propositions) == (list(domain.action_names), list(domain.propositions))
    with torch.no_grad():
        outputs = model(torch.tensor([domain.encode(trace)]))
    assert outputs.trace_inapplicability.item() == f_m(domain, trace)
    assert outputs.inapplicability[0, :, 0].tolist() == domain.labels(trace)
    assert torch.equal(model.theta, type(model).from_domain(domain).theta)


def test_heads_of_other_names_compile_to_unnamed_propositions():
    model = compile_strips_transformer(Program("ab", _almost_strips()))
    assert model.config.propositions == ["p"]
    operations = _almost_strips()
    head = Attention("head", "rightmost", "before", score=operations[0].i & operations[1].j, value=operations[2].j)
    y = PositionWise("Y", head)
    z = Attention("Z", "rightmost", "all", score=y.j, value=TRUE)
    unnamed = compile_strips_transformer(Program("ab", [*operations[:3], head, y, z]))
    assert unnamed.config.propositions == ["p0"]
    assert torch.equal(unnamed.theta, model.theta)
    twice = [*operations[:4], PositionWise("Y", any_of([operations[3], operations[3]]))]
    z = Attention("Z", "rightmost", "all", score=twice[-1].j, value=TRUE)
    assert compile_strips_transformer(Program("ab", [*twice, z])).config.propositions == ["p0", "p1"]


def test_a_transformer_has_a_head():
    y = PositionWise("Y", FALSE)
    with pytest.raises(StripsError, match="proposition"):
        compile_strips_transformer(Program("ab", [y, Attention("Z", "rightmost", "all", score=y.j, value=TRUE)]))


def _almost_strips(**changes):
    q, k, v = (PositionWise(name, Initial("a")) for name in "QKV")
    head = {"direction": "rightmost", "mask": "before", "score": q.i & k.j, "value": v.j, "default": FALSE, **changes}
    y_p = Attention("Y_p", **head)
    y = PositionWise("Y", any_of([y_p]))
    return [q, k, v, y_p, y, Attention("Z", "rightmost", "all", score=y.j, value=TRUE)]


@pytest.mark.parametrize(
    "changes",
    [
        {"direction": "leftmost"},
        {"mask": "after"},
        {"score": Initial("a").i},
        {"value": TRUE},
        {"default": TRUE},
    ],
)
def test_compile_names_the_head_of_another_form(changes):
    compile_theta(Program("ab", _almost_strips()))
    with pytest.raises(PlanningError, match="Y_p"):
        compile_theta(Program("ab", _almost_strips(**changes)))


def test_compile_refuses_queries_made_by_attention_and_programs_without_an_end():
    operations = _almost_strips()
    looks_back = Attention("Q2", "leftmost", "all", score=TRUE, value=TRUE)
    head = Attention("Y_p", "rightmost", "before", score=looks_back.i & operations[1].j, value=operations[2].j)
    with pytest.raises(PlanningError, match="Q2"):
        compile_theta(Program("ab", [*operations[:3], looks_back, head, *operations[4:]]))
    with pytest.raises(PlanningError, match="Y\\(i\\)"):
        compile_theta(Program("ab", operations[:-1]))
    with pytest.raises(PlanningError, match="empty"):
        compile_theta(Program("ab", []))


def test_mistakes_in_programs_are_refused():
    a = Initial("a")
    p = PositionWise("P", a)
    for operations, says in (
        ([p, p], "twice"),
        ([PositionWise("P", Initial("c"))], "not defined before"),
        ([PositionWise("P", a.j)], "position i"),
        ([Attention("P", "rightmost", "all", TRUE, TRUE, default=a.j)], "position i"),
        ([Attention("P", "last", "all", TRUE, TRUE)], "direction"),
        ([Attention("P", "leftmost", "past", TRUE, TRUE)], "mask"),
        ([PositionWise("P", 1)], "expression"),
    ):
        with pytest.raises(PlanningError, match=says):
            Program("ab", operations)
    with pytest.raises(PlanningError, match="alphabet"):
        Program("aa", [])
    with pytest.raises(PlanningError, match="position 1"):
        run(Program("ab", []), "ac")
    with pytest.raises(PlanningError, match="truth value"):
        bool(a.i)


def test_programs_print_as_in_the_paper():
    assert "Y_p(i) := ▶_j [j < i, (Q_p(i) ∧ K_p(j))] V_p(j) : 0" in str(strips_program(load_bundled("simple").domain))
