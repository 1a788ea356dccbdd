"""The pictures of stacks and of accuracy by length can be drawn of anything, and show what they should."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from hf_mech.languages.figures import LayerStack, LengthCurve, length_curves_figure, stack_attention_figure


def drawn(figure: Figure) -> int:
    """How many bytes the PNG has. Warnings are errors."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(buffer, dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG")
    return len(buffer.getvalue())


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


# ------------------------------------------------------------------------------------------- Figures 2 to 5: stacks


def layer_of(n: int, stack: str = "⊥a") -> LayerStack:
    return LayerStack(np.tri(n) / np.tri(n).sum(1, keepdims=True), ["", *["push $x_1$"] * (n - 1)], [stack] * n)


@pytest.mark.parametrize(
    ("tokens", "layers"),
    [
        (["⊥"], 1),
        (["⊥", "a", "M"], 5),
        (["[BOS]", "$\\frac{", "100%", "PUSHa"], 2),
    ],
)
def test_stacks_of_every_kind(tokens: list[str], layers: int):
    figure = stack_attention_figure(tokens, [layer_of(len(tokens))] * layers, title="$\\frac{ of 100%")
    assert drawn(figure)
    assert len(figure.axes) == layers
    assert [f"layer {number + 1}" in texts(figure) for number in range(layers)] == [True] * layers


def test_the_first_token_is_at_the_top_and_its_stack_on_the_left():
    alpha = np.array([[1.0, 0, 0], [0, 1, 0], [0.25, 0.75, 0]])
    layer = LayerStack(alpha, ["", "push a", "pop"], ["⊥", "⊥a", "⊥"])
    (axes,) = stack_attention_figure(["⊥", "a", "b"], [layer]).axes
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), alpha)
    assert image.get_extent() == [0, 3, 3, 0]
    bottom, top = axes.get_ylim()
    assert bottom > 3 > 0 > top  # rows run downwards
    rows = {text.get_text(): text.get_position()[1] for text in axes.texts if text.get_position()[0] > 3}
    assert rows["push a"] == rows["⊥a"] == 1.5
    assert rows["pop"] == 2.5


def test_of_a_long_stack_the_top_is_shown():
    figure = stack_attention_figure(["⊥", "a"], [layer_of(2, "⊥" + "a" * 30 + "bc")])
    assert "…aaaaaaaaabc" in texts(figure)


def test_a_stack_over_other_tokens_is_refused():
    with pytest.raises(ValueError, match=r"Layer 2 must have alpha \[2, 2\], 2 operations .*got alpha \[3, 3\]"):
        stack_attention_figure(["⊥", "a"], [layer_of(2), layer_of(3)])
    with pytest.raises(ValueError, match="no layer to draw"):
        stack_attention_figure(["⊥", "a"], [])


# -------------------------------------------------------------------------------------------------- accuracy curves

MEASURED = LengthCurve({1: (1.0, 0.5), 40: (1.0, 1.0), 100: (0.25, 0.75)}, 0.931)


@pytest.mark.parametrize(
    "panels",
    [
        {},
        {"mlm": {}},
        {"mlm": {"stack": MEASURED}},
        {"mlm": {"stack": LengthCurve({}, 0.5), "vanilla": LengthCurve({7: (0.0,)})}},
        {f"$\\frac{{ {number}": {"stack": MEASURED, "100%": MEASURED} for number in range(3)},
        {"mlm, stack": {str(number): MEASURED for number in range(8)}},
    ],
)
def test_curves_of_every_kind(panels: dict[str, dict[str, LengthCurve]]):
    assert drawn(length_curves_figure(panels, trained=40, test=(41, 100)))


def test_a_line_is_the_mean_and_has_one_colour_in_all_panels():
    figure = length_curves_figure(
        {"mlm": {"vanilla": LengthCurve({}), "stack": MEASURED}, "alm": {"stack": MEASURED}}, trained=40, test=(41, 100)
    )
    lines = [line for axes in figure.axes for line in axes.get_lines() if len(line.get_xdata())]
    assert len(lines) == 2
    for line in lines:
        assert list(line.get_xdata()) == [1, 40, 100]
        assert list(line.get_ydata()) == [0.75, 1.0, 0.5]
    assert len({to_rgba(line.get_color()) for line in lines}) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["vanilla", "stack", "paper's mean"]
