"""From the outcomes of the runs to the figures of results.json, a card for each scenario, and Tables 2 and 3."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_mech.hub import Measurement, Results, measurement
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

from ..engine.card import Card, Checkpoint
from ..engine.run import by_setting
from ..engine.tables import Table, departures_in_words, number, percent, steps_in_words
from .figures import figures_of, in_words, pictures_of
from .run import RunOutcome, means
from .settings import MODELS, PEER, POSITIONS, SCENARIOS, Run

METRICS = ("return", "success", "length")
WAYS = ("argmax", "sampled")
BASELINE = ("baseline", "on")
"""What the others are compared with: one token an action, with positions."""
_SHOWN = (
    *("policy", "noise", "hold", "episodes", "height", "width", "layers", "heads", "hidden", "context", "embd_pdrop"),
    *("resid_pdrop", "attn_pdrop", "return_scale", "batch_size", "learning_rate", "weight_decay", "beta2"),
    *("warmup_steps", "scheduler", "max_grad_norm", "mixed_precision", "target_return", "eval_episodes"),
)


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """Scenario by scenario, the baseline first, with positions before without, the preset before its departures."""
    run = outcome.settings
    departures = json.dumps(run.departures, sort_keys=True)
    places = list(SCENARIOS).index(run.scenario), (*MODELS, PEER).index(run.model), POSITIONS.index(run.positions)
    return run.preset, *places, bool(run.departures), departures, run.seed


def measurements(outcomes: Iterable[RunOutcome]) -> list[Measurement]:
    """Every setting's figures over its seeds, and the differences from the baseline."""
    groups = by_setting(outcomes, order)
    every = [outcome for members in groups for outcome in members]
    return [entry for members in groups for entry in _of_group(members, _baseline(members[0], every))]


def _baseline(outcome: RunOutcome, outcomes: Iterable[RunOutcome]) -> dict[int, RunOutcome]:
    """The baseline's runs on the same data and episodes, by seed; none for the baseline itself."""
    run = outcome.settings

    def same(other: Run) -> bool:
        alike = (other.scenario, other.preset, other.departures) == (run.scenario, run.preset, run.departures)
        return alike and (other.model, other.positions) == BASELINE != (run.model, run.positions)

    return {one.settings.seed: one for one in outcomes if same(one.settings)}


def _of_group(members: Sequence[RunOutcome], baseline: Mapping[int, RunOutcome]) -> list[Measurement]:
    run = members[0].settings
    seeds = [outcome.settings.seed for outcome in members]
    setting = {
        "scenario": run.scenario,
        "model": run.model,
        "positions": run.positions,
        "preset": run.preset,
        **{name: getattr(run, name) for name in _SHOWN},
        "departures": run.departures,
        "parameters": members[0].parameters,
        "seeds": seeds,
        "steps_done": [outcome.steps for outcome in members],
        "data_steps": [outcome.data_steps for outcome in members],
        "data_return": [sum(one.data_returns) / len(one.data_returns) for one in members],
        "data_success": [one.data_success for one in members],
    }
    task = "hf_mech/vizdoom_trajectories" if run.place.builder else run.place.environment
    config = f"{run.place.builder or run.scenario}-{run.policy}"

    def measure(metric: str, values: Sequence[float], **more: Any) -> Measurement:
        return measurement(task, config, setting | more, metric, values)

    found = []
    for way in WAYS:
        own = [means(getattr(outcome, way)) for outcome in members]
        found += [measure(f"{metric}_{way}", [one[metric] for one in own]) for metric in METRICS]
        if pairs := [
            (one, means(getattr(baseline[s], way))) for one, s in zip(own, seeds, strict=True) if s in baseline
        ]:
            shared = {"seeds": [seed for seed in seeds if seed in baseline]}
            for metric in METRICS[:2]:
                values = [one[metric] - other[metric] for one, other in pairs]
                found.append(measure(f"{metric}_{way}_beyond_baseline", values, **shared))
    return [*found, measure("training_seconds", [outcome.seconds for outcome in members])]


def table(finished: Iterable[RunOutcome]) -> Table:
    """Tables 2 and 3 of finished runs."""
    return returns_table(measurements(finished))


def returns_table(measured: Iterable[Measurement]) -> Table:
    """A row for each model: mean return, successes and length by argmax, and return and successes when sampling."""
    rows: dict[str, dict[str, Measurement]] = {}
    for entry in measured:
        own = {name: value for name, value in entry.setting.items() if name != "seeds"}
        rows.setdefault(json.dumps(own, sort_keys=True), {})[entry.metric] = entry
    heads = ["return", "solved, %", "decisions", "return, sampled", "solved, sampled, %", "return of the data"]
    heads += ["seeds x episodes", "steps of data", "training steps"]
    shown = Table(["scenario", "model", "positions", "departures", *(f">{head}" for head in heads)])
    for cells in rows.values():
        own = cells["return_argmax"].setting
        several = cells["return_argmax"].n > 1
        data_return = sum(own["data_return"]) / len(own["data_return"])
        shown.rows.append(
            [
                SCENARIOS[own["scenario"]].title,
                own["model"],
                own["positions"],
                departures_in_words(_departures(cells["return_argmax"])),
                _return(cells["return_argmax"]),
                percent(cells["success_argmax"], spread=several),
                number(cells["length_argmax"], spread=several),
                _return(cells["return_sampled"]),
                percent(cells["success_sampled"], spread=several),
                f"{data_return:.2f}",
                f"{cells['return_argmax'].n} x {own['eval_episodes']}",
                steps_in_words(own["data_steps"]),
                steps_in_words(own["steps_done"]),
            ]
        )
    return shown


def intervals_table(measured: Iterable[Measurement]) -> Table:
    """Means with 95 % intervals over the seeds, and the differences from the baseline; no row for a single seed."""
    shown = Table(
        ["scenario", "model", "positions", *(f">{head}" for head in ("return", "beyond the baseline")), ">solved, %",
         ">beyond the baseline, %", ">seeds"]
    )  # fmt: skip
    rows: dict[str, dict[str, Measurement]] = {}
    for entry in measured:
        own = {name: value for name, value in entry.setting.items() if name != "seeds"}
        rows.setdefault(json.dumps(own, sort_keys=True), {})[entry.metric] = entry
    for cells in rows.values():
        first = cells["return_argmax"]
        if first.n < 2 or _departures(first):
            continue
        own = first.setting
        beyond = {name: cells.get(f"{name}_argmax_beyond_baseline") for name in METRICS[:2]}
        shown.rows.append(
            [
                SCENARIOS[own["scenario"]].title,
                own["model"],
                own["positions"],
                in_words(first.values, digits=2),
                in_words(beyond["return"].values, digits=2) if beyond["return"] else "",
                in_words(cells["success_argmax"].values, 100, digits=0, limits=(0, 1)),
                in_words(beyond["success"].values, 100, digits=0) if beyond["success"] else "",
                str(first.n),
            ]
        )
    if shown.rows:
        shown.notes.append(
            "By argmax. 95 % intervals of the mean by Student's t over the seeds, cut at 0 and 100 %. Differences are "
            "of runs of one seed, which share training episodes and held-out episodes."
        )
    return shown


def _departures(entry: Measurement) -> dict[str, object]:
    """How the model departs from the preset's; how many episodes it plays has a column, and makes it no other model."""
    return {name: value for name, value in entry.setting["departures"].items() if name != "eval_episodes"}


def components_table(independent: Iterable[Measurement], autoregressive: Iterable[Measurement]) -> Table:
    """What it brings that a component of an action sees those before it: a row for each model, positions and way.

    Both have the same seeds, training episodes and held-out episodes.
    """
    ways = [f">{way}, %" for way in ("independent", "autoregressive", "difference")]
    shown = Table(["scenario", "model", "positions", "actions", *ways, ">seeds"])
    single = {_compared(entry): entry for entry in independent if not entry.setting["departures"]}
    for entry in autoregressive:
        other = single.get(_compared(entry))
        if not entry.metric.startswith("success_") or entry.metric.endswith("_beyond_baseline") or other is None:
            continue
        shown.rows.append(
            [
                SCENARIOS[entry.setting["scenario"]].title,
                entry.setting["model"],
                entry.setting["positions"],
                "by argmax" if entry.metric == "success_argmax" else "sampled",
                in_words(other.values, 100, digits=0, limits=(0, 1)),
                in_words(entry.values, 100, digits=0, limits=(0, 1)),
                in_words([own - its for own, its in zip(entry.values, other.values, strict=True)], 100, digits=0),
                str(entry.n),
            ]
        )
    if shown.rows:
        shown.notes.append(
            "Held-out episodes that are solved, with 95 % intervals by Student's t over the seeds, cut at 0 and 100 %; "
            "differences are of runs of one seed."
        )
    return shown


def _compared(entry: Measurement) -> tuple[Any, ...]:
    """What two runs have in common that differ in their components alone."""
    own = entry.setting
    return entry.metric, *(str(own[name]) for name in ("scenario", "model", "positions", "preset", "seeds"))


def _return(entry: Measurement) -> str:
    return f"{entry.mean:.2f}" + (f" ± {entry.std:.2f}" if entry.n > 1 else "")


def card(outcomes: Mapping[Path, RunOutcome]) -> Card:
    """The card of a preset and scenario."""
    own, measured = list(outcomes.values()), measurements(outcomes.values())
    folder = choose(outcomes)
    chosen = outcomes[folder].settings
    model = MSATDecisionTransformer.from_pretrained(folder / "model", attn_implementation="eager").eval()
    return Card(
        name=name_of(chosen.preset, chosen.scenario, chosen.component_prediction),
        outcomes=own,
        seconds=sum(one.seconds + one.seconds_of_test + one.seconds_of_data for one in own),
        measured=measured,
        text={
            "run": chosen,
            "title": chosen.place.title,
            "environment": chosen.place.environment,
            "table": returns_table(measured).markdown(),
            "intervals": intervals_table(measured).markdown(),
            "processor": chosen.place.frames,
            "peer": any(one.settings.model == PEER for one in own),
        },
        model_class="MSATDecisionTransformer",
        task="reinforcement-learning",
        tags=["reinforcement-learning", "offline-rl", "decision-transformer", "multi-discrete"]
        + (["vizdoom"] if chosen.place.builder else []),
        headline=["return_argmax", "success_argmax"],
        figures={**figures_of(own), **pictures_of(chosen, model)},
        checkpoint=Checkpoint(model),
    )


def choose(outcomes: Mapping[Path, RunOutcome]) -> Path:
    """The folder of the checkpoint: M-SAT before the others, the peer last, then the best return on the curve's own
    episodes."""

    def rank(folder: Path) -> tuple[bool, bool, bool, bool, float]:
        outcome = outcomes[folder]
        run = outcome.settings
        last = outcome.curve[-1]["return"] if outcome.curve else float("-inf")
        return run.model == "msat", run.model != PEER, not run.departures, run.positions == "on", last

    return max(outcomes, key=rank)


def name_of(preset: str, scenario: str, components: str = "independent") -> str:
    """The name of a card."""
    ends = ("" if preset == "cpu" else f"-{preset}") + ("" if components == "independent" else f"-{components}")
    return f"msat-{scenario.replace('_', '-')}{ends}"


def results(cards: Path) -> dict[str, str]:
    """The tables of each card."""
    found = {}
    for preset in Run.PRESETS:
        for scenario in SCENARIOS:
            entries, name = _entries(cards, preset, scenario), name_of(preset, scenario)
            autoregressive = _entries(cards, preset, scenario, "autoregressive")
            found[name] = returns_table([*entries, *autoregressive]).markdown()
            if SCENARIOS[scenario].builder and preset in ("cpu", "compare"):
                found[f"{name}-intervals"] = intervals_table(entries).markdown()
            if preset == "compare":
                found[f"{name}-components"] = components_table(entries, autoregressive).markdown()
    return found


def summary(cards: Path) -> list[list[str]]:
    """A row for each scenario of ViZDoom: M-SAT of the preset for two cores."""
    rows = []
    for scenario, place in SCENARIOS.items():
        cells = {
            entry.metric: entry
            for entry in _entries(cards, "cpu", scenario)
            if place.builder
            and (entry.setting["model"], entry.setting["positions"]) == ("msat", "on")
            and not _departures(entry)
        }
        if cells:
            name = f"[M-SAT](docs/results/vizdoom.md), {place.title}"
            ours = percent(cells["success_argmax"], spread=cells["success_argmax"].n > 1)
            ours += f" (return {_return(cells['return_argmax'])})"
            rows.append([name, "per cent of held-out episodes solved", ours, "", "frames, depth, data"])
    return rows


def _entries(cards: Path, preset: str, scenario: str, components: str = "independent") -> list[Measurement]:
    """What a card has measured."""
    file = cards / name_of(preset, scenario, components) / "results.json"
    return Results.load(file).results if file.exists() else []
