"""From the outcomes of the runs to the figures of results.json, a card and its table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM, AutoTokenizer

from hf_mech.hub import Measurement, Results, measurement

from ..engine.card import Card, Checkpoint
from ..engine.run import by_setting
from ..engine.tables import Table, percent
from .run import RunOutcome
from .settings import ROLES, SUBJECTS

DATASET = "hf_mech/templatic_generation"
NAME = "discover-templatic"
EXPLAINED, ACCURACY, SHUFFLED, MAJORITY = "variance_explained", "accuracy", "shuffled", "majority"


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """The program, the trained model, the untrained one."""
    run = outcome.settings
    return SUBJECTS.index(run.subject), json.dumps(run.departures, sort_keys=True), run.seed


def measurements(outcomes: Iterable[RunOutcome]) -> list[Measurement]:
    """Every layer's figures over the seeds."""
    return [entry for members in by_setting(outcomes, order) for entry in _of_group(members)]


def _of_group(members: Sequence[RunOutcome]) -> list[Measurement]:
    run = members[0].settings
    setting = {
        "subject": run.subject,
        "checkpoint": Path(run.checkpoint).parent.name if run.checkpoint and run.subject != "pargen" else None,
        "split": run.split,
        "prompts": run.prompts,
        "cells": members[0].cells,
        "hidden": members[0].hidden,
        "filler_width": run.filler_width,
        "seeds": [outcome.settings.seed for outcome in members],
    }
    made = []
    for i, layer in enumerate(members[0].layers):
        fits = [outcome.layers[i] for outcome in members]
        own = setting | {"layer": layer.layer}
        for hypothesis, explained in (("parse", "explained"), (SHUFFLED, "control")):
            values = [getattr(fit, explained) for fit in fits]
            made.append(measurement(DATASET, run.task, own | {"hypothesis": hypothesis}, EXPLAINED, values))
        for hypothesis, shares in (("parse", "accuracy"), (SHUFFLED, "control_accuracy"), (MAJORITY, "majority")):
            for role in ROLES:
                values = [getattr(fit, shares)[role] for fit in fits]
                what = own | {"hypothesis": hypothesis, "role": role}
                made.append(measurement(DATASET, run.task, what, ACCURACY, values))
    return [*made, measurement(DATASET, run.task, setting, "seconds", [outcome.seconds for outcome in members])]


def card(finished: Mapping[Path, RunOutcome]) -> Card:
    """The card of a test; its checkpoint is the trained model that was looked into."""
    outcomes = list(finished.values())
    measured = measurements(outcomes)
    trained = next((outcome.settings for outcome in outcomes if outcome.settings.subject == "trained"), None)
    folder = trained.checkpoint if trained else None
    return Card(
        name=NAME,
        outcomes=outcomes,
        measured=measured,
        text={
            "table": layers_table(measured).markdown(),
            "checkpoint": Path(folder).parent.name if folder else None,
            "prompts": outcomes[0].settings.prompts,
            "unseen": f"{100 * max(outcome.unseen for outcome in outcomes):.1f}",
        },
        model_class="GPT2LMHeadModel" if folder else "none",
        task="text-generation",
        tags=["templatic-generation", "interpretability", "tensor-product-representation"],
        headline=[ACCURACY],
        checkpoint=Checkpoint(AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder))
        if folder
        else None,
    )


def table(finished: Iterable[RunOutcome]) -> Table:
    """The table of finished runs."""
    return layers_table(measurements(finished))


def layers_table(measured: Iterable[Measurement]) -> Table:
    """A row a layer: R^2, and the accuracy of each role; of the shuffled hypothesis behind a stroke."""
    rows: dict[str, dict[tuple[str, str | None], Measurement]] = {}
    for entry in measured:
        if entry.metric in (EXPLAINED, ACCURACY):
            own = {name: value for name, value in entry.setting.items() if name not in ("hypothesis", "role")}
            cells = rows.setdefault(json.dumps(own, sort_keys=True), {})
            cells[entry.setting["hypothesis"], entry.setting.get("role")] = entry
    shown = Table(["model", ">layer", ">R²", *(f">{role}" for role in ROLES), ">cells", ">seeds"])
    usual: list[str] = []
    for cells in rows.values():
        entry = cells["parse", None]
        figures = [f"{_figure(cells['parse', role])} / {_figure(cells[SHUFFLED, role])}" for role in (None, *ROLES)]
        usual = [f"{percent(cells[MAJORITY, role], spread=False)}" for role in ROLES]
        what, layer = entry.setting["subject"], str(entry.setting["layer"])
        shown.rows.append([what, layer, *figures, f"{entry.setting['cells']:,}", str(entry.n)])
    if usual:
        shown.rows.append(["*most frequent filler*", "", "", *usual, "", ""])
    return shown


def _figure(entry: Measurement) -> str:
    return percent(entry, spread=False) if entry.metric == ACCURACY else f"{entry.mean:.2f}"


def results(cards: Path) -> dict[str, str]:
    """The table of docs/results."""
    file = cards / NAME / "results.json"
    return {NAME: layers_table(Results.load(file).results if file.exists() else []).markdown()}


def summary(cards: Path) -> list[list[str]]:
    """No row: the paper has no figure for it."""
    return []
