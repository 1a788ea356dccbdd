"""The pictures of a task's card: accuracy by length, and the stack attention of an example."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from matplotlib.figure import Figure
from transformers import PreTrainedModel

from hf_mech.languages.figures import LengthCurve, length_curves_figure

from .groups import Group, accuracy_by_length, paper_figure_beside
from .run import RunOutcome
from .settings import TEST_LENGTHS, TRANSFORMERS
from .stack_picture import stack_picture


def figures_of(
    task: str, groups: Mapping[Group, list[RunOutcome]], model: PreTrainedModel | None
) -> dict[str, tuple[Figure, str]]:
    """Pictures with their captions, by file name."""
    trained = max(outcome.settings.max_train_length for members in groups.values() for outcome in members)
    # The figures' shade is one for all; accuracy_by_length.json has the others.
    groups = {group: own for group, own in groups.items() if own[0].settings.max_train_length == trained}
    figures = {}
    for name, caption, panels in (
        ("accuracy_by_length.png", "Accuracy at every length, by layout", _by_layout(task, groups)),
        ("encodings_by_length.png", "The same with positional encodings (Table 2)", _by_model(task, groups)),
    ):
        if panels:
            drawn = length_curves_figure(panels, trained=trained, test=TEST_LENGTHS)
            figures[name] = (drawn, f"{caption}: the seeds' mean, and a band from the worst to the best")
    if model is not None and (picture := stack_picture(task, model)) is not None:
        figures["stack_attention.png"] = picture
    return figures


def _by_layout(task: str, groups: Mapping[Group, list[RunOutcome]]) -> dict[str, dict[str, LengthCurve]]:
    """Layout to model to curve, without encodings."""
    panels: dict[str, dict[str, LengthCurve]] = {}
    for group, members in groups.items():
        layout, model, encoding, departures = group
        if encoding == "none":
            panels.setdefault(layout, {})[_named(model, departures, groups)] = _curve(task, group, members)
    return panels


def _by_model(task: str, groups: Mapping[Group, list[RunOutcome]]) -> dict[str, dict[str, LengthCurve]]:
    """Layout and model to encoding to curve, where there are several encodings."""
    panels: dict[str, dict[str, LengthCurve]] = {}
    for group, members in groups.items():
        layout, model, encoding, departures = group
        if model in TRANSFORMERS:
            title = f"{layout}, {_named(model, departures, groups)}"
            panels.setdefault(title, {})[encoding] = _curve(task, group, members)
    return {title: lines for title, lines in panels.items() if len(lines) > 1}


def _named(model: str, departures: str, groups: Iterable[Group]) -> str:
    """The model with its departures from the preset, but for those that all groups share."""
    shared = set.intersection(*(set(json.loads(other).items()) for *_, other in groups))
    return " ".join([model, *(f"{k}={v}" for k, v in json.loads(departures).items() if (k, v) not in shared)])


def _curve(task: str, group: Group, members: list[RunOutcome]) -> LengthCurve:
    accuracy = {int(length): tuple(values) for length, values in accuracy_by_length(members).items()}
    paper = paper_figure_beside(task, group, members)
    return LengthCurve(accuracy, paper.mean if paper else None)
