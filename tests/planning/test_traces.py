"""The traces are what the paper's "Data generation" says, and the same wherever and however they are made."""

import hashlib
import itertools
from collections import Counter

import pytest

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.problem import PlanningError, StripsProblem, reachable_states
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH, TooFewTracesError, TraceSettings, generate_traces


def settings_for(name: str, **changes) -> TraceSettings:
    return TraceSettings(**{"max_train_length": PAPER_MAX_TRAIN_LENGTH[name], "num_test": 400, **changes})


def negative_by_definition_1(domain: StripsDomain, trace) -> bool:
    """f_M of Definition 1, word by word; the package keeps masks instead."""
    actions = [domain.actions[a] for a in trace]
    for i, action in enumerate(actions):
        for p in action.pre:
            affecting = [a for a in actions[:i] if p in a.add | a.delete]
            if affecting and p not in affecting[-1].add:
                return True
    return False


# ------------------------------------------------------------------------------------------------- what is generated


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_labels_follow_definition_1(name):
    problem = load_bundled(name)
    splits = generate_traces(problem, settings_for(name, num_train=200, num_test=100))
    for trace in (*splits.train, *splits.test):
        prefixes = [trace.actions[:i] for i in range(1, len(trace.actions) + 1)]
        assert trace.labels == [int(negative_by_definition_1(problem.domain, p)) for p in prefixes]
        assert trace.valid == (not negative_by_definition_1(problem.domain, trace.actions))


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_walks_start_in_four_different_reachable_states(name):
    problem = load_bundled(name)
    splits = generate_traces(problem, settings_for(name))
    states = {*splits.train_states, *splits.test_states}
    assert len(states) == 4
    assert states <= set(reachable_states(problem))
    for traces, initial in ((splits.train, splits.train_states), (splits.test, splits.test_states)):
        for trace in traces:
            walk = trace.actions if trace.valid else trace.actions[:-1]
            assert any(problem.domain.is_applicable(walk, problem.domain.unmask(s)) for s in initial)


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_counts_lengths_and_uniqueness_are_the_papers(name):
    longest = PAPER_MAX_TRAIN_LENGTH[name]
    splits = generate_traces(load_bundled(name), settings_for(name, num_test=10_000))
    assert Counter(t.valid for t in splits.train) == {True: 100, False: 400}
    assert Counter(t.valid for t in splits.test) == {True: 5000, False: 5000}
    assert len({t.actions for t in (*splits.train, *splits.test)}) == 10_500
    for traces, most in ((splits.train, longest), (splits.test, 50)):
        lengths = {len(t.actions) for t in traces}
        assert min(lengths) >= 1
        assert max(lengths) == most
        assert min(len(t.actions) for t in traces if not t.valid) >= 2


def test_lengths_are_uniform_where_traces_abound():
    splits = generate_traces(load_bundled("blocksworld-3b"), settings_for("blocksworld-3b", num_test=10_000))
    counts = Counter(len(t.actions) for t in splits.test)
    assert all(150 < counts[length] < 280 for length in range(8, 51))  # about 207 of each; short ones run out


def test_an_action_inapplicable_in_the_state_alone_is_no_negative():
    """From {q}, after `c`, the action a lacks p in the hidden state; no trace shows it, so it must not be labelled."""
    problem = load_bundled("simple")
    assert problem.domain.is_positive(["c", "a"])
    assert not problem.domain.is_applicable(["c", "a"], {"q"})
    for seed in range(10):
        splits = generate_traces(problem, settings_for("simple", seed=seed))
        negatives = {t.actions for t in (*splits.train, *splits.test) if not t.valid}
        assert tuple(problem.domain.encode(["c", "a"])) not in negatives


# --------------------------------------------------------------------------------------------------- a pure function


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("simple", "437fb10b88dcff70"),
        ("ferry-2c", "71dec7684a6d8f99"),
    ],
)
def test_the_traces_never_change(name, digest):
    """The same on every machine, and after every change of numpy, Python or this file."""
    splits = generate_traces.__wrapped__(load_bundled(name), settings_for(name))
    rows = [(list(t.actions), t.valid) for t in (*splits.train, *splits.test)]
    assert hashlib.sha256(repr(rows).encode()).hexdigest()[:16] == digest


def test_another_seed_gives_other_traces():
    one, two = (generate_traces(load_bundled("ferry-2c"), settings_for("ferry-2c", seed=s)) for s in (0, 1))
    assert one.train != two.train
    assert one.test != two.test


# ------------------------------------------------------------------------------------------------------ near the end


@pytest.mark.parametrize("num_train", [50, 100, 200, 500])
def test_simple_has_the_papers_sizes_for_ten_seeds(num_train):
    for seed in range(10):
        splits = generate_traces(load_bundled("simple"), settings_for("simple", seed=seed, num_train=num_train))
        assert len(set(splits.train)) == num_train


def test_simple_has_too_few_traces_for_1000():
    with pytest.raises(TooFewTracesError, match=r"needs 800 unique negative traces.*there are 618.*raise max_train"):
        generate_traces(load_bundled("simple"), settings_for("simple", num_train=1000))


def test_the_last_trace_is_found_and_no_more_are_promised():
    problem = load_bundled("simple")
    every = generate_traces(problem, settings_for("simple", num_train=618, negative_fraction=1.0))
    assert len({t.actions for t in every.train}) == 618
    with pytest.raises(TooFewTracesError):
        generate_traces(problem, settings_for("simple", num_train=619, negative_fraction=1.0))


@pytest.mark.parametrize("negative_fraction", [0.0, 1.0])
def test_the_count_is_exact(negative_fraction):
    """Against a list of all traces of up to 6 actions, for every pair of initial states."""
    problem = load_bundled("simple")
    domain = problem.domain
    words = [w for n in range(1, 7) for w in itertools.product(range(3), repeat=n)]
    found = []
    for pair in itertools.combinations([domain.unmask(s) for s in reachable_states(problem)], 2):
        walks = [(w if negative_fraction == 0 else w[:-1]) for w in words]
        fits = [any(domain.is_applicable(walk, state) for state in pair) for walk in walks]
        negative = [negative_by_definition_1(domain, w) for w in words]
        found.append(sum(f and n == bool(negative_fraction) for f, n in zip(fits, negative, strict=True)))
    wanted = TraceSettings(num_train=10_000, max_train_length=6, negative_fraction=negative_fraction)
    with pytest.raises(TooFewTracesError) as error:
        generate_traces(problem, wanted)
    assert error.value.found == max(found)


def test_test_traces_that_train_has_used_up_are_counted():
    with pytest.raises(TooFewTracesError, match=r"test split .* besides the \d+ that train has"):
        generate_traces(load_bundled("simple"), settings_for("simple", max_test_length=10, num_test=1200))


def test_domains_without_traces_are_refused():
    stuck = StripsDomain(("p",), (StripsAction("a", frozenset({"p"})),))
    with pytest.raises(TooFewTracesError, match="no action is applicable"):
        generate_traces(StripsProblem(stuck), TraceSettings())
    nothing_deleted = StripsDomain(("p",), (StripsAction("a", add=frozenset({"p"})),))
    with pytest.raises(TooFewTracesError, match=r"needs 400 unique negative traces.*there are 0"):
        generate_traces(StripsProblem(nothing_deleted), TraceSettings(num_train=400, negative_fraction=1.0))


def test_a_domain_with_one_state_still_gives_traces():
    """Four different initial states are wanted and not to be had."""
    free = StripsDomain((), (StripsAction("a"), StripsAction("b")))
    splits = generate_traces(StripsProblem(free), TraceSettings(num_train=20, num_test=1, negative_fraction=0.0))
    assert len(set(splits.train)) == 20
    assert splits.train_states == splits.test_states


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": -1},
        {"num_train": 0},
        {"num_test": 1.5},
        {"num_train": True},
        {"max_train_length": 1},
        {"negative_fraction": 1.01},
        {"negative_fraction": float("nan")},
        {"negative_fraction": "0.8"},
    ],
)
def test_settings_are_checked(wrong):
    (name,) = wrong
    with pytest.raises(PlanningError, match=name):
        TraceSettings(**wrong)
