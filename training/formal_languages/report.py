"""From the outcomes of the runs to the figures of results.json, and to the card and the tables of a task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from hf_mech.hub import Measurement, PaperFigure, measurement
from hf_mech.languages import BRACKETED, formal_language_tokenizer

from ..engine.card import Card, Checkpoint
from ..engine.tables import Table, percent, steps_in_words
from .figures import example_of, figures_of
from .models import load_model
from .run import RunOutcome, accuracy_of_levels
from .settings import PAPERS_TASKS, STACKS, TEST_LENGTHS, TRANSFORMERS, without_effect
from .tables import LONGEST, NOT_THE_PAPERS, SCORE, Group, accuracy_by_length, grouped, paper_figure_beside
from .tables import order as order
from .tables import results as results
from .tables import summary as summary

DATASET = "hf_mech/formal_languages"
_SHOWN = (
    *("steps", "batch_size", "learning_rate", "scheduler", "warmup_steps"),
    *("dropout", "attention_dropout", "initializer_range"),
    *("learned_loss", "steps_after", "restart_after", "test_samples"),
)
_LESSONS = (
    *("num_hidden_layers", "first_train_length", "grow_at", "partial_results"),
    *("balance", "least_push", "stack_texts", "stack_actions_from"),
    *("balance_ends", "stack_actions_start", "optimizer", "muon_learning_rate", "weight_decay"),
    *("entropy", "noise"),
)
"""Shown besides where more is taught than the answer."""


def choose(outcomes: Mapping[Path, RunOutcome]) -> Path | None:
    """The run whose model goes with the card: of the stack transformers the one best on the trained lengths.

    `mlm` before `alm`; the paper's stack first, or where more is taught than in the paper, the recurrent one. Nothing
    of the test lengths has a say in it.

    Returns:
        Its folder, or None if there is no stack transformer among the runs.
    """
    stacks = {folder: outcome for folder, outcome in outcomes.items() if outcome.settings.model in STACKS}

    def merit(folder: Path) -> tuple[Any, ...]:
        outcome, run = stacks[folder], stacks[folder].settings
        first = run.model == ("recurrent_stack" if run.is_taught else "stack")
        as_declared = run.encoding == "none" and not run.departures
        return run.layout == "mlm", first, as_declared, outcome.trained_length_accuracy, -outcome.losses[-1]

    return max(stacks, key=merit, default=None)


def card(outcomes: Mapping[Path, RunOutcome]) -> Card:
    """The card of a task, with all of its runs of one preset."""
    first = next(iter(outcomes.values())).settings
    task, preset = first.task, first.preset
    folder = choose(outcomes)
    model = None if folder is None else load_model(folder / "model")
    chosen = None if folder is None else outcomes[folder].settings
    groups = grouped(outcomes.values())
    measured = [m for group, members in groups.items() for m in measurements(task, group, members)]
    by_length = [
        {"setting": _setting(group, members), "accuracy": accuracy_by_length(members)}
        for group, members in groups.items()
    ]
    runs = [outcome.settings for outcome in outcomes.values()]
    trained = {run.max_train_length for run in runs}
    anew = [outcome for outcome in outcomes.values() if outcome.restarts]
    causal = chosen is not None and chosen.layout == "alm"
    return Card(
        name=f"stack-{task.replace('_', '-')}{'' if preset == 'cpu' else f'-{preset}'}",
        outcomes=list(outcomes.values()),
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in outcomes.values()),  # one core a run
        measured=measured,
        text={
            "task": task,
            "preset": preset,
            "trained": max(trained),
            "shorter": min(trained) if min(trained) < max(trained) else None,
            "shortest": TEST_LENGTHS[0],
            "longest": TEST_LENGTHS[1],
            "chosen": chosen,
            "beside_vanilla": any(run.model == "vanilla" for run in runs),
            "papers_task": task in PAPERS_TASKS,
            "bracketed": task in BRACKETED,
            "growing": any(run.first_train_length for run in runs),
            "stack_losses": any(run.balance or run.least_push for run in runs),
            "entropy": any(run.entropy for run in runs),
            "actions_from_tokens": {
                run.layout for run in runs if run.model in STACKS and run.stack_actions_from == "layer_input"
            },
            "alm_beside": any(run.layout == "alm" for run in runs),
            "five_layers": any(run.num_hidden_layers == 5 for run in runs if run.model in TRANSFORMERS),
            "others": any(run.model != "recurrent_stack" for run in runs),
            "departures": "".join(f", {k} {v}" for k, v in chosen.departures.items()) if chosen else "",
            "table": task_table(measured).markdown(),
            "runs": len(outcomes),
            "anew": len(anew),
            "anew_and_learned": sum(min(outcome.losses) < outcome.settings.learned_loss for outcome in anew),
            "levels": _levels(task),
            "nesting": nesting_table(groups),
            "head": "CausalLM" if causal else "MaskedLM",
            "example": _example(task, causal),
        },
        model_class="none" if model is None else type(model).__name__,
        task="text-generation" if causal else "fill-mask",
        tags=["stack-attention", "formal-languages", "length-generalization", "interpretability"],
        headline=[SCORE],
        figures=figures_of(task, groups, model),
        files={"accuracy_by_length.json": json.dumps(by_length) + "\n"},
        checkpoint=None if model is None else Checkpoint(model, formal_language_tokenizer(task)),
    )


def measurements(task: str, group: Group, members: list[RunOutcome]) -> list[Measurement]:
    """The figures of a group over its seeds."""

    def measure(metric: str, values: list[float], paper: PaperFigure | None = None) -> Measurement:
        return measurement(DATASET, task, _setting(group, members), metric, values, paper)

    paper = paper_figure_beside(task, group, members)
    longest = max(members[0].settings.test_lengths)
    at_longest = [outcome.accuracy_by_length[str(longest)] for outcome in members]
    return [
        measure(SCORE, [outcome.accuracy for outcome in members], paper),
        measure(f"{SCORE}_at_trained_lengths", [outcome.trained_length_accuracy for outcome in members]),
        measure("training_seconds", [outcome.seconds for outcome in members]),
        *([measure(LONGEST, at_longest)] if longest > TEST_LENGTHS[1] else []),
    ]


def _setting(group: Group, members: list[RunOutcome]) -> dict[str, Any]:
    layout, model, encoding, departures = group
    run = members[0].settings
    shown, lessons = (
        {name: getattr(run, name) for name in names if name not in without_effect(model)}
        for names in (_SHOWN, _LESSONS)
    )
    return {
        **{"layout": layout, "model": model, "encoding": encoding, "preset": run.preset},
        **(shown | json.loads(departures)),
        **({"lessons": lessons} if run.is_taught else {}),
        "parameters": members[0].parameters,
        "seeds": [outcome.settings.seed for outcome in members],
        "steps_done": [outcome.steps for outcome in members],
        "restarts": [outcome.restarts for outcome in members],
    }


def _levels(task: str) -> str:
    """The scores of three to six levels of brackets in words; empty for a task without any."""
    if task not in BRACKETED:
        return ""
    *scores, last = (f"{100 * accuracy_of_levels(task, levels):.1f}" for levels in (3, 4, 5, 6))
    return f"{', '.join(scores)} and {last}"


def _example(task: str, causal: bool) -> str:
    symbols, answers = example_of(task)
    return f"{' '.join(symbols)} {'[SEP]' if causal else ' '.join(['[MASK]'] * answers)}"


# ------------------------------------------------------------------------------------------------------------- tables


def task_table(measured: Iterable[Measurement]) -> Table:
    """Tables 1 and 2 of one task: a row a model, ours beside the paper's."""
    table = Table(["layout", "model", "encoding", "ours", "paper", ">steps", ">seeds"])
    for entry in measured:
        if entry.metric == SCORE:
            setting = entry.setting
            model = " ".join([setting["model"], *(f"{k}={setting[k]}" for k in NOT_THE_PAPERS if k in setting)])
            own = [setting["layout"], model, setting["encoding"], percent(entry), percent(entry.paper)]
            table.rows.append([*own, steps_in_words(setting["steps_done"]), str(entry.n)])
    return table


def table(outcomes: Iterable[RunOutcome]) -> Table:
    """Tables 1 and 2 for the terminal: per cent right on lengths 41 to 100, ours beside the paper's."""
    outcomes = list(outcomes)
    columns = ["task", "layout", "model", "encoding", "departs", "ours", "paper", "trained lengths", "seeds"]
    shown = Table([*columns, ">steps", ">time a run"])
    for task in dict.fromkeys(outcome.settings.task for outcome in outcomes):
        for group, members in grouped(o for o in outcomes if o.settings.task == task).items():
            score, trained, *_ = measurements(task, group, members)
            departures = ", ".join(f"{name} {value}" for name, value in json.loads(group[3]).items())
            shown.rows.append(
                [
                    *(task, *group[:3], departures, percent(score), percent(score.paper), percent(trained)),
                    ",".join(str(outcome.settings.seed) for outcome in members),
                    steps_in_words(outcome.steps for outcome in members),
                    f"{fmean(outcome.seconds for outcome in members):.0f} s",
                ]
            )
    return shown


def nesting_table(groups: Mapping[Group, list[RunOutcome]]) -> str:
    """The accuracy over the texts of the score by their nesting, of the groups that measured it; else empty."""
    measured = {group: own for group, own in groups.items() if all(outcome.accuracy_by_nesting for outcome in own)}
    if not measured:
        return ""
    depths = sorted({int(depth) for own in measured.values() for depth in own[0].accuracy_by_nesting})
    table = Table(["layout", "model", *(f">{depth}" for depth in depths)])
    for (layout, model, *_), own in measured.items():
        shares = [
            [o.accuracy_by_nesting[str(depth)][0] for o in own if str(depth) in o.accuracy_by_nesting]
            for depth in depths
        ]
        table.rows.append([layout, model, *(f"{100 * fmean(share):.0f}" if share else "" for share in shares)])
    return table.markdown()
