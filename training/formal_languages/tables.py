"""Runs that differ in their seeds alone, beside the paper's figure; and the tables of docs/results and the README."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hf_mech.hub import Measurement, PaperFigure, Results
from hf_mech.languages import TASKS

from ..engine.tables import Table, percent, steps_in_words
from .run import RunOutcome
from .settings import ENCODINGS, LAYOUTS, MODELS, PAPER, PAPERS_TASKS, TRANSFORMERS, Run

SCORE = "token_accuracy"
LONGEST = f"{SCORE}_at_longest"
"""Of the longest texts, where they are longer than those of the score."""

Group = tuple[str, str, str, str]
"""Layout, model, encoding, and the departures from the preset, as JSON: runs that differ in their seeds alone."""

NOT_THE_PAPERS = ("multi_pop", "stack_gate", "stack_actions_from", "num_hidden_layers", "max_train_length")
"""Departures that make another model, or another task, of a run: it stands beside no figure of the paper."""


def grouped(outcomes: Iterable[RunOutcome]) -> dict[Group, list[RunOutcome]]:
    """The runs that differ in their seeds alone, together, in the order of the tables."""
    groups: dict[Group, list[RunOutcome]] = {}
    for outcome in sorted(outcomes, key=order):
        run = outcome.settings
        departures = json.dumps(run.departures, sort_keys=True)
        groups.setdefault((run.layout, run.model, run.encoding, departures), []).append(outcome)
    return groups


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """The order of the tables."""
    run = outcome.settings

    def place(value: str, values: tuple[str, ...]) -> int:
        return values.index(value) if value in values else len(values)

    departures = json.dumps(run.departures, sort_keys=True) if run.departures else ""
    task = (place(run.task, PAPERS_TASKS), run.task, place(run.encoding, ENCODINGS))
    return *task, departures, LAYOUTS.index(run.layout), MODELS.index(run.model), run.seed


def paper_figure(task: str, group: Group) -> PaperFigure | None:
    """The paper's figure, as a share: of Table 1 where there is no encoding, else of Table 2.

    Where Table 2 says otherwise of a cell of Table 1, `where` says so.
    """
    layout, model, encoding, departures = group
    if any(name in json.loads(departures) for name in NOT_THE_PAPERS):
        return None
    found = PAPER.figures(SCORE, task=task, layout=layout, model=model, encoding=encoding)
    if not found:
        return None
    first, *others = found
    other = "".join(f"; {o.where}: {percent(o)} %" for o in others if (o.mean, o.std) != (first.mean, first.std))
    return PaperFigure(first.mean, first.std, first.where + other)


def paper_figure_beside(task: str, group: Group, members: list[RunOutcome]) -> PaperFigure | None:
    """The figure of the paper that compares with these runs, if any: none where more was taught than in the paper."""
    return None if members[0].settings.is_taught else paper_figure(task, group)


def accuracy_by_length(members: list[RunOutcome]) -> dict[str, list[float]]:
    """The accuracy of every seed at each length."""
    return {length: [o.accuracy_by_length[length] for o in members] for length in members[0].accuracy_by_length}


# ------------------------------------------------------------------------------------------------------- from the cards


_RECURRENT = tuple(model for model in MODELS if model not in TRANSFORMERS)


def _entries(cards: Path, *metrics: str, name: str = "stack-*") -> Iterator[tuple[Path, Measurement]]:
    """The figures of these metrics in the cards of that name, with their files."""
    for file in sorted(cards.glob(f"{name}/results.json")):
        for entry in Results.load(file).results:
            if entry.metric in metrics:
                yield file, entry


def cells_of(cards: Path) -> list[dict[str, Measurement]]:
    """The cells of Table 1 that the cards hold, in its order: the scores of a task and layout by model.

    Transformers as the paper has them, without positional encodings.

    Raises:
        ValueError: a card has two figures for one cell.
    """
    rows: dict[tuple[Any, ...], dict[str, Measurement]] = {}
    for file, entry in _entries(cards, SCORE):
        setting = entry.setting
        if entry.paper and setting["encoding"] == "none" and setting["model"] in TRANSFORMERS:
            place = (
                PAPERS_TASKS.index(entry.config or ""),
                LAYOUTS.index(setting["layout"]),
                list(Run.PRESETS)[::-1].index(setting["preset"]),  # cpu, paper
                setting["steps"],
            )
            models = rows.setdefault(place, {})
            if setting["model"] in models:
                names = (entry.config, setting["layout"], setting["preset"])
                raise ValueError(f"{file} has two figures for {names} after {place[-1]} steps; keep one there.")
            models[setting["model"]] = entry
    return [models for _, models in sorted(rows.items())]


def table1(cards: Path) -> Table:
    """Table 1 from the cards: a row a task and layout, ours beside the paper's in per cent."""
    columns = ["task", "layout", "stack", "paper's stack", "vanilla", "paper's vanilla", ">seeds", "preset", ">steps"]
    table = Table(columns)
    for models in cells_of(cards):
        first = next(iter(models.values()))
        figures = [
            percent(figure)
            for entry in (models.get("stack"), models.get("vanilla"))
            for figure in (entry, entry.paper if entry else None)
        ]
        seeds = "/".join(dict.fromkeys(str(entry.n) for entry in models.values()))
        done = "; ".join(dict.fromkeys(steps_in_words(entry.setting["steps_done"]) for entry in models.values()))
        own = [first.config or "", first.setting["layout"], *figures]
        table.rows.append([*own, seeds, first.setting["preset"], done])
    return table


def table2(cards: Path) -> Table:
    """Table 2 from the cards: a row a task, layout and model, a column an encoding, in per cent (the paper's)."""
    rows: dict[tuple[int, ...], dict[str, Measurement]] = {}
    for _, entry in _entries(cards, SCORE):
        setting = entry.setting
        if entry.paper and setting["model"] in TRANSFORMERS:
            place = (
                PAPERS_TASKS.index(entry.config or ""),
                LAYOUTS.index(setting["layout"]),
                MODELS.index(setting["model"]),
                [*Run.PRESETS].index(setting["preset"]),
            )
            rows.setdefault(place, {})[setting["encoding"]] = entry
    table = Table(["task", "layout", "model", *(f">{encoding}" for encoding in ENCODINGS), ">steps"])
    for (task, layout, model, _), entries in sorted(rows.items()):
        if entries.keys() - {"none"}:
            own = PAPERS_TASKS[task], LAYOUTS[layout], MODELS[model]
            steps = steps_in_words(done for entry in entries.values() for done in entry.setting["steps_done"])
            table.rows.append([*own, *(_beside_table2(entries.get(encoding)) for encoding in ENCODINGS), steps])
    return table


def _beside_table2(entry: Measurement | None) -> str:
    if entry is None:
        return ""
    setting = {name: entry.setting[name] for name in ("layout", "model", "encoding")}
    figure = PAPER.figures(SCORE, task=entry.config, **setting)[-1]  # those of Table 2 come last
    return f"{percent(entry, spread=False)} ({percent(figure, spread=False)})"


def recurrent_table(cards: Path) -> Table:
    """Table 1's recurrent baselines from the cards: a row a task and budget, ours beside the paper's in per cent."""
    rows: dict[tuple[int, int], dict[str, Measurement]] = {}
    for _, entry in _entries(cards, SCORE):
        if entry.paper and entry.setting["model"] in _RECURRENT:
            place = PAPERS_TASKS.index(entry.config or ""), entry.setting["steps"]
            rows.setdefault(place, {})[entry.setting["model"]] = entry
    heads = (head for model in _RECURRENT for head in (model, f"paper's {model}"))
    table = Table(["task", *heads, ">seeds", ">steps"])
    for (task, steps), models in sorted(rows.items()):
        figures = [
            percent(figure)
            for entry in map(models.get, _RECURRENT)
            for figure in (entry, entry.paper if entry else None)
        ]
        seeds = "/".join(dict.fromkeys(str(entry.n) for entry in models.values()))
        table.rows.append([PAPERS_TASKS[task], *figures, seeds, f"{steps:,}"])
    return table


_ABOVE = "context-sensitive"
"""The level of the tasks that have a table of their own."""
_SOLVED = 0.98
"""The share of right answers from which a seed is counted as one that solves its task."""


def _taught(cards: Path, preset: str = "taught") -> dict[tuple[str, str], dict[str, Measurement]]:
    """The scores of the taught models without encodings by model, and `MODEL LONGEST`; by task and layout, in order."""
    rows: dict[tuple[int, int], dict[str, Measurement]] = {}
    known = [*TASKS]
    for _, entry in _entries(cards, SCORE, LONGEST, name=f"stack-*-{preset}"):
        setting = entry.setting
        if setting["encoding"] == "none":
            place = known.index(entry.config or ""), LAYOUTS.index(setting["layout"])
            model = setting["model"] if entry.metric == SCORE else f"{setting['model']} {LONGEST}"
            rows.setdefault(place, {})[model] = entry
    return {
        (known[task], LAYOUTS[layout]): models
        for (task, layout), models in sorted(rows.items())
        if TASKS[known[task]].level != _ABOVE
    }


def taught_table(cards: Path, preset: str = "taught") -> Table:
    """What more lessons than the paper's make of the models: a row a task and layout, a column a model, in per cent.

    Args:
        cards: the folder of the cards.
        preset: `taught`, or `even`.
    """
    controls = [model for model in MODELS if model != "recurrent_stack"]
    columns = ["recurrent_stack", f"recurrent_stack {LONGEST}", *controls]
    heads = ["recurrent stack", ">seeds at 98 %", "recurrent stack, length 500", *controls]
    table = Table(["task", "layout", *heads, ">seeds", ">steps"])
    for (task, layout), models in _taught(cards, preset).items():
        found = [models.get(column) for column in columns]
        figures = [percent(entry, spread=bool(entry and entry.n > 1)) for entry in found]
        recurrent = models.get("recurrent_stack")
        solved = f"{sum(share >= _SOLVED for share in recurrent.values)} of {recurrent.n}" if recurrent else ""
        seeds = "/".join(dict.fromkeys(str(models[column].n) for column in columns if column in models))
        steps = steps_in_words(next(iter(models.values())).setting["steps_done"])
        table.rows.append([task, layout, figures[0], solved, *figures[1:], seeds, steps])
    return table.without_empty_columns()


def context_sensitive_table(cards: Path) -> Table:
    """The tasks above context-free, with one stack and with two (a layer each): per cent, on both ranges of lengths."""
    trained = f"{SCORE}_at_trained_lengths"
    rows: dict[str, dict[tuple[int, str], Measurement]] = {}
    for _, entry in _entries(cards, SCORE, trained, name="stack-*-taught"):
        setting = entry.setting
        if TASKS[entry.config or ""].level == _ABOVE and setting["model"] == "recurrent_stack":
            stacks = setting.get("num_hidden_layers", 1)
            rows.setdefault(entry.config or "", {})[stacks, entry.metric] = entry
    heads = (f">{words}, {lengths}" for words in ("one stack", "two stacks") for lengths in ("to 40", "41 to 100"))
    table = Table(["task", *heads, ">seeds", ">steps"])
    for task in TASKS:
        if found := rows.get(task):
            figures = [percent(found.get((n, metric)), spread=False) for n in (1, 2) for metric in (trained, SCORE)]
            first = next(iter(found.values()))
            table.rows.append([task, *figures, str(first.n), steps_in_words(first.setting["steps_done"])])
    return table


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results."""
    return {
        "stack-attention-context-sensitive": context_sensitive_table(cards).markdown(),
        "stack-attention-table-1": table1(cards).markdown(),
        "stack-attention-table-2": table2(cards).markdown(),
        "stack-attention-recurrent": recurrent_table(cards).markdown(),
        "stack-attention-taught": taught_table(cards).markdown(),
        "stack-attention-even": taught_table(cards, "even").markdown(),
    }


def _most_steps(cards: Path) -> dict[str | None, tuple[Measurement, Measurement]]:
    """For each task, the masked stack and vanilla models of the setting with the most steps."""
    found: dict[str | None, tuple[Measurement, Measurement]] = {}
    for models in cells_of(cards):
        if {"stack", "vanilla"} <= models.keys() and models["stack"].setting["layout"] == "mlm":
            stack, vanilla = models["stack"], models["vanilla"]
            if stack.config not in found or stack.setting["steps"] > found[stack.config][0].setting["steps"]:
                found[stack.config] = stack, vanilla
    return found


def summary(cards: Path) -> list[list[str]]:
    """The masked layout, a row a task: the paper's stack; and where it is right too seldom, recurrent values, taught.

    Both beside the vanilla model that was trained in the same way. Of a task's settings, that of most steps.
    """
    link, measure = "[Stack attention](docs/results/formal_languages.md)", "per cent right on lengths 41 to 100, MLM"
    rows, unsolved = [], set[str | None]()
    for task, (stack, vanilla) in _most_steps(cards).items():
        own, papers = stack.setting["steps"], Run.PRESETS["paper"]["steps"]({"task": task})
        steps = "no" if own == papers else f"at most {own:,} steps"
        ours = f"{percent(stack)} ({percent(vanilla, spread=False)})"
        papers_own = f"{percent(stack.paper)} ({percent(vanilla.paper, spread=False)})"
        rows.append([f"{link}, `{task}`", f"{measure} (without the stack)", ours, papers_own, steps])
        if stack.mean < _SOLVED:
            unsolved.add(task)
    for (task, layout), models in _taught(cards).items():
        if task in unsolved and layout == "mlm" and {"recurrent_stack", "vanilla"} <= models.keys():
            recurrent, vanilla = models["recurrent_stack"], models["vanilla"]
            ours = f"{percent(recurrent)} ({percent(vanilla, spread=False)})"
            taught = f"{link}, `{task}`, recurrent values, partial results taught"
            rows.append([taught, f"{measure} (without the stack)", ours, "not in it", "no"])
    return rows
