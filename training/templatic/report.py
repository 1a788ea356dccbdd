"""From the outcomes of the runs to the figures of results.json, a card, and Table 3 with ours in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BartForConditionalGeneration, GPT2LMHeadModel, MambaForCausalLM

from hf_mech.hub import Measurement, PaperFigure, Results, measurement
from hf_mech.programs.templatic.tasks import SPLITS, task_named

from ..engine.card import Card, Checkpoint
from ..engine.run import by_setting
from ..engine.tables import Table, percent, steps_in_words
from .figures import figures_of
from .run import DATASET, RunOutcome
from .settings import MODELS, PAPER, PAPERS_TASK, Run

METRIC = "exact_match"
NAME = "templatic-baselines"
TABLES = {"templatic-table-3": NAME, "templatic-single": f"{NAME}-1-shot-single"}
"""The tables of docs/results, and the card that each comes from."""
HEADS = {name: split.short_name for name, split in SPLITS.items()}
"""The heading of each split's column."""

_NOT_THE_PAPERS = {"hidden", "layers", "filter", "heads", "state", "kernel", "data_seed", "num_train", "num_eval"}
"""Settings whose departure from the preset makes another model or task: such a run has no figure of the paper."""

_SHOWN = (
    *("batch_size", "layers", "hidden", "filter", "heads", "initializer_range", "learning_rate"),
    *("scheduler", "warmup_steps", "max_grad_norm", "dropout", "mixed_precision", "eval_prompts"),
)
_APART = ("ood_lexical", "ood_cons_len_7")
"""Splits that come apart from `dev`: words that only echo prompts have shown, and lengths that were not trained."""
_CLASSES = {"transformer": BartForConditionalGeneration, "nano_gpt": GPT2LMHeadModel, "mamba": MambaForCausalLM}
"""The classes of those models that are transformers' own, whose checkpoints load anywhere."""


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """A key that sorts outcomes by task and preset, and then as Table 3 has its models."""
    run = outcome.settings
    return (
        run.task,
        run.preset,
        MODELS.index(run.model),
        bool(run.departures),
        json.dumps(run.departures, sort_keys=True),
        run.seed,
    )


def measurements(outcomes: Iterable[RunOutcome]) -> list[Measurement]:
    """Every setting's figures over its seeds, in the order of Table 3."""
    return [entry for members in by_setting(outcomes, order) for entry in _of_group(members)]


def choose(outcomes: Mapping[Path, RunOutcome]) -> Path | None:
    """The folder of the run whose model is transformers' own and best on `dev`; None if there is none."""
    own = [folder for folder, outcome in outcomes.items() if outcome.settings.model in _CLASSES]
    return max(own, key=lambda folder: outcomes[folder].exact_match["dev"], default=None)


def card(outcomes: Mapping[Path, RunOutcome]) -> Card:
    """The card of a task and preset. Its name tells a task that is not the paper's, and a preset other than `cpu`."""
    first = next(iter(outcomes.values())).settings
    task, preset = first.task, first.preset
    own, measured, folder = list(outcomes.values()), measurements(outcomes.values()), choose(outcomes)
    chosen = outcomes[folder].settings if folder else None
    parts = [NAME, *([] if task == PAPERS_TASK else [task.replace("_", "-")]), *([] if preset == "cpu" else [preset])]
    counts = sorted({count for outcome in own for count in outcome.measured.values()})
    same = f"{counts[0]:,} of each split, the same for every model but for `train`"
    seeds = sorted({entry.n for entry in measured})
    return Card(
        name="-".join(parts),
        outcomes=own,
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in own),  # one core a run
        measured=measured,
        text={
            "task": task,
            "preset": preset,
            "counts": _listed(task_named(task).trained_counts),
            "lengths": _listed(task_named(task).trained_lengths),
            "words": task_named(task).num_words,
            "hidden": _values(own, "hidden"),
            "steps": _values(own, "steps"),
            "batches": _values(own, "batch_size"),
            "table": table3(measured).markdown(),
            "prompts": same if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,} of each split",
            "seeds": "One seed,"
            if seeds == [1]
            else f"{' or '.join(map(str, seeds))} seeds, mean ± standard deviation,",
            "chosen": chosen,
            "auto": "AutoModelForSeq2SeqLM" if chosen and chosen.model == "transformer" else "AutoModelForCausalLM",
        },
        model_class=_CLASSES[chosen.model].__name__ if chosen else "none",
        task="text-generation",
        tags=["templatic-generation", "in-context-learning", "out-of-distribution"],
        headline=[METRIC],
        figures=figures_of(own, [entry for entry in measured if entry.metric == METRIC], HEADS),
        checkpoint=_checkpoint(chosen, folder / "model") if folder and chosen else None,
    )


def table3(measured: Iterable[Measurement]) -> Table:
    """Two rows a model: ours, the completions that are exactly right in per cent of each split, and the paper's.

    Models come in the order of Table 3. Settings of one model that differ have rows of their own.
    """
    rows: dict[tuple[int, str], dict[str, Measurement]] = {}
    for entry in measured:
        if entry.metric == METRIC:
            own = {name: value for name, value in entry.setting.items() if name != "split"}
            rows.setdefault((MODELS.index(own["model"]), repr(own)), {})[entry.setting["split"]] = entry
    shown = Table(["model", *(f">{head}" for head in HEADS.values()), ">steps"])
    for (number, _), cells in sorted(rows.items(), key=lambda row: row[0][0]):
        done = steps_in_words(next(iter(cells.values())).setting["steps_done"])
        ours = [cells.get(split) for split in HEADS]
        shown.rows.append([MODELS[number], *(percent(m, spread=bool(m and m.n > 1 and m.std)) for m in ours), done])
        paper = [percent(entry.paper if entry else None, spread=False) for entry in ours]
        if any(paper):
            shown.rows.append(["*in the paper*", *paper, ""])
    return shown


def table(finished: Iterable[RunOutcome]) -> Table:
    """Table 3 of finished runs."""
    return table3(measurements(finished))


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results by name; one without rows where there is no card."""
    files = {table: cards / card / "results.json" for table, card in TABLES.items()}
    return {
        table: table3(Results.load(file).results if file.exists() else []).markdown() for table, file in files.items()
    }


def summary(cards: Path) -> list[list[str]]:
    """One row: the model that is best on `dev` of the task that small models learn, and two splits where it is not."""
    file = cards / TABLES["templatic-single"] / "results.json"
    scores: dict[str, dict[str, Measurement]] = {}
    for entry in Results.load(file).results if file.exists() else []:
        if entry.metric == METRIC:
            own = {name: value for name, value in entry.setting.items() if name != "split"}
            scores.setdefault(json.dumps(own, sort_keys=True), {})[entry.setting["split"]] = entry
    if not scores:
        return []
    best = max(scores.values(), key=lambda splits: splits["dev"].mean)
    task, model = best["dev"].config, best["dev"].setting["model"]
    shown = [percent(best[split], spread=False) for split in ("dev", *_APART)]
    names = "; ".join(HEADS[split] for split in _APART)
    return [
        [
            f"[Learned baselines](docs/results/templatic.md), `{task}`, `{model}`",
            f"per cent completed exactly, `dev` ({names})",
            *(f"{shown[0]} ({'; '.join(shown[1:])})", "other tasks", "task, width, layers, steps"),
        ]
    ]


def _checkpoint(run: Run, folder: Path) -> Checkpoint:
    return Checkpoint(_CLASSES[run.model].from_pretrained(folder), AutoTokenizer.from_pretrained(folder))


def _of_group(members: Sequence[RunOutcome]) -> list[Measurement]:
    """The figures of runs that differ in their seeds alone: one a split, and the training time."""
    run = members[0].settings
    setting = {
        "model": run.model,
        "preset": run.preset,
        **{name: getattr(run, name) for name in _SHOWN},
        "departures": run.departures,  # from the preset
        "parameters": members[0].parameters,
        "seeds": [outcome.settings.seed for outcome in members],
        "steps_done": [outcome.steps for outcome in members],
    }

    def measure(metric: str, split: str | None, values: list[float], paper: PaperFigure | None = None) -> Measurement:
        own = setting | ({"split": split} if split else {})
        return measurement(DATASET, run.task, own, metric, values, paper)

    papers = not run.departures.keys() & _NOT_THE_PAPERS
    of_splits = [
        measure(
            METRIC,
            split,
            [outcome.exact_match[split] for outcome in members],
            PAPER.figure(METRIC, task=run.task, model=run.model, split=split) if papers else None,
        )
        for split in members[0].measured
    ]
    return [*of_splits, measure("training_seconds", None, [outcome.seconds for outcome in members])]


def _values(outcomes: Sequence[RunOutcome], name: str) -> str:
    """The value of a setting in all runs, or the smallest and the largest: `2,500 to 5,000`."""
    found = sorted({getattr(outcome.settings, name) for outcome in outcomes})
    return " to ".join(f"{value:,}" for value in dict.fromkeys((found[0], found[-1])))


def _listed(numbers: Sequence[int]) -> str:
    """Numbers as a list in words.

    >>> _listed((1, 2, 4)), _listed((1,))
    ('1, 2 and 4', '1')
    """
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last
