"""The code's length: the compiled one is the formula's, and no move loses count of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mech.models.strips import StripsDomain
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.problem import PlanningError
from hf_mech.planning.traces import TraceSettings, generate_traces
from hf_mech.planning.two_part_code import (
    Guess,
    Search,
    TwoPartCode,
    code_length_reference,
    domain_of,
    inapplicable,
    positions_of,
    theta_of,
)
from hf_mech.planning.two_part_code.kernel import (
    DELETE,
    chain_of,
    change,
    data_bits,
    flip_initial,
    move_traces,
    set_effect,
)

ACTIONS = ["a", "b", "c", "d"]
PRICES = np.array(TwoPartCode().prices)


@st.composite
def cases(draw: st.DrawFn):
    """A guess of three atoms and two initial states, and labelled traces of four actions."""

    def numbers(below: int, *shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.integers(0, below - 1), min_size=size, max_size=size))).reshape(shape)

    traces = draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=5))
    labels = [draw(st.lists(st.integers(0, 1), min_size=len(trace), max_size=len(trace))) for trace in traces]
    cells = (numbers(2, 3, 4).astype(np.uint8), numbers(3, 3, 4).astype(np.uint8))
    return Guess(*cells, numbers(2, 2, 3).astype(np.uint8), numbers(2, len(traces))), traces, labels


def masks(guess: Guess) -> list[int]:
    """The false propositions at the start of each trace."""
    return [sum(1 << atom for atom in range(guess.initial.shape[1]) if guess.initial[k, atom]) for k in guess.state]


@given(cases())
@settings(max_examples=60, deadline=None)
def test_the_compiled_length_is_the_formula(case):
    guess, traces, labels = case
    data, code = positions_of(traces, labels, ACTIONS), TwoPartCode()
    bits, wrong = data_bits(chain_of(guess.copy(), data), data)
    paid = PRICES[guess.pre, guess.effect].sum()
    domain = domain_of(guess, ACTIONS, "any", keep_idle=True)
    expected = code_length_reference(domain, traces, labels, masks(guess), code)
    assert bits + paid + code.wrong_label * wrong == pytest.approx(expected, abs=1e-6)
    flat = [label for trace, told in zip(traces, labels, strict=True) for label in domain.labels(trace, told)]
    assert inapplicable(guess, data).tolist() == flat


MOVES = st.one_of(
    st.tuples(st.just("cell"), st.integers(0, 2), st.integers(0, 3), st.integers(-1, 2)),
    st.tuples(st.just("initial"), st.integers(0, 1), st.integers(0, 2)),
    st.tuples(st.just("trace"), st.integers(0, 4), st.integers(0, 1)),
)


@given(cases(), st.lists(MOVES, max_size=12))
@settings(max_examples=80, deadline=None)
def test_a_move_costs_what_it_says_and_leaves_the_state_of_its_guess(case, moves):
    guess, traces, labels = case
    data = positions_of(traces, labels, ACTIONS)
    chain = chain_of(guess.copy(), data)
    for kind, *move in moves:
        before, paid = data_bits(chain, data), PRICES[chain.pre, chain.effect].sum()
        price = 0.0
        if kind == "cell":
            weighed = change(chain, data, PRICES, *move, False)
            assert data_bits(chain, data) == before
            price, bits, wrong = change(chain, data, PRICES, *move, True)
            assert (price, bits, wrong) == weighed
        elif kind == "initial":
            weighed = flip_initial(chain, data, *move, False)
            assert data_bits(chain, data) == before
            bits, wrong = flip_initial(chain, data, *move, True)
            assert (bits, wrong) == weighed
        else:
            bits, wrong = move_traces(chain, data, np.array([move[0] % len(traces)]), move[1])
        after = data_bits(chain, data)
        assert PRICES[chain.pre, chain.effect].sum() - paid == pytest.approx(price)
        assert (after[0] - before[0], after[1] - before[1]) == (pytest.approx(bits, abs=1e-9), wrong)
        fresh = chain_of(Guess(*chain[:4]).copy(), data)
        for name in ("needs", "unmet", "cover", "free", "single", "forbidden"):
            np.testing.assert_array_equal(getattr(chain, name), getattr(fresh, name), err_msg=name)


def test_more_actions_than_a_word_has_bits():
    actions = [f"a{number}" for number in range(130)]
    pre, effect = np.zeros((1, 130), np.uint8), np.zeros((1, 130), np.uint8)
    pre[0, [0, 63, 64, 129]], effect[0, 100] = 1, DELETE
    guess = Guess(pre, effect, np.zeros((1, 1), np.uint8), np.zeros(2, np.int64))
    data = positions_of([[100, 129], [129, 63]], [[0, 1], [0, 0]], actions)
    chain = chain_of(guess.copy(), data)
    assert chain.forbidden.tolist() == [0, 4, 0, 0]
    assert data_bits(chain, data) == (pytest.approx(3 * np.log2(130) + 2), 0)
    bits, wrong = set_effect(chain, data, 0, 129, DELETE, True)
    assert (bits, wrong) == (pytest.approx(2 - np.log2(130)), 1)
    assert chain.forbidden.tolist() == [0, 4, 0, 4]


def traces_of(name: str, size: int, seed: int):
    problem = load_bundled(name)
    train = generate_traces(problem, TraceSettings(seed=seed, num_train=size, num_test=2)).train
    return problem.domain, [trace.actions for trace in train], [trace.labels for trace in train]


def test_a_search_is_the_same_with_any_number_of_threads_and_after_a_kill():
    domain, traces, labels = traces_of("blocksworld-2b", 50, 11)
    data, code = positions_of(traces, labels, domain.action_names), TwoPartCode(sweeps=12)
    keys = [(3, 0), (3, 1), (4, 0)]
    straight, threads, killed = (Search(data, 6, keys, code) for _ in range(3))
    straight.advance(12)
    for _ in range(4):
        threads.advance(3, jobs=3)
    killed.advance(7)
    revived = Search(data, 6, keys, code)
    revived.load_state_dict(killed.state_dict())
    revived.advance(100)
    alone = Search(data, 6, [(4, 0)], code)
    alone.advance(12)
    for other in (threads, revived):
        assert (other.sweep, other.bits) == (12, pytest.approx(straight.bits, abs=1e-6))
        for chain in range(3):
            assert_same(other.best(chain), straight.best(chain))
    assert_same(alone.best(0), straight.best(2))
    assert not np.array_equal(straight.best(0).pre, straight.best(1).pre)


def assert_same(one: Guess, other: Guess) -> None:
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_length_of_the_kept_guess_is_the_formula():
    domain, traces, labels = traces_of("blocksworld-2b", 50, 12)
    data, code = positions_of(traces, labels, domain.action_names), TwoPartCode(sweeps=20)
    search = Search(data, 8, [(0, 0)], code)
    search.advance(20)
    kept = domain_of(search.best(0), domain.action_names, "kept", keep_idle=True)
    expected = code_length_reference(kept, traces, labels, masks(search.best(0)), code)
    assert search.bits[0] == pytest.approx(expected, abs=1e-3)


def test_theta_is_that_of_the_domain():
    guess = Guess(
        np.array([[1, 0]], np.uint8), np.array([[2, 1]], np.uint8), np.zeros((1, 1), np.uint8), np.zeros(1, np.int64)
    )
    assert theta_of(guess).tolist() == [[[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]]
    domain = domain_of(guess, ["on", "off"], "lamp")
    assert isinstance(domain, StripsDomain)
    assert (domain.actions[0].pre, domain.actions[0].delete, domain.actions[1].add) == ({"p0"}, {"p0"}, {"p0"})


@pytest.mark.parametrize(
    ("given_", "names"),
    [
        ({"label_noise": 0.5}, "label_noise"),
        ({"sweeps": 0}, "sweeps"),
        ({"temperature": (1.0, 2.0)}, "temperature"),
        ({"add": -1.0}, "add"),
        ({"first_wrong_label": 0.0}, "first_wrong_label"),
        ({"sweeps": 2.5}, "sweeps"),
        ({"initial_states": True}, "initial_states"),
        ({"add": "x"}, "add"),
        ({"significance": float("nan")}, "significance"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": (3, 2, 1)}, "temperature"),
        ({"temperature": (float("inf"), 1)}, "temperature"),
    ],
)
def test_prices_that_make_no_sense(given_, names):
    with pytest.raises(PlanningError, match=names):
        TwoPartCode(**given_)


@pytest.mark.parametrize(
    ("traces", "labels", "names"),
    [
        ([], [], "no traces"),
        ([["jump"]], [[0]], "jump"),
        ([["a"]], [[2]], "label"),
        ([["a", "b"]], [[0]], "label"),
        ([["a"], ["b"], ["c", "d"]], [[0], [0], [0, 3]], "Trace 2 needs a label"),
        ([["a"], ["b"]], [[0]], "2 traces, labels of 1"),
        ([[-1]], [[0]], "-1"),
        ([[["a"]]], [[0]], "Unknown action"),
        ([["a"]], [[[0]]], "label"),
        ([["a"]], [None], "must be sequences"),
        ([["a"], ["b"]], [0, 1], "must be sequences"),
    ],
)
def test_traces_that_make_no_sense(traces, labels, names):
    with pytest.raises(PlanningError, match=names):
        positions_of(traces, labels, ACTIONS)


def test_arrays_are_sequences():
    mixed = [[0, 1], np.array([0, 1])]
    assert positions_of([[0, 1], np.array([1, 0])], mixed, ACTIONS).labels.tolist() == [0, 1, 0, 1]
    assert positions_of(np.zeros((2, 2), int), np.ones((2, 2), int), ACTIONS).labels.tolist() == [1, 1, 1, 1]
