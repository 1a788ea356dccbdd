"""From the cells' outcomes to the figures of results.json, the card, and the tables of docs/results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from hf_mech.hub import Measurement, Results, measurement
from hf_mech.planning.lifted.domains import DEVELOPMENT, DOMAINS

from ..engine.card import Card
from ..engine.run import by_setting
from ..engine.tables import Table
from .figures import verdicts_figure
from .models import names_of_figures
from .run import CellOutcome
from .settings import CONDITIONS, LEARNERS

CARD, TASK = "lifted-domains", "lifted planning domains"
WALKS, CONTRADICTIONS, LEARNED = "walks_right", "contradictions_right", "learned"
MAIN = ("clean", "habits", "wrong_action_2", "wrong_action_5")
"""The conditions of the first table."""
BARS = (1.0, 0.98, 0.95)
_TITLES = {
    "clean": "clean",
    "habits": "habits 5:1",
    "wrong_action_2": "2 % wrong",
    "wrong_action_5": "5 % wrong",
    "missing_step_2": "2 % missing",
    "failures": "failures",
    "wrong_label_2": "failures, 2 % wrong labels",
    "goals": "goal-seeking",
}
_CAPTION = (
    "The share of verdicts that are right, the lower one of walks and contradictions, in per cent; the mean over seeds"
)

Rows = dict[str, dict[tuple[str, str], dict[str, Measurement]]]
"""Figures by domain, by condition and learner, by metric."""


def order(outcome: CellOutcome) -> tuple[Any, ...]:
    """Domain by domain, then by kind of log and learner."""
    cell = outcome.settings
    place = DOMAINS.index(cell.domain), list(CONDITIONS).index(cell.condition), LEARNERS.index(cell.learner)
    return (*place, json.dumps(cell.departures, sort_keys=True), cell.seed)


def measurements(outcomes: Iterable[CellOutcome]) -> list[Measurement]:
    """All figures, of every domain, kind of log and learner; a figure a seed. A learner that failed has no verdicts."""
    measured = []
    for members in by_setting(outcomes, order):
        cell, learned = members[0].settings, [outcome for outcome in members if outcome.domain is not None]
        setting = {
            "condition": cell.condition,
            "learner": cell.learner,
            "preset": cell.preset,
            "seeds": [outcome.settings.seed for outcome in members],
            **({"departures": departures} if (departures := _departures(cell.departures)) else {}),
        }
        values: dict[str, list[float]] = {
            LEARNED: [float(outcome.domain is not None) for outcome in members],
            **{name: [getattr(one, name) for one in learned] for name in (WALKS, CONTRADICTIONS)},
            **{name: [float(getattr(one, name)) for one in learned] for name in ("predicates", "preconditions")},
            "actions": [float(one.actions) for one in members],
            "seconds": [one.seconds for one in members],
            "exceptions": [float(one.exceptions) for one in learned if one.exceptions is not None],
        }
        for name in names_of_figures():
            values[name] = [one.model[name] for one in learned if one.model is not None and name in one.model]
        measured += [measurement(TASK, cell.domain, setting, name, own) for name, own in values.items() if own]
    return measured


def _departures(given: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that change no figure of the other metrics."""
    return {name: value for name, value in given.items() if name not in ("models", "problems", "plan_seconds", "limit")}


def card(finished: Mapping[Path, CellOutcome]) -> Card:
    """The card of all cells; a learned domain is no model, so that there is no checkpoint."""
    outcomes = list(finished.values())
    measured = measurements(outcomes)
    rows = rows_of(measured)
    figures = {}
    for learner in LEARNERS:
        if shares := _shares(rows, learner):
            figures[f"verdicts_{learner}.png"] = (
                verdicts_figure(shares, {name: _TITLES[name] for name in CONDITIONS}),
                f"`{learner}`. {_CAPTION}",
            )
    return Card(
        name=CARD,
        outcomes=outcomes,
        measured=measured,
        text={"table": summary_table(rows).markdown()},
        model_class="none",
        task="other",
        tags=["strips", "planning", "world-model"],
        headline=[WALKS, CONTRADICTIONS],
        figures=figures,
    )


def table(finished: Sequence[CellOutcome]) -> Table:
    """The table at the end of the command: a row a cell."""
    numbers = (">seed", ">actions", ">predicates", ">seconds", ">walks", ">contradictions")
    shown = Table(["domain", "log", "learner", *numbers, "note"])
    for outcome in sorted(finished, key=order):
        cell = outcome.settings
        shares = [_percent(share) for share in (outcome.walks_right, outcome.contradictions_right)]
        verdicts = shares if outcome.domain is not None else ["", ""]
        figures = [str(cell.seed), f"{outcome.actions:,}", str(outcome.predicates), f"{outcome.seconds:.1f}"]
        shown.rows.append([cell.domain, cell.condition, cell.learner, *figures, *verdicts, outcome.note or ""])
    return shown


# ---------------------------------------------------------------------------------------------------- tables of docs


def rows_of(measured: Iterable[Measurement]) -> Rows:
    """Without cells whose settings depart from the preset's."""
    rows: Rows = {}
    for entry in measured:
        if "departures" not in entry.setting:
            cell = rows.setdefault(entry.config or "", {}).setdefault(
                (entry.setting["condition"], entry.setting["learner"]), {}
            )
            cell[entry.metric] = entry
    return rows


def _percent(share: float) -> str:
    """Never rounded up to 100."""
    return "100" if share == 1 else f"{min(99.9, 100 * share):.1f}"


def _verdicts(cell: Mapping[str, Measurement] | None) -> str:
    """Walks and contradictions in per cent."""
    if cell is None:
        return ""
    if WALKS not in cell:
        return "fails"
    failed = round(sum(1 - value for value in cell[LEARNED].values))
    shown = f"{_percent(cell[WALKS].mean)} / {_percent(cell[CONTRADICTIONS].mean)}"
    return f"{shown} ({failed} fail)" if failed else shown


def lower_share(cell: Mapping[str, Measurement]) -> float:
    """The lower one of the two shares, the mean over seeds; 0 for a seed on which the learner failed."""
    pairs = zip(cell[WALKS].values, cell[CONTRADICTIONS].values, strict=True) if WALKS in cell else ()
    return sum(min(pair) for pair in pairs) / cell[LEARNED].n


def _shares(rows: Rows, learner: str) -> dict[str, dict[str, float]]:
    """`lower_share` by domain and condition."""
    found = {
        domain: {name: lower_share(cells[name, learner]) for name in CONDITIONS if (name, learner) in cells}
        for domain, cells in rows.items()
    }
    return {_marked(domain): own for domain, own in found.items() if own}


def _marked(domain: str) -> str:
    return f"{domain} *" if domain in DEVELOPMENT else domain


def _titles(rows: Rows, learner: str, conditions: Iterable[str]) -> list[str]:
    return [name for name in conditions if any((name, learner) in cells for cells in rows.values())]


def verdicts_table(rows: Rows, learner: str = "code", conditions: Sequence[str] = MAIN) -> Table:
    """A row a domain: what was learned from clean logs, and the verdicts of each kind of log."""
    names = _titles(rows, learner, conditions)
    counted = ("actions", "predicates", "preconditions")
    shown = Table(["domain", *(f">{name}" for name in (*counted, "seconds")), *(f">{_TITLES[name]}" for name in names)])
    for domain, cells in rows.items():
        if not (first := next((cells[name, learner] for name in names if (name, learner) in cells), None)):
            continue
        counts = [f"{first[name].mean:,.0f}" if name in first else "" for name in counted]
        verdicts = [_verdicts(cells.get((name, learner))) for name in names]
        shown.rows.append([_marked(domain), *counts, f"{first['seconds'].mean:.1f}", *verdicts])
    return shown


def peers_table(rows: Rows) -> Table:
    """A row a domain: the verdicts of the other learners on the same logs."""
    columns = [(name, learner) for learner in LEARNERS[1:] for name in _titles(rows, learner, MAIN)]
    shown = Table(["domain", *(f">{learner}: {_TITLES[name]}" for name, learner in columns)])
    for domain, cells in rows.items():
        if any(key in cells for key in columns):
            shown.rows.append([_marked(domain), *(_verdicts(cells.get(key)) for key in columns)])
    return shown


def summary_table(rows: Rows) -> Table:
    """A row a learner and kind of log: the domains at each bar; behind a stroke those that are not `DEVELOPMENT`."""
    shown = Table(["learner", "log", ">domains", ">100 %", ">at least 98 %", ">at least 95 %", ">seconds a log"])
    for learner in LEARNERS:
        for name in _titles(rows, learner, CONDITIONS):
            own = {domain: cells[name, learner] for domain, cells in rows.items() if (name, learner) in cells}
            unseen = {domain: cell for domain, cell in own.items() if domain not in DEVELOPMENT}
            bars = [" / ".join(str(_reach(group, bar)) for group in (own, unseen)) for bar in BARS]
            seconds = fmean(cell["seconds"].mean for cell in own.values())
            shown.rows.append([learner, _TITLES[name], f"{len(own)} / {len(unseen)}", *bars, f"{seconds:.1f}"])
    return shown


def _reach(cells: Mapping[str, Mapping[str, Measurement]], bar: float) -> int:
    return sum(lower_share(cell) >= bar for cell in cells.values())


def models_table(rows: Rows, learner: str = "code", condition: str = "goals") -> Table:
    """A row a domain: AMLGym's figures; behind a stroke, those of the hidden domain asked in the same way."""
    pairs = {
        label: (f">{label}: precision", ">recall")
        for label in ("applicability", "preconditions", "effects", "arguments")
    }
    columns = [*pairs["applicability"], ">solved", ">false plans", *pairs["preconditions"], *pairs["effects"]]
    shown = Table(["domain", *columns, *pairs["arguments"], ">walks / contradictions"])
    plain = ("applicability_precision", "applicability_recall", "solved", "false_plans")
    syntactic = ("pre_precision", "pre_recall", "effects_precision", "effects_recall")
    names = (*plain, *syntactic, "arguments_precision", "arguments_recall")
    means: dict[str, list[float]] = {}
    for domain, cells in rows.items():
        cell = cells.get((condition, learner), {})
        if plain[0] not in cell:
            continue
        for name in (*names, *(f"possible_{name}" for name in plain)):
            means.setdefault(name, []).append(cell[name].mean)
        figures = [_beside(name, {name: entry.mean for name, entry in cell.items()}) for name in names]
        shown.rows.append([_marked(domain), *figures, _verdicts(cell)])
    if means:
        overall = {name: fmean(values) for name, values in means.items()}
        shown.rows.append(["**mean**", *(_beside(name, overall) for name in names), ""])
    return shown


def _beside(name: str, figures: Mapping[str, float]) -> str:
    possible = f" / {figures[f'possible_{name}']:.2f}" if f"possible_{name}" in figures else ""
    return f"{figures[name]:.2f}{possible}"


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results."""
    file = cards / CARD / "results.json"
    rows = rows_of(Results.load(file).results if file.exists() else [])
    other = [name for name in CONDITIONS if name not in (*MAIN, "goals")]
    return {
        "lifted-summary": summary_table(rows).markdown(),
        "lifted-verdicts": verdicts_table(rows).markdown(),
        "lifted-peers": peers_table(rows).markdown(),
        "lifted-other-logs": verdicts_table(rows, conditions=other).markdown(),
        "lifted-models": models_table(rows).markdown(),
    }


def summary(cards: Path) -> list[list[str]]:
    """One row: the domains that are learned without an error from clean logs."""
    file = cards / CARD / "results.json"
    rows = rows_of(Results.load(file).results if file.exists() else [])
    own = {domain: cells["clean", "code"] for domain, cells in rows.items() if ("clean", "code") in cells}
    if not own:
        return []
    measured = "domains of past competitions whose verdicts in bigger instances are all right, and at least 98 %"
    reached = f"{_reach(own, 1.0)}, {_reach(own, 0.98)} of {len(own)}"
    return [["[lifted domains](docs/results/lifted.md), 2,000 actions of small instances", measured, reached, "", "no"]]
