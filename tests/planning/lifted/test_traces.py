"""The data set of lifted traces: both splits, and their settings."""

from collections import Counter

import pytest

from hf_mech.planning.lifted import traces
from hf_mech.planning.lifted.domains import DOMAINS, instance
from hf_mech.planning.lifted.traces import LiftedTraceSettings, generate_lifted_traces
from hf_mech.planning.problem import PlanningError
from hf_mech.planning.traces import TooFewTracesError
from tests.planning.lifted.test_walks import simulate


def splits(domain: str = "ferry", **given) -> traces.LiftedSplits:
    return generate_lifted_traces(LiftedTraceSettings(domain, **{"num_train": 30, "num_test": 60, **given}))


@pytest.mark.parametrize("name", DOMAINS)
def test_both_splits(name: str) -> None:
    made = splits(name, negative_fraction=0.2)
    assert (len(made.train), len(made.test)) == (30, 60)
    assert made.train_problem == instance(name, "small")
    assert made.test_problem == instance(name, "big")
    assert len({trace.actions for trace in (*made.train, *made.test)}) == 90
    for problem, own, negatives in ((made.train_problem, made.train, 6), (made.test_problem, made.test, 30)):
        assert Counter(trace.labels[-1] for trace in own)[1] == negatives
        for trace in own:
            assert simulate(problem, trace)
            assert problem.domain.labels(trace.actions) == list(trace.labels)


def test_lengths_are_uniform() -> None:
    made = splits(num_train=400, max_train_length=20)
    counts = Counter(len(trace.actions) for trace in made.train)
    assert set(counts) <= set(range(1, 21))
    assert all(counts[length] > 5 for length in range(4, 21))


def test_noise_is_in_the_training_split_alone() -> None:
    noise = {"failure_rate": 0.1, "wrong_action": 0.1, "missing_step": 0.1, "wrong_label": 0.1, "walk_bias": 4}
    made, clean = splits(**noise, burn_in=5, policy="expert", random_share=0.2), splits()
    assert made.test == clean.test
    assert not any(simulate(made.train_problem, trace) for trace in made.train if len(trace.actions) > 50)
    assert made == generate_lifted_traces.__wrapped__(
        LiftedTraceSettings("ferry", num_train=30, num_test=60, **noise, burn_in=5, policy="expert", random_share=0.2)
    )
    assert splits(seed=1).test != clean.test


def test_failures_and_a_wrong_last_action_together() -> None:
    made = splits(failure_rate=0.2, negative_fraction=1.0, negatives="inapplicable", test_negatives="contradiction")
    assert all(trace.labels[-1] == 1 for trace in made.train)
    assert all(simulate(made.train_problem, trace) for trace in made.train)
    assert sum(sum(trace.labels) for trace in made.train) > 2 * 30


def test_the_same_instance_for_both() -> None:
    made = splits("hanoi", test_size="small", max_train_length=8, max_test_length=8)
    assert made.train_problem == made.test_problem
    assert not {trace.actions for trace in made.train} & {trace.actions for trace in made.test}


def test_too_few_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "PATIENCE", 100)
    with pytest.raises(TooFewTracesError, match="unique positive traces of up to 2 actions, 200 are needed") as error:
        splits("hanoi", num_train=200, max_train_length=2)
    assert 0 < error.value.found < 200


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"domain": "fery"}, "domain must be one of blocksworld"),
        ({"size": "huge"}, "size must be one of small, big"),
        ({"num_train": 0}, "num_train must be a whole number, 1 or more"),
        ({"max_test_length": 1}, "max_test_length must be a whole number, 2 or more"),
        ({"negative_fraction": 2}, "negative_fraction must be a number in 0 to 1"),
        ({"negatives": "first_inapplicable"}, "negatives must be one of contradiction, inapplicable"),
        ({"wrong_action": 1.0}, "wrong_action must be a number of 0 or more, below 1"),
    ],
)
def test_settings_that_make_no_sense(given: dict, says: str) -> None:
    with pytest.raises(PlanningError, match=says):
        LiftedTraceSettings(**{"domain": "ferry", **given})
