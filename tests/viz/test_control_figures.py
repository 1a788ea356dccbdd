"""Films, maps of attention heads, and pages of them."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from hf_mech.control.figures import (
    attention_page,
    film,
    heads_figure,
    intervals_figure,
    key_states,
    return_curves,
    states_read,
)

NAMES = [f"{kind}{step}" for step in range(7, 15) for kind in ("r", "s", "a1_", "a2_")]


def attentions(read: str) -> np.ndarray:
    """Two layers of three heads that read all tokens alike, but for one head that reads one token alone."""
    tokens = len(NAMES)
    alike = np.tri(tokens) / np.arange(1, tokens + 1)[:, None]
    weights = np.broadcast_to(alike, (2, 3, tokens, tokens)).copy()
    place = NAMES.index(read)
    weights[1, 2, place:] = 0
    weights[1, 2, place:, place] = 1
    return weights


def test_a_head_that_reads_all_alike_reads_each_state_once() -> None:
    read = states_read(attentions("s9"), NAMES)
    assert list(read) == ["s7", "s8", "s9", "s10", "s11"]  # three steps or more come behind
    assert all(values[0, 0] == pytest.approx(1) for values in read.values())
    assert read["s9"][1, 2] > 10
    assert key_states(attentions("s9"), NAMES, 1) == ["s9"]
    assert key_states(attentions("s9"), NAMES, 9) == list(read)


def drawn(figure: Figure) -> bytes:
    written = io.BytesIO()
    figure.savefig(written)
    return written.getvalue()


def test_the_figure_names_heads_and_key_states() -> None:
    frames = {name: np.zeros((4, 6, 3), np.uint8) for name in ("s8", "s9")}
    figure = heads_figure(attentions("s9"), NAMES, list(frames), frames)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"layer {i}, head {j}" for i in range(2) for j in range(3)] + ["s8", "s9"]
    assert len(drawn(figure)) > 5_000
    without = heads_figure(attentions("s9"), NAMES, ["s8", "s9"], {})
    assert len(without.axes) == 6
    assert [label.get_text() for label in without.axes[0].get_xticklabels()] == ["s8", "s9"]


def test_the_page_has_the_tokens_and_needs_no_network() -> None:
    page = attention_page(attentions("s9").astype(np.float32), NAMES, "Heads <1>", "Point.")
    assert re.search(r"0\.333[,\]]", page)
    assert not re.search(r"0\.3330", page)
    assert "Heads &lt;1&gt;" in page
    assert '"a2_14"' in page
    assert "L1H2" in page
    assert "unpkg" not in page
    assert "import {" not in page.split("CircuitsVis.render")[-1]


def test_the_darkest_colour_is_a_weight_that_occurs() -> None:
    tokens = len(NAMES)
    alike = np.tri(tokens) / np.arange(1, tokens + 1)[:, None]
    page = attention_page(np.broadcast_to(alike, (1, 2, tokens, tokens)), NAMES, "t")
    (darkest,) = re.findall(r"weights of ([0-9.]+) or more", page)
    assert f'"maxValue": {darkest}' in page  # 1/4: one cell in fifty
    assert 1 / tokens < float(darkest) < 0.5


def test_the_page_refuses_other_names() -> None:
    with pytest.raises(ValueError, match="31 tokens"):
        attention_page(attentions("s9"), NAMES[1:], "t")


def test_a_film() -> None:
    pictures = np.random.default_rng(0).integers(0, 255, (5, 6, 8, 3), np.uint8)
    with Image.open(io.BytesIO(film(pictures, scale=2))) as read:
        assert read.n_frames == 5
        assert read.size == (16, 12)
        durations = []
        for number in range(5):
            read.seek(number)
            durations.append(read.info["duration"])
    assert durations == [110] * 4 + [1_000]
    with pytest.raises(ValueError, match="needs pictures"):
        film(pictures[:0])


def test_no_point_of_a_curve_lies_on_the_edge() -> None:
    axes = return_curves({"M-SAT": [[(1.0, 0.98), (2.0, 0.97)]]}, 0.96).axes[0]
    bottom, top = axes.get_ylim()
    assert bottom <= 0
    assert top > 1.0


def test_returns() -> None:
    curves = {"M-SAT": [[(1.0, 0.5), (2.0, 0.7)], [(1.0, 0.4), (2.0, 0.9)]], "baseline": [[]]}
    assert len(return_curves(curves, 0.9).axes[0].lines) == 2  # and the line of the data
    figure = intervals_figure({"M-SAT": [0.5, 0.7], "MAT": [0.2]}, {"M-SAT": (0.1, 1.1)}, 0.9, "return")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["M-SAT", "MAT"]
    assert len(drawn(figure)) > 3_000
