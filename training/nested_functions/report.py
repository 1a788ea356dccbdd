"""From the outcomes of the runs to the figures of results.json, a card for each model, and their table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from transformers import AutoModelForCausalLM, AutoTokenizer

from hf_mech.hub import Measurement, Results, measurement
from hf_mech.programs.nested_functions.calls import SPLITS, VOCABULARIES
from hf_mech.programs.templatic.figures import losses_figure

from ..engine.card import Card, Checkpoint
from ..engine.loop import POINTS
from ..engine.run import by_setting
from ..engine.tables import Table, percent, steps_in_words
from .run import DATASET, RunOutcome
from .settings import MODELS

METRIC = "exact_match"
NAME = "nested-functions"
_SIZE = (
    *("steps", "batch_size", "layers", "hidden", "heads", "inner", "activation_function", "initialization"),
    *("optimizer", "learning_rate", "muon_learning_rate", "beta2", "weight_decay", "scheduler", "warmup_steps"),
)


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """The order of the table: model, configuration, preset, departures, seed."""
    run = outcome.settings
    model, config = MODELS.index(run.model), list(VOCABULARIES).index(run.config)
    return model, config, run.preset, json.dumps(run.departures, sort_keys=True), run.seed


def measurements(outcomes: Iterable[RunOutcome]) -> list[Measurement]:
    """Every setting's figures over its seeds, a figure a split."""
    return [entry for members in by_setting(outcomes, order) for entry in _of_group(members)]


def _of_group(members: Sequence[RunOutcome]) -> list[Measurement]:
    run = members[0].settings
    setting = {
        "model": run.model,
        "preset": run.preset,
        **({name: getattr(run, name) for name in _SIZE} if run.model == "gpt2" else {}),
        "departures": run.departures,
        "parameters": members[0].parameters,
        "data_seed": run.data_seed,
        "seeds": [outcome.settings.seed for outcome in members],
        "steps_done": [outcome.steps for outcome in members],
    }
    of_splits = [
        measurement(
            DATASET,
            run.config,
            setting | {"split": split, "prompts": members[0].measured[split]},
            METRIC,
            [outcome.exact_match[split] for outcome in members],
        )
        for split in SPLITS
    ]
    seconds = [outcome.seconds + outcome.seconds_of_test for outcome in members]
    return [*of_splits, measurement(DATASET, run.config, setting, "seconds", seconds)]


def card(finished: Mapping[Path, RunOutcome]) -> Card:
    """The card of a model; its checkpoint is the first seed's."""
    own, measured = list(finished.values()), measurements(finished.values())
    folder, first = next(iter(finished.items()))
    run = first.settings
    learned = run.model == "gpt2"
    parts = [NAME, run.model, *([] if run.preset == "cpu" else [run.preset])]
    model = AutoModelForCausalLM.from_pretrained(folder / "model", trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(folder / "model", trust_remote_code=True)
    return Card(
        name="-".join(parts),
        outcomes=own,
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in own),  # one core a run
        measured=measured,
        text={"run": run, "learned": learned, "table": table_of(measured).markdown(), "parameters": first.parameters},
        model_class=type(model).__name__,
        task="text-generation",
        tags=["nested-functions", "in-context-learning", "out-of-distribution"],
        headline=[METRIC],
        figures={"training_loss.png": (_losses(own), "Training loss, over the words of completions")}
        if learned
        else {},
        checkpoint=Checkpoint(model, tokenizer),
    )


def _losses(outcomes: Iterable[RunOutcome]) -> Figure:
    curves: dict[str, list[tuple[list[float], list[float]]]] = {}
    for outcome in outcomes:
        every = max(outcome.settings.steps // POINTS, 1)
        steps = [every * float(point) for point in range(1, len(outcome.losses) + 1)]
        curves.setdefault(f"{outcome.settings.model}, {outcome.settings.config}", []).append((steps, outcome.losses))
    return losses_figure(curves)


def table_of(measured: Iterable[Measurement]) -> Table:
    """Completions that are exactly right, in per cent of each split: a row a setting."""
    rows: dict[str, dict[str, Measurement]] = {}
    for entry in measured:
        if entry.metric == METRIC:
            own = {name: value for name, value in entry.setting.items() if name not in ("split", "prompts")}
            rows.setdefault(repr((entry.config, own)), {})[entry.setting["split"]] = entry
    shown = Table(["model", "words", *(f">{split.short_name}" for split in SPLITS.values()), ">steps", ">prompts"])
    for cells in rows.values():
        first = next(iter(cells.values()))
        steps = steps_in_words(first.setting["steps_done"]) if first.setting["model"] == "gpt2" else ""
        ours = [percent(cells.get(split), spread=first.n > 1) for split in SPLITS]
        prompts = f"{first.setting['prompts']:,} a split"
        shown.rows.append([first.setting["model"], first.config or "", *ours, steps, prompts])
    return shown


def table(finished: Iterable[RunOutcome]) -> Table:
    """The table of finished runs."""
    return table_of(measurements(finished))


def results(cards: Path) -> dict[str, str]:
    """The table of docs/results: all cards of the task."""
    return {"nested-functions": table_of(_entries(cards)).markdown()}


def summary(cards: Path) -> list[list[str]]:
    """One row: the program's right completions."""
    entries = [entry for entry in _entries(cards) if entry.metric == METRIC and entry.setting["model"] == "dat"]
    if not entries:
        return []
    prompts = sum(entry.setting["prompts"] for entry in entries)
    right = sum(round(entry.setting["prompts"] * entry.mean) for entry in entries)
    name = "[Nested functions](docs/results/nested_functions.md), compiled"
    return [[name, "prompts completed exactly", f"{right:,} of {prompts:,}", "", "no"]]


def _entries(cards: Path) -> list[Measurement]:
    files = sorted(cards.glob(f"{NAME}-*/results.json"))
    return [entry for file in files for entry in Results.load(file).results]
