"""Path accuracy, as an evaluate module and over arrays."""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from hf_mech.metrics import load, path_accuracy
from hf_mech.metrics.path_accuracy import paths_right

RIGHT = [[3, 7, 2], [4, 1, 0]]


def test_a_path_counts_only_if_every_node_is_right():
    metric = load("path_accuracy", keep_in_memory=True)
    metric.add_batch(predictions=[[3, 7, 2], [4, 1, 2]], references=RIGHT)
    metric.add_batch(predictions=[[3, 7], [4, 1, 0, 9]], references=RIGHT)
    metric.add(prediction=[8, 6], reference=[8, 5])
    assert metric.compute() == {"path_accuracy": 1 / 5, "node_accuracy": (3 + 2 + 2 + 3 + 1) / 14}


@pytest.mark.parametrize("reference", [[], [-100, 3, 2]])
def test_what_is_no_path_is_refused(reference):
    with pytest.raises(ValueError, match=r"Reference 1 must be the tokens of a path.*-100 off"):
        load("path_accuracy", keep_in_memory=True).compute(predictions=RIGHT, references=[RIGHT[0], reference])


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_paths_right_agrees_with_the_metric(kind):
    random = np.random.default_rng(0)
    references = random.integers(50, size=(300, 5))
    predictions = np.where(random.random((300, 5)) < 0.1, 50, references)
    right = paths_right(kind(predictions), kind(references))
    assert type(right) is type(kind([]))
    assert right.tolist() == [list(a) == list(b) for a, b in zip(predictions, references, strict=True)]
    found = load("path_accuracy", keep_in_memory=True).compute(predictions=predictions, references=references)
    assert found == {
        "path_accuracy": sum(right.tolist()) / 300,
        "node_accuracy": pytest.approx((predictions == references).mean()),
    }
    assert 0.4 < found["path_accuracy"] < 0.8  # 0.9 ** 5


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_paths_of_another_length_are_wrong(kind):
    assert paths_right(kind([[3, 7], [4, 1]]), kind(RIGHT)).tolist() == [False, False]
    assert paths_right(kind([[3, 7, 2, 54], [4, 1, 0, 54]]), kind(RIGHT)).tolist() == [False, False]


@pytest.mark.parametrize(("predictions", "references"), [((2, 3), (3, 3)), ((2, 3), (6,)), ((2, 3, 4), (2, 3, 4))])
def test_shapes_that_do_not_fit_are_refused(predictions, references):
    with pytest.raises(ValueError, match=r"\[graphs, length\]"):
        paths_right(np.zeros(predictions), np.zeros(references))


def test_the_module_that_evaluate_copies_has_the_same_function():
    copied = sys.modules[type(load("path_accuracy", keep_in_memory=True)).__module__].paths_right
    assert copied is not paths_right
    assert inspect.getsource(copied) == inspect.getsource(paths_right)


def test_the_readme_prints_what_it_says():
    """Each block's last line is the value of the line before it."""
    text = Path(path_accuracy.__file__).with_name("README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)\n# (.*?)\n```", text, re.DOTALL)
    assert len(blocks) == 2
    for program, printed in blocks:
        *lines, last = program.splitlines()
        names: dict[str, object] = {}
        exec("\n".join(lines), names)
        assert repr(eval(last, names)) == printed


def test_no_path_has_no_accuracy():
    with pytest.raises(ValueError, match="needs a path at least, got none"):
        load("path_accuracy", keep_in_memory=True).compute(predictions=[], references=[])
