"""The picture of a lifted domain shows what each action does, and can be drawn of anything."""

from __future__ import annotations

import io
import itertools

from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch
from rich.console import Console

from hf_mech.models.strips.strips_lifted import LiftedAction, LiftedAtom, LiftedDomain
from hf_mech.planning.lifted_figures import lifted_figure, lifted_table, parameter_names
from hf_mech.viz.palette import ACCENT, INK, MUTED, OURS
from tests.viz.test_strips_figures import drawn

ON, CLEAR, WARM = LiftedAtom("on", (0, 1)), LiftedAtom("clear", (1,)), LiftedAtom("warm")
DOMAIN = LiftedDomain(
    {"warm": (), "on": ("block", "block"), "clear": ("block",), "above": ("block", "block")},
    (
        LiftedAction("stack", ("block", "block"), frozenset({CLEAR, WARM}), frozenset({ON}), frozenset({CLEAR})),
        LiftedAction("clean", ("block", "block"), frozenset(), frozenset({WARM}), frozenset({ON})),
    ),
)


def test_the_boxes_of_a_picture() -> None:
    figure = lifted_figure(DOMAIN)
    assert drawn(figure)
    axes = figure.axes[0]
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)][4:]  # behind those of the legend
    words = [text.get_text() for text in axes.texts if text.get_ha() == "center"][4:]
    found = [(word, to_hex(box.get_edgecolor())) for word, box in zip(words, boxes, strict=True)]
    row = [("block2", ACCENT), ("yes", INK), ("block1, block2", OURS)]
    assert found == [*row, ("yes", OURS), ("block1, block2", MUTED)]
    heads = [text.get_text() for text in axes.texts]
    assert heads.index("clear") < heads.index("warm") < heads.index("on") < heads.index("above")
    assert "(block, block) static" in heads


def test_a_picture_of_odd_names_and_of_nothing() -> None:
    odd = LiftedAction("$x^{", ("a" * 30,), add=frozenset({LiftedAtom("100%", (0,))}))
    assert drawn(lifted_figure(LiftedDomain({"100%": ("a" * 30,)}, (odd,))))
    assert drawn(lifted_figure(LiftedDomain({}, (LiftedAction("wait"),))))


def test_parameters_are_named_by_their_types() -> None:
    assert parameter_names(LiftedAction("a", ("block", "hand", "block"))) == ["block1", "hand", "block2"]


def test_the_table() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(lifted_table(DOMAIN))
    said = console.export_text()
    assert "stack(block1, block2)" in said
    assert "clear(block2)" in said
    assert "warm" in said


def test_many_predicates_are_several_tables() -> None:
    names = [f"predicate{number}" for number in range(40)]
    pairs = itertools.pairwise(names)
    actions = [
        LiftedAction(f"action{n}", ("block",), frozenset({LiftedAtom(one, (0,))}), frozenset({LiftedAtom(two, (0,))}))
        for n, (one, two) in enumerate(pairs)
    ]
    figure = lifted_figure(LiftedDomain(dict.fromkeys(names, ("block",)), tuple(actions)))
    assert drawn(figure)
    assert figure.get_figwidth() < 17
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert [texts.count(name) for name in names] == [1] * 40
    assert texts.count("block") == 78
    rows = [texts.count(f"{action.name}(block)") for action in actions]
    assert sum(rows) < 45  # a table has only the actions that use it
    assert min(rows) == 1
