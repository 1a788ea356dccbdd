"""The two STRIPS metrics, as evaluate modules."""

import inspect
import sys

import numpy as np
import pytest
import torch

from hf_mech.metrics import METRICS, load
from hf_mech.metrics.strips_trace_accuracy import traces_right
from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.pddl import load_bundled

LOOSE = StripsDomain((), tuple(StripsAction(name) for name in "abc"), "loose")


def test_a_trace_counts_only_if_every_position_is_right():
    metric = load("strips_trace_accuracy", keep_in_memory=True)
    metric.add_batch(predictions=[[0, 0, 1], [0, 1, 0]], references=[[0, 0, 1], [0, 0, -100]])
    metric.add_batch(predictions=[[0, 1, 1, 1], [0]], references=[[0, 0, 1, -100], [0, -100]])
    assert metric.compute() == {
        "trace_accuracy": 2 / 4,
        "positive_accuracy": 1 / 2,
        "negative_accuracy": 1 / 2,
        "position_accuracy": 7 / 9,
    }


def test_a_class_without_traces_has_no_accuracy():
    found = load("strips_trace_accuracy", keep_in_memory=True).compute(predictions=[[0]], references=[[0]])
    assert (found["positive_accuracy"], found["negative_accuracy"]) == (1.0, None)


@pytest.mark.parametrize(
    ("prediction", "reference", "says"),
    [
        ([0], [-100], "no labelled position"),
        ([0], [0, 1], "1 predictions"),
        ([2], [0], "prediction 2"),
        ([0], [-1], "reference -1"),
    ],
)
def test_what_are_no_labels_is_refused(prediction, reference, says):
    with pytest.raises(ValueError, match=says):
        load("strips_trace_accuracy", keep_in_memory=True).compute(predictions=[prediction], references=[reference])


def kinds(array):
    return {"numpy": array, "torch": torch.from_numpy(array)}


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_traces_right_agrees_with_the_metric_for_every_member(kind, dtype):
    random = np.random.default_rng(0)
    references = (random.random((40, 12)) < 0.1).astype(np.int64)
    references[np.arange(12) >= random.integers(1, 13, (40, 1))] = -100
    wrong = random.random((40, 12, 5)) < 0.05
    predictions = (np.where(references > 0, 1, 0)[..., None] ^ wrong).astype(dtype)
    right = traces_right(kinds(predictions)[kind], kinds(references)[kind])
    assert right.shape == (40, 5)
    metric = load("strips_trace_accuracy", keep_in_memory=True)
    for member in range(5):
        alone = traces_right(kinds(predictions[..., member].copy())[kind], kinds(references)[kind])
        assert alone.tolist() == right[:, member].tolist()
        found = metric.compute(
            predictions=predictions[..., member].astype(int).tolist(), references=references.tolist()
        )
        assert found["trace_accuracy"] == sum(alone.tolist()) / 40


@pytest.mark.parametrize(
    ("predictions", "references"), [((2, 3), (2, 4)), ((2, 3), (2, 3, 1)), ((6,), (6,)), ((2, 3, 4, 5), (2, 3))]
)
def test_shapes_that_do_not_fit_are_refused(predictions, references):
    with pytest.raises(ValueError, match=r"Expected references \[traces, length\]"):
        traces_right(np.zeros(predictions), np.zeros(references))


def test_the_module_that_evaluate_copies_has_the_same_function():
    copied = sys.modules[type(load("strips_trace_accuracy", keep_in_memory=True)).__module__].traces_right
    assert copied is not traces_right
    assert inspect.getsource(copied) == inspect.getsource(traces_right)


def test_equivalence_of_domains_in_every_form():
    simple = load_bundled("simple").domain
    metric = load("strips_domain_equivalence")
    found = metric.compute(predictions=[simple, simple.to_dict(), LOOSE], references=[simple, simple, simple])
    assert found["equivalent"] == pytest.approx(2 / 3)
    assert found["undecided"] == 0
    assert found["verdicts"] == [True, True, False]
    assert found["distinguishing_traces"] == [None, None, ["a", "a"]]


def test_equivalence_adds_up_and_gives_up():
    simple = load_bundled("simple").domain
    metric = load("strips_domain_equivalence")
    metric.add(prediction=simple, reference=simple)
    metric.add_batch(predictions=[simple], references=[LOOSE])
    assert metric.compute(max_pairs=2) == {
        "equivalent": 0.0,
        "undecided": 2,
        "verdicts": [None, None],
        "distinguishing_traces": [None, None],
    }
    with pytest.raises(ValueError, match="JSON"):
        metric.compute(predictions=["zork"], references=[simple])


def test_a_metric_that_does_not_exist_is_refused():
    assert METRICS == ("path_accuracy", "strips_domain_equivalence", "strips_trace_accuracy")
    with pytest.raises(ValueError, match="strips_trace_accuracy"):
        load("zork")
