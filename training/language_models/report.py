"""From the outcomes of the runs to the figures of results.json, the paper's Table 3 with ours in it, and a card."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure
from transformers import AutoModelForCausalLM, AutoTokenizer

from hf_mech.hub import Measurement, PaperFigure, Results, measurement
from hf_mech.languages.figures import LengthCurve, length_curves_figure, perplexity_figure
from hf_mech.languages.nested_text import BEYOND, DEEPEST, TRAINED_DEPTH

from ..engine.card import Card, Checkpoint
from ..engine.tables import Table, number, percent
from .models import FAMILIES
from .nested import CLOSES, CORPUS, MAIN_MOVES, PARSES
from .run import RunOutcome
from .settings import FORMS, OBJECTIVES, PAPER, STARTS, Run

NAME = "stack-lm"
SCORE = "test_perplexity"
_STARTS = {
    "scratch": "from scratch",
    "pretrained": "pretrained here",
    "checkpoint": "from a checkpoint",
    "pretraining": "the pretraining itself",
}
_OBJECTIVES = {"mlm": "MLM", "clm": "ALM"}


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """The order of Table 3."""
    run = outcome.settings
    checkpoint = run.checkpoint or "" if run.start == "checkpoint" else ""
    place = (STARTS.index(run.start), OBJECTIVES.index(run.objective), run.multi_pop, FORMS.index(run.form))
    departures = departures_of(run)
    return *place, checkpoint, bool(departures), json.dumps(departures, sort_keys=True), run.seed


def departures_of(run: Run) -> dict[str, Any]:
    """The departures from the preset, but for the number of pops, which every setting names."""
    return {name: value for name, value in run.departures.items() if name != "multi_pop"}


def measurements(outcomes: Iterable[RunOutcome]) -> list[Measurement]:
    """Every setting's figures over its seeds, in the order of Table 3."""
    cells: dict[tuple[Any, ...], list[RunOutcome]] = {}
    for outcome in sorted(outcomes, key=order):
        cells.setdefault(order(outcome)[:-1], []).append(outcome)
    return [entry for cell in cells.values() for entry in _of_cell(cell)]


def choose(outcomes: Mapping[Path, RunOutcome]) -> Path:
    """The folder of the card's checkpoint: lowest validation perplexity, causal first, with a stack if any has one.

    A baseline with stacks between its layers comes last.
    """

    def merit(folder: Path) -> tuple[Any, ...]:
        run, perplexities = outcomes[folder].settings, outcomes[folder].validation_perplexity
        return run.objective != "clm", run.form == "between", run.form == "vanilla", min(perplexities)

    return min(outcomes, key=merit)


def card(outcomes: Mapping[Path, RunOutcome]) -> Card:
    """The card of the runs on one corpus, tokenizer and preset."""
    folder = choose(outcomes)
    chosen, run = outcomes[folder], outcomes[folder].settings
    measured = measurements(outcomes.values())
    causal = run.objective == "clm"
    family = FAMILIES[run.objective]
    model = (family.model if run.decoder == "gpt2" else AutoModelForCausalLM).from_pretrained(folder / "model")
    if any(entry.metric == PARSES for entry in measured):
        figures = {"by_depth.png": (depth_figure(measured), DEPTH_CAPTION)}
    else:
        figures = {"validation_perplexity.png": (curves_of(list(outcomes.values())), CAPTION)}
    return Card(
        name=card_name(chosen),
        outcomes=list(outcomes.values()),
        measured=measured,
        text={
            "corpus": _corpus(chosen),
            "pretrained": any(outcome.settings.start == "pretrained" for outcome in outcomes.values()),
            "chosen": f"{run.objective}, {_STARTS[run.start]}, {run.form}, seed {run.seed}",
            "objective": "causal" if causal else "masked",
            "preset": run.preset,
            "table": (nested_table(measured) if chosen.nested else table3(measured)).markdown(),
            "nested": bool(chosen.nested),
            "decoder": run.decoder,
            "auto": "AutoModelForCausalLM" if causal else "AutoModelForMaskedLM",
        },
        model_class=type(model).__name__,
        task="text-generation" if causal else "fill-mask",
        tags=["stack-attention", "language-modeling"],
        headline=[SCORE],
        figures=figures,
        checkpoint=None
        if run.form == "between"  # its weights fit no class of transformers
        else Checkpoint(model, AutoTokenizer.from_pretrained(folder / "model")),
    )


def card_name(outcome: RunOutcome) -> str:
    """`stack-lm`, then the corpus's name if it is not the standard library, and the preset if it is not `cpu`."""
    corpus, preset = outcome.data, outcome.settings.preset
    own = [] if corpus["corpus"] == "python_stdlib" else [corpus["config"] or corpus["corpus"].rpartition("/")[2]]
    return "-".join([NAME, *own, *([] if preset == "cpu" else [preset])])


def table3(measured: Iterable[Measurement]) -> Table:
    """The paper's Table 3: start and objective down, forms across, test perplexities and the paper's."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for entry in measured:
        setting = entry.setting
        if entry.metric == SCORE and setting["start"] != "pretraining":
            more = "" if setting["multi_pop"] == 1 else f", {setting['multi_pop']} pops"
            more += "".join(f", {name} {value}" for name, value in setting.get("departures", {}).items())
            cells = rows.setdefault((_STARTS[setting["start"]] + more, _OBJECTIVES[setting["objective"]]), {})
            cells[setting["form"]] = f"{entry.mean:.2f} ± {entry.std:.2f}"
            if entry.paper is not None:
                cells[setting["form"]] += f" (paper: {entry.paper.mean:.2f} ± {entry.paper.std:.2f})"
    forms = ("vanilla", "stack", "gated")
    body = [[start, objective, *(cells.get(form, "") for form in forms)] for (start, objective), cells in rows.items()]
    return Table(["model", "task", ">vanilla", ">stack", ">stack with gate"], body)


def nested_table(measured: Iterable[Measurement]) -> Table:
    """A row a form: perplexity, and on nested texts what [`~training.language_models.nested.measure`] measures."""
    forms: dict[str, dict[str, list[Measurement]]] = {}
    for entry in measured:
        name = ", ".join([entry.setting["form"], *(f"{k} {v}" for k, v in entry.setting.get("departures", {}).items())])
        forms.setdefault(name, {}).setdefault(entry.metric, []).append(entry)
    trained, deeper = range(1, TRAINED_DEPTH + 1), range(TRAINED_DEPTH + 1, DEEPEST + 1)
    heads = [f"{what}, depth {depths[0]} to {depths[-1]}" for what in _SHARES.values() for depths in (trained, deeper)]
    columns = [">test perplexity", ">beyond", *(f">{head}" for head in heads), ">right word, test", ">beyond training"]
    shown = Table(["form", *columns, ">parameters", ">seconds", ">seeds"])
    for name, found in forms.items():
        score = found[SCORE][0]
        shares = [
            percent(_mean_of(found.get(metric, []), [str(depth) for depth in depths]), spread=score.n > 1)
            for metric in _SHARES
            for depths in (trained, deeper)
        ]
        moves = [
            percent(_mean_of(found.get(MAIN_MOVES, []), [split]), spread=score.n > 1) for split in ("test", BEYOND)
        ]
        beyond = _mean_of(found.get("perplexity", []), [BEYOND])
        shown.rows.append(
            [
                *(_NAMES.get(name, name), f"{score.mean:.3f} ± {score.std:.3f}"),
                f"{beyond.mean:.3f} ± {beyond.std:.3f}" if beyond else "",
                *shares,
                *moves,
                *(f"{found['parameters'][0].mean:,.0f}", number(found["seconds"][0], spread=False), str(score.n)),
            ]
        )
    return shown.without_empty_columns()


_SHARES = {CLOSES: "closes right", PARSES: "parses"}
_NAMES = {
    "vanilla": "without a stack",
    "stack": "`add_stack(gate=False)`",
    "gated": "`add_stack()`",
    "between": "stacks between the layers",
}


def _mean_of(entries: Sequence[Measurement], places: Sequence[str]) -> Measurement | None:
    """The mean over depths, or splits, of every seed; None if one is missing."""
    found = [entry for entry in entries if entry.setting["at"] in places]
    if len(found) < len(places):
        return None
    first = found[0]
    values = [fmean(seed) for seed in zip(*(entry.values for entry in found), strict=True)]
    return measurement(first.task, first.config, first.setting, first.metric, values)


DEPTH_CAPTION = (
    "JSON by depth; mean over seeds, and a band from the worst to the best. Closes right: the bracket, by its depth. "
    "Parses: a document of that depth whose end the model writes"
)


def depth_figure(measured: Sequence[Measurement]) -> Figure:
    """How brackets close, and which documents parse, by depth and form."""
    panels: dict[str, dict[str, LengthCurve]] = {}
    for metric in (CLOSES, PARSES):
        forms: dict[str, dict[int, tuple[float, ...]]] = {}
        for entry in measured:
            if entry.metric == metric:
                name = _NAMES[entry.setting["form"]].replace("`", "")
                forms.setdefault(name, {})[int(entry.setting["at"])] = tuple(entry.values)
        panels[_SHARES[metric]] = {name: LengthCurve(shares) for name, shares in forms.items()}
    axes = ("depth", "share")
    return length_curves_figure(panels, trained=TRAINED_DEPTH, test=(TRAINED_DEPTH + 1, DEEPEST), axes_labels=axes)


def table(finished: Iterable[RunOutcome]) -> Table:
    """Table 3 of finished runs, or the table of nested texts."""
    outcomes = list(finished)
    nested = any(outcome.nested for outcome in outcomes)
    return (nested_table if nested else table3)(measurements(outcomes))


def results(cards: Path) -> dict[str, str]:
    """The tables of docs/results: Table 3 from the card of the standard library, and that of JSON."""
    found = {}
    for name, card_of, table_of in (("table-3", NAME, table3), ("json", f"{NAME}-json-nested", nested_table)):
        file = cards / card_of / "results.json"
        found[f"language-models-{name}"] = table_of(Results.load(file).results if file.exists() else []).markdown()
    return found


def summary(cards: Path) -> list[list[str]]:
    """A row an objective: models from scratch, with and without the stack."""
    file = cards / NAME / "results.json"
    scores: dict[str, dict[str, str]] = {}
    for entry in Results.load(file).results if file.exists() else []:
        setting = entry.setting
        usual = setting["start"] == "scratch" and setting["multi_pop"] == 1 and "departures" not in setting
        if entry.metric == SCORE and usual:
            figure = f"{entry.mean:.1f} ± {entry.std:.1f}"
            scores.setdefault(entry.setting["objective"], {})[entry.setting["form"]] = figure
    return [
        [
            f"[Stack attention](docs/results/language_models.md), {_OBJECTIVES[objective]}, Python's standard library",
            "test perplexity from scratch (without the stack)",
            *(f"{forms['stack']} ({forms['vanilla']})", "other corpora", "in everything"),
        ]
        for objective, forms in scores.items()
        if {"stack", "vanilla"} <= forms.keys()
    ]


def _of_cell(outcomes: Sequence[RunOutcome]) -> list[Measurement]:
    run, data = outcomes[0].settings, outcomes[0].data
    setting = {
        **{name: getattr(run, name) for name in ("start", "objective", "form", "multi_pop", "preset", "learning_rate")},
        "train_blocks": data["blocks"]["pretraining" if run.start == "pretraining" else "train"],
        "vocabulary": data["vocabulary"],
        "corpus": data["digest"][:12],
    }
    if run.decoder != "gpt2":
        setting["decoder"] = run.decoder
    if departures := departures_of(run):
        setting["departures"] = departures
    if run.start == "checkpoint":
        setting["checkpoint"] = run.checkpoint

    def measure(metric: str, values: Iterable[float], paper: PaperFigure | None = None, **more: str) -> Measurement:
        return measurement(data["corpus"], data["config"], setting | more, metric, values, paper)

    measured = [
        measure(SCORE, [o.test_perplexity for o in outcomes], _published(run, data)),
        measure("validation_perplexity", [min(o.validation_perplexity) for o in outcomes]),
        measure("validation_perplexity_before", [o.perplexity_before for o in outcomes]),
        measure("best_epoch", [o.best_epoch for o in outcomes]),
        measure("epochs", [o.epochs for o in outcomes]),
        measure("parameters", [o.parameters for o in outcomes]),
        measure("seconds", [o.seconds for o in outcomes]),
    ]
    differences = [o.logits_difference for o in outcomes if o.logits_difference is not None]
    if differences:
        measured.append(measure("logits_difference_before", differences))
    for metric, places in outcomes[0].nested.items():
        measured += [measure(metric, [o.nested[metric][at] for o in outcomes], at=at) for at in places]
    return measured


def _published(run: Run, data: dict[str, Any]) -> PaperFigure | None:
    """The paper's figure, if it has trained on this corpus."""
    if run.start not in ("scratch", "checkpoint") or run.multi_pop != 1:
        return None
    name = f"{data['corpus']}/{data['config']}".lower()
    corpus = next((corpus for corpus in PAPER.values("corpus") if corpus in name), None)
    start = "scratch" if run.start == "scratch" else "pretrained"
    return PAPER.figure(SCORE, corpus=corpus, start=start, objective=run.objective, form=run.form)


def _corpus(outcome: RunOutcome) -> str:
    data = outcome.data
    if data["corpus"] == CORPUS:
        return f"generated texts with nesting (`{data['corpus']}`, `{data['config']}`)"
    if data["corpus"] == "python_stdlib":
        return f"the sources of Python's standard library ({data['config']})"
    return f"`{data['corpus']}`" + (f", `{data['config']}`" if data["config"] else "")


# -------------------------------------------------------------------------- the picture: validation perplexity by epoch


CAPTION = (
    "Perplexity on validation by epoch: mean over seeds, and one standard deviation as shade. Fine-tuned models begin "
    "at epoch 0, before the first step"
)
_TITLES = {"scratch": "from scratch", "pretrained": "pretrained here", "checkpoint": "from a checkpoint"}


def curves_of(outcomes: Sequence[RunOutcome]) -> Figure:
    """A panel for every start, objective and departure from the preset; fine-tuned models from before their first step.

    Departures that all runs share have no place in the titles.
    """
    shown = [outcome for outcome in outcomes if outcome.settings.start != "pretraining"]
    shared = set.intersection(*(set(outcome.settings.departures.items()) for outcome in shown)) if shown else set()
    panels: dict[tuple[str, str, str], dict[str, list[list[float]]]] = {}
    for outcome in shown:
        run = outcome.settings
        before = [] if run.start == "scratch" else [outcome.perplexity_before]
        departures = "".join(
            f", {name} {value}" for name, value in run.departures.items() if (name, value) not in shared
        )
        forms = panels.setdefault((run.start, run.objective, departures), {})
        forms.setdefault(run.form, []).append(before + outcome.validation_perplexity)
    order = sorted(panels, key=lambda panel: (STARTS.index(panel[0]), OBJECTIVES.index(panel[1]), panel[2]))
    return perplexity_figure(
        {
            f"{'MLM' if objective == 'mlm' else 'ALM'}, {_TITLES[start]}{departures}": (
                1 if start == "scratch" else 0,
                panels[start, objective, departures],
            )
            for start, objective, departures in order
        }
    )
