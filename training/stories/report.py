"""From the outcomes of the runs to the figures of results.json, a card and its table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from transformers import AutoTokenizer

from hf_mech.hub import Measurement, Results, measurement
from hf_mech.programs.templatic.figures import losses_figure

from ..engine.card import Card, Checkpoint
from ..engine.loop import POINTS
from ..engine.run import by_setting
from ..engine.tables import Table, departures_in_words, number, percent
from .models import CLASSES
from .run import RunOutcome
from .settings import MODELS, Run

DATASET = "hf_mech/stories"
NAME = "belief-state-stories"
SHARES = {
    "joined": "joins, goal known",
    "searched": "joins, by Algorithm 1",
    "grammatical": "grammatical, goal known",
    "continued": "agrees, goal unknown",
    "exact_match": "the story's own words",
}
COUNTS = {
    "contradictions": "contradictions a story, goal known",
    "contradictions_unknown": "contradictions, goal unknown",
}
_SHOWN = ("layers", "hidden", "heads", "inner", "batch_size", "steps", "learning_rate", "vocabulary", "eval_stories")


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """BST before the baseline, the preset before its departures."""
    run = outcome.settings
    departures = json.dumps(run.departures, sort_keys=True)
    return run.preset, MODELS.index(run.model), bool(run.departures), departures, run.seed


def measurements(outcomes: Iterable[RunOutcome]) -> list[Measurement]:
    """Every setting's figures over its seeds."""
    return [entry for members in by_setting(outcomes, order) for entry in _of_group(members)]


def _of_group(members: Sequence[RunOutcome]) -> list[Measurement]:
    run = members[0].settings
    setting = {
        "model": run.model,
        "preset": run.preset,
        **{name: getattr(run, name) for name in _SHOWN},
        "departures": run.departures,
        "parameters": members[0].parameters,
        "seeds": [outcome.settings.seed for outcome in members],
    }
    values: dict[str, list[Any]] = {
        name: [getattr(one, name) for one in members] for name in (*SHARES, *COUNTS, "held_out_loss", "seconds")
    }
    return [measurement(DATASET, run.corpus, setting, name, of) for name, of in values.items() if None not in of]


def table(finished: Iterable[RunOutcome]) -> Table:
    """The measures of finished runs."""
    return measures_table(measurements(finished))


def measures_table(measured: Iterable[Measurement]) -> Table:
    """A row for each model: the measures of its completions."""
    rows: dict[str, dict[str, Measurement]] = {}
    for entry in measured:
        rows.setdefault(json.dumps(entry.setting, sort_keys=True), {})[entry.metric] = entry
    heads = [*SHARES.values(), *COUNTS.values(), "parameters", "seeds"]
    shown = Table(["model", "departures", *(f">{head}" for head in heads)])
    for cells in rows.values():
        own = next(iter(cells.values()))
        departures = departures_in_words(own.setting["departures"])
        figures = [percent(cells.get(name), spread=own.n > 1) for name in SHARES]
        figures += [number(cells.get(name), spread=own.n > 1) for name in COUNTS]
        shown.rows.append([own.setting["model"], departures, *figures, f"{own.setting['parameters']:,}", str(own.n)])
    return shown


def choose(outcomes: Mapping[Path, RunOutcome]) -> Path:
    """The folder of the card's checkpoint: BST first, then the lowest held-out loss of its training objective."""
    return min(outcomes, key=lambda f: (MODELS.index(outcomes[f].settings.model), outcomes[f].held_out_loss))


def card(outcomes: Mapping[Path, RunOutcome]) -> Card:
    """The card of a preset."""
    own, measured = list(outcomes.values()), measurements(outcomes.values())
    folder = choose(outcomes)
    chosen = outcomes[folder].settings
    model = CLASSES[chosen.model].from_pretrained(folder / "model")
    return Card(
        name=_name(chosen.preset),
        outcomes=own,
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in own),
        measured=measured,
        text={"run": chosen, "table": measures_table(measured).markdown()},
        model_class=type(model).__name__,
        task="text-generation",
        tags=["stories", "infilling", "goal-conditioned-generation"],
        headline=["joined" if chosen.corpus == "grammar" else "exact_match"],
        figures={"training_loss.png": (_losses(own), "Training loss by step; the two objectives do not compare")},
        checkpoint=Checkpoint(model, AutoTokenizer.from_pretrained(folder / "model")),
    )


def _losses(outcomes: Iterable[RunOutcome]) -> Figure:
    curves: dict[str, list[tuple[Sequence[float], list[float]]]] = {}
    for outcome in outcomes:
        steps = max(outcome.settings.steps // POINTS, 1) * np.arange(1, len(outcome.losses) + 1)
        curves.setdefault(outcome.settings.model, []).append((steps.tolist(), outcome.losses))
    return losses_figure(curves)


def results(cards: Path) -> dict[str, str]:
    """The table of each preset's card, empty before there is one."""
    found = {}
    for preset in Run.PRESETS:
        file = cards / _name(preset) / "results.json"
        found[_name(preset)] = measures_table(Results.load(file).results if file.exists() else []).markdown()
    return found


def _name(preset: str) -> str:
    return NAME if preset == "cpu" else f"{NAME}-{preset}"


def summary(cards: Path) -> list[list[str]]:
    """Rows of the README: none, for the paper's figures are a judge's."""
    return []
