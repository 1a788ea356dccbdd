"""From the outcomes to the figures of results.json, the card, and the table of machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hf_mech.hub import Measurement, Results, measurement

from ..engine.card import Card
from ..engine.tables import Table
from .run import MACHINES, TrialsOutcome
from .trials import task_names

CARD = "psl-machines"
TASK = "psl"
_NAMES = {"psm": "PSM", "qkvm": "QKVM", "dat": "DAT"}
_METRICS = ("exact_match", "states_equal", "cpu_milliseconds_per_prompt")


def order(outcome: TrialsOutcome) -> tuple[int, int]:
    """The order of the library, then of the Turing machines."""
    return task_names().index(outcome.settings.task), outcome.settings.seed


def measurements(outcomes: Iterable[TrialsOutcome]) -> list[Measurement]:
    """Of every program and machine: the shares of right prompts and of equal states, and the time; a figure a seed."""
    by_task: dict[tuple[str, int], list[TrialsOutcome]] = {}
    for outcome in outcomes:
        by_task.setdefault((outcome.settings.task, outcome.settings.num_prompts), []).append(outcome)
    measured = []
    for (task, prompts), own in by_task.items():
        for machine in MACHINES:
            setting = {
                "machine": machine,
                "prompts": prompts,
                "seeds": [outcome.settings.seed for outcome in own],
                "layers": own[0].layers,
                "layers_with_repetitions": max(outcome.steps for outcome in own),
                "registers": own[0].registers,
                "cells": max(outcome.longest for outcome in own),
                "states_compared": sum(outcome.states_compared for outcome in own),
            }
            figures = (
                [outcome.right[machine] / prompts for outcome in own],
                [outcome.states_equal[machine] / outcome.states_compared for outcome in own],
                [1e3 * outcome.cpu_seconds_per_prompt[machine] for outcome in own],
            )
            for metric, values in zip(_METRICS, figures, strict=True):
                measured.append(measurement(TASK, task, setting, metric, values))
    return measured


def card(finished: Mapping[Path, TrialsOutcome]) -> Card:
    """The card of all programs; each is compiled by its name, so that there is no checkpoint."""
    outcomes = list(finished.values())
    measured = measurements(outcomes)
    return Card(
        name=CARD,
        outcomes=outcomes,
        measured=measured,
        text={"table": table_of(measured).markdown()},
        model_class="DATForCausalLM",
        task="text-generation",
        tags=["compiled-program", "turing-machine"],
        headline=[_METRICS[0]],
    )


def table(finished: Sequence[TrialsOutcome]) -> Table:
    """The table at the end of the command."""
    return table_of(measurements(finished))


def table_of(measured: Iterable[Measurement]) -> Table:
    """A row a program: right prompts and equal states of the machines together, and the time of each."""
    rows: dict[str, dict[tuple[str, str], Measurement]] = {}
    for entry in measured:
        rows.setdefault(entry.config or "", {})[entry.setting["machine"], entry.metric] = entry
    columns = ["program", ">layers", ">with repetitions", ">registers", ">cells", ">prompts right", ">states equal"]
    shown = Table([*columns, *(f">{_NAMES[machine]}, ms" for machine in MACHINES)])
    for name, row in rows.items():
        setting = next(iter(row.values())).setting
        prompts, states = setting["prompts"] * len(setting["seeds"]), setting["states_compared"]
        shown.rows.append(
            [
                f"`{name}`",
                *(f"{setting[key]:,}" for key in ("layers", "layers_with_repetitions", "registers", "cells")),
                f"{_least(row, 'exact_match', prompts):,} of {prompts:,}",
                f"{_least(row, 'states_equal', states):,} of {states:,}",
                *(f"{row[machine, 'cpu_milliseconds_per_prompt'].mean:.3g}" for machine in MACHINES),
            ]
        )
    return shown


def _least(row: Mapping[tuple[str, str], Measurement], metric: str, whole: int) -> int:
    """The number that the least successful machine reaches."""
    return min(round(row[machine, metric].mean * whole) for machine in MACHINES)


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results."""
    file = cards / CARD / "results.json"
    return {"machines": table_of(Results.load(file).results).markdown()} if file.exists() else {}


def summary(cards: Path) -> list[list[str]]:
    """No row: the paper has no such figures."""
    return []
