"""From the outcomes of the runs to the figures of results.json, a card and its table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from transformers import AutoTokenizer

from hf_mech.hub import Measurement, Results, measurement
from hf_mech.models.dat import SemiFormalForSequenceClassification
from hf_mech.viz.palette import MUTED, OURS, style

from ..engine.card import Card, Checkpoint
from ..engine.run import by_setting
from ..engine.tables import Table, departures_in_words, percent, steps_in_words
from .run import CONFIG, DATASET, RunOutcome
from .settings import MODELS

NAME = "semi-formal-rules"
ACCURACY, EXACT = "accuracy", "exact_accuracy"
HEADS = {"test": "depth 0 to 2", "combinations": "new pairs", "depth_3": "depth 3", "depth_4": "depth 4"}
_CAPTION = "Right labels over the number of training texts: each seed a dot, their mean a line"
_SHOWN = (
    "layers",
    "hidden",
    "filter",
    "heads",
    "batch_size",
    "learning_rate",
    "entropy_weight",
    "num_train",
    "num_eval",
)


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """Ours before the baseline, the preset before its departures."""
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
        "steps_done": [outcome.steps for outcome in members],
    }
    made = []
    for metric in (ACCURACY, EXACT):
        for split in getattr(members[0], metric):
            values = [getattr(outcome, metric)[split] for outcome in members]
            made.append(measurement(DATASET, CONFIG, setting | {"split": split}, metric, values))
    return [*made, measurement(DATASET, CONFIG, setting, "seconds", [outcome.seconds for outcome in members])]


def card(finished: Mapping[Path, RunOutcome]) -> Card:
    """The card of a preset; its checkpoint is the Semi-formal Transformer with the least training loss."""
    outcomes, measured = list(finished.values()), measurements(finished.values())
    own = [folder for folder, outcome in finished.items() if outcome.settings.model == "semi_formal"]
    best = min(own, key=lambda folder: finished[folder].losses[-1:], default=None)
    preset = outcomes[0].settings.preset
    return Card(
        name=NAME if preset == "cpu" else f"{NAME}-{preset}",
        outcomes=outcomes,
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in outcomes),
        measured=measured,
        text={"table": splits_table(measured).markdown(), "num_eval": outcomes[0].settings.num_eval},
        model_class="SemiFormalForSequenceClassification",
        task="text-classification",
        tags=["semi-formal", "compiled-program", "out-of-distribution"],
        figures={"accuracy_by_examples.png": (figure, _CAPTION)} if (figure := examples_figure(measured)) else {},
        headline=[ACCURACY],
        checkpoint=Checkpoint(
            SemiFormalForSequenceClassification.from_pretrained(best / "model"),
            AutoTokenizer.from_pretrained(best / "model"),
        )
        if best
        else None,
    )


def table(finished: Iterable[RunOutcome]) -> Table:
    """The table of finished runs."""
    return splits_table(measurements(finished))


def splits_table(measured: Iterable[Measurement]) -> Table:
    """A row for each model, and one for ours with DATmax and DATnorm: per cent of right labels by split."""
    rows: dict[tuple[str, str], dict[str, Measurement]] = {}
    for entry in measured:
        if entry.metric in (ACCURACY, EXACT):
            own = {name: value for name, value in entry.setting.items() if name != "split"}
            rows.setdefault((json.dumps(own, sort_keys=True), entry.metric), {})[entry.setting["split"]] = entry
    shown = Table(["model", "departures", *(f">{head}" for head in HEADS.values()), ">parameters", ">steps", ">seeds"])
    for (_, metric), cells in rows.items():
        entry = next(iter(cells.values()))
        name = entry.setting["model"] + (", at temperature 0" if metric == EXACT else "")
        departures = departures_in_words(entry.setting["departures"])
        figures = [percent(cells.get(split), spread=entry.n > 1) for split in HEADS]
        steps = steps_in_words(entry.setting["steps_done"])
        shown.rows.append([name, departures, *figures, f"{entry.setting['parameters']:,}", steps, str(entry.n)])
    return shown


def examples_figure(measured: Iterable[Measurement]) -> Figure | None:
    """Right labels on rules as deep as the trained ones, over the training texts; None for a single number of them."""
    curves: dict[str, list[Measurement]] = {model: [] for model in MODELS}
    for entry in measured:
        if entry.metric == ACCURACY and entry.setting["split"] == "test":
            curves[entry.setting["model"]].append(entry)
    if len({entry.setting["num_train"] for entries in curves.values() for entry in entries}) < 2:
        return None
    figure = Figure(figsize=(5.2, 3.2), layout="constrained")
    axes = figure.subplots()
    for (model, entries), colour in zip(curves.items(), (OURS, MUTED), strict=True):
        entries.sort(key=lambda entry: entry.setting["num_train"])
        sizes = [entry.setting["num_train"] for entry in entries]
        axes.plot(sizes, [100 * entry.mean for entry in entries], color=colour, marker="o", ms=4, label=model)
        for size, entry in zip(sizes, entries, strict=True):
            axes.plot([size] * entry.n, [100 * value for value in entry.values], ".", color=colour, alpha=0.4, mew=0)
    axes.set_xscale("log")
    axes.set_xlabel("training texts")
    axes.set_ylabel("right labels, per cent")
    axes.legend(frameon=False)
    style(axes)
    return figure


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results."""
    files = {name: cards / name / "results.json" for name in (NAME, f"{NAME}-exceptions")}
    return {
        name: splits_table(Results.load(file).results if file.exists() else []).markdown()
        for name, file in files.items()
    }


def summary(cards: Path) -> list[list[str]]:
    """No row: the paper has no figure for it."""
    return []
