"""The figures of belief states show the figures that they are given."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from hf_mech.lookahead.figures import accuracy_bars, accuracy_curves, facts_figure
from hf_mech.probing.state_probe_figures import probes_figure

CHANCE = {"G(2,5)": 0.5, "G(5,5)": 0.2}


def drawn(figure: Figure) -> int:
    """How many bytes the PNG has. Warnings are errors."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(buffer, dpi=40)
    return len(buffer.getvalue())


def test_a_bar_is_the_mean_and_a_model_has_one_colour_and_place() -> None:
    figure = accuracy_bars({"G(2,5)": {"bst": [0.9, 1.0], "fim": [0.5]}, "G(5,5)": {"fim": [0.2]}}, CHANCE)
    first, second = figure.axes
    assert [bar.get_height() for bar in first.patches] == pytest.approx([0.95, 0.5])
    assert [bar.get_height() for bar in second.patches] == pytest.approx([0.2])
    assert second.patches[0].get_facecolor() == first.patches[1].get_facecolor()
    assert second.patches[0].get_x() == first.patches[1].get_x()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["bst", "fim"]
    assert drawn(figure) > 2_000


def test_a_curve_a_seed_and_the_chance() -> None:
    points = [[100, 0.1], [200, 0.6]]
    figure = accuracy_curves({"G(2,5)": {"bst": [points, [[100, 0.2]], []]}}, CHANCE)
    lines = [line.get_xydata().tolist() for line in figure.axes[0].lines]
    assert lines[:3] == [points, [[100, 0.2]], []]
    assert {height for _, height in lines[3]} == {0.5}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["bst"]
    assert drawn(figure) > 2_000


def test_probes_by_model_and_over_the_training() -> None:
    path = {"bst": [1.0, 0.9, 0.8], "forward-only": [1.0, 0.5, 0.1]}
    graph = {"bst": [0.4, 0.3, 0.4, 0.3], "forward-only": [0.2, 0.1, 0.2, 0.1]}
    figure = probes_figure(path, graph, [10, 20], [[0.1, 0.2, 0.3], [1.0, 0.9, 0.8]], "bst")
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert [bar.get_height() for bar in panels["nodes of the path"].patches] == [*path["bst"], *path["forward-only"]]
    edges = panels["nodes of the prompt's edges"]
    assert [bar.get_height() for bar in edges.patches] == [*graph["bst"], *graph["forward-only"]]
    assert [label.get_text() for label in edges.get_xticklabels()] == ["1", "", "2", ""]
    lines = [line.get_xydata().tolist() for line in panels["over the training, bst"].lines]
    assert lines == [[[10, 0.1], [20, 1.0]], [[10, 0.2], [20, 0.9]], [[10, 0.3], [20, 0.8]]]
    assert drawn(figure) > 5_000


def test_facts_behind_each_sentence() -> None:
    values = np.array([[0.1, 0.9, 1.0], [0.2, 0.2, 0.3]])
    told = [1, None]
    figure = facts_figure(["hero: Anna", "meal: lunch"], told, ["Once.", "Anna came.", "x" * 50], values)
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.images[0].get_array(), values)
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[1, 0]]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Once.", "Anna came.", "x" * 33 + "…"]
    assert drawn(figure) > 1_500
