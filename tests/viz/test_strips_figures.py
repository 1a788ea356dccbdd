"""The figures can be drawn of anything, without a warning, and show what they should."""

from __future__ import annotations

import io
import random
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from matplotlib.figure import Figure
from rich.console import Console

from hf_mech.models.strips.strips_attention import strips_attention_reference
from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.figures import (
    Point,
    attention_arrays,
    attention_figure,
    compare,
    curves_figure,
    domains_figure,
    domains_text,
    rename_like,
)
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH
from tests.models.strips.strategies import domains

NOTHING = StripsDomain((), (StripsAction("wait"),), "nothing")
ODD = StripsDomain(
    ("$p_{1}$", "a " * 40 + "b", "100%"),
    (
        StripsAction("$\\frac{", frozenset({"$p_{1}$"}), frozenset({"100%"}), frozenset({"$p_{1}$"})),
        StripsAction("x" * 30, add=frozenset({"a " * 40 + "b"})),
    ),
    "odd",
)


def drawn(figure: Figure) -> int:
    """How many bytes the PNG has. Warnings are errors."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(buffer, dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG")
    return len(buffer.getvalue())


def shuffled(domain: StripsDomain, seed: int) -> tuple[StripsDomain, dict[str, str]]:
    """The domain with its propositions in another order under other names, and what each was called."""
    dice = random.Random(seed)
    order = dice.sample(domain.propositions, len(domain.propositions))
    was = {f"p{i}": name for i, name in enumerate(order)}
    now = {name: new for new, name in was.items()}

    def renamed(names: frozenset[str]) -> frozenset[str]:
        return frozenset(now[name] for name in names)

    actions = [StripsAction(a.name, renamed(a.pre), renamed(a.add), renamed(a.delete)) for a in domain.actions]
    return StripsDomain(tuple(was), tuple(dice.sample(actions, len(actions))), domain.name), was


def statuses(learned: StripsDomain, hidden: StripsDomain) -> set[str]:
    return {status for line in compare(learned, hidden) for _, status in line}


# ------------------------------------------------------------------------------------------------ Figure 2: domains


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_the_names_of_a_shuffled_domain_are_found_again(name: str):
    hidden = load_bundled(name).domain
    for seed in range(3):
        learned, _ = shuffled(hidden, seed)
        found = rename_like(learned, hidden)
        assert found.propositions == hidden.propositions
        assert set(found.actions) == set(hidden.actions)
        assert statuses(found, hidden) == {"same"}


def test_surplus_and_missing_propositions_are_marked():
    hidden = load_bundled("blocksworld-2b").domain
    learned, was = shuffled(hidden, 0)
    extra = StripsDomain((*learned.propositions, hidden.propositions[0]), learned.actions)
    found = rename_like(extra, hidden)
    assert found.propositions == (*hidden.propositions, f"{hidden.propositions[0]}'")
    assert statuses(found, hidden) == {"same", "excess"}

    gone = learned.propositions[2]
    rest = frozenset(learned.propositions) - {gone}
    actions = tuple(StripsAction(a.name, a.pre & rest, a.add & rest, a.delete & rest) for a in learned.actions)
    fewer = rename_like(StripsDomain(tuple(p for p in learned.propositions if p != gone), actions), hidden)
    assert set(hidden.propositions) - set(fewer.propositions) == {was[gone]}
    assert statuses(fewer, hidden) == {"same", "missing"}


@given(domains(), domains())
@settings(max_examples=60)
def test_renaming_keeps_the_domain(learned: StripsDomain, hidden: StripsDomain):
    found = rename_like(learned, hidden)
    assert len(found.propositions) == len(learned.propositions)
    for before, after in zip(learned.actions, found.actions, strict=True):
        assert before.name == after.name
        for part in ("pre", "add", "delete"):
            assert len(getattr(before, part)) == len(getattr(after, part))


@pytest.mark.parametrize(
    ("hidden", "learned"),
    [
        (load_bundled("simple").domain, load_bundled("blocksworld-2b").domain),
        (load_bundled("ferry-1c").domain, shuffled(load_bundled("ferry-1c").domain, 1)[0]),
        (NOTHING, NOTHING),
        (ODD, NOTHING),
        (NOTHING, ODD),
        (ODD, ODD),
    ],
)
def test_two_domains_side_by_side(hidden: StripsDomain, learned: StripsDomain):
    figure = domains_figure(hidden, learned)
    assert drawn(figure)
    assert figure.axes  # else a notebook shows nothing
    console = Console(width=200, file=io.StringIO())
    console.print(domains_text(hidden, learned))
    assert "Hidden domain" in console.file.getvalue()  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------- Figure 3: attention


def test_the_arrays_are_those_of_the_model():
    dice = np.random.default_rng(0)
    theta, trace = dice.random((4, 5, 3)), [0, 3, 3, 1, 4, 2, 0]
    _, sticks, outputs = attention_arrays(theta, trace)
    heads, _, expected = strips_attention_reference(torch.from_numpy(theta).unsqueeze(0), torch.tensor([trace]))
    np.testing.assert_allclose(sticks, expected[0, 0].numpy(), atol=1e-12)
    np.testing.assert_allclose(outputs.T, heads[0, :, 0].numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("actions", "heads", "title"),
    [
        (["a"], 1, ""),
        (["a", "b", "a"], 3, "A trace"),
        (["pick-up(a)", "$x_1$", "put-down(a)", "100%", "pick-up(a)"], 7, "$\\frac{"),
    ],
)
def test_the_attention_of_a_trace(actions: list[str], heads: int, title: str):
    names = sorted(set(actions))
    theta = np.random.default_rng(1).random((heads, len(names), 3))
    theta[0] = theta[0].round()
    arrays = attention_arrays(theta, [names.index(a) for a in actions])
    assert drawn(attention_figure(actions, [f"p_{i}" for i in range(heads)], *arrays, title=title))


@pytest.mark.parametrize("name", ["$\\frac{", "on(a,$b)$"])
def test_a_head_whose_name_looks_like_a_formula(name: str):
    arrays = attention_arrays(np.zeros((1, 1, 3)), [0])
    assert drawn(attention_figure(["a"], [name], *arrays))


# -------------------------------------------------------------------------------------------------- accuracy curves


@pytest.mark.parametrize(
    "curves",
    [
        {},
        {"one": []},
        {"one": [Point(50, (1.0,))]},
        {"paper only": [Point(50, (), 0.9, 0.1), Point(100, (), 0.95)]},
        {"zero": [Point(50, (0.0, 0.0), 0.0, 0.0)]},
        {str(i): [Point(50, (0.4, 0.6)), Point(2000, (1.0, 1.0), 0.99, 0.01)] for i in range(5)},
    ],
)
def test_curves_of_every_kind(curves: dict[str, list[Point]]):
    assert drawn(curves_figure(curves))
