"""The grid of a program's run: what stands in it is what happened."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from hf_mech.programs.psl.trace_picture import Cell, ProductionRow, Writing, program_figure

CELLS = [
    Cell({"s": "Q", "f": "FQ"}),
    Cell({"s": "u", "f": "2"}),
    Cell({"s": "v", "f": "3"}),
    Cell({"s": "u", "f": "2"}, made=True),
]
ROWS = [
    ProductionRow("first", {1: Writing({"f": "2", "t": "C"}), 2: Writing({"f": "9"}, repetition=4)}, repetitions=5),
    ProductionRow("idle"),
    ProductionRow("says", {3: Writing({"s": "new", "f": "7"})}),
]


def figure_of(**settings: object) -> Figure:
    settings = {"colour_by": "f", "corners": ("f", "t"), "says": "s", "neutral": ("FQ",)} | settings
    return program_figure(CELLS, ROWS, {"s": "symbol", "f": "field"}, title="Q u v", **settings)  # type: ignore[arg-type]


def test_values_repetitions_and_words_are_written():
    written = [text.get_text() for text in figure_of().axes[0].texts]
    for word in ("Q u v", "first", "idle", "says", "symbol  s", "prompt", "completion", "C", "9", "4", "new"):
        assert word in written
    assert "7" not in written  # a new word stands alone
    assert any("repeat block" in word for word in written)


def test_a_field_of_several_cells_has_a_colour_and_others_are_grey():
    boxes = [patch for patch in figure_of().axes[0].patches if isinstance(patch, FancyBboxPatch)]
    at_1, at_2, at_3 = (to_hex(box.get_facecolor()) for box in boxes)
    assert at_1 == at_3 != at_2


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="at most 4 corners, got 4 cells and 5"):
        figure_of(corners="abcde")
    with pytest.raises(ValueError, match="got 0 cells"):
        program_figure([], ROWS, {}, colour_by="f", corners=(), says="s")
