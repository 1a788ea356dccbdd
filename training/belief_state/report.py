"""From the outcomes of the runs to the figures of results.json, a card, and the tables of Figures 2 and 4."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from transformers import GPT2LMHeadModel, PreTrainedModel

from hf_mech.hub import Measurement, PaperFigure, Results, measurement
from hf_mech.lookahead.star_graphs.layouts import star_graph_tokenizer
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM
from hf_mech.probing.state_probes import PROBES_FILE

from ..engine.card import Card, Checkpoint
from ..engine.run import by_setting
from ..engine.tables import Table, departures_in_words, percent, steps_in_words
from .figures import figures_of
from .probes import known_bits
from .run import RunOutcome
from .settings import BELIEF_STATES, MODELS, PAPER, Run, graph_named

DATASET = "hf_mech/star_graph"
METRIC = "path_accuracy"
NAME = "belief-state-star-graphs"
OBJECTIVES_NAME = f"{NAME}-objectives"
OTHERS = "-other-graphs"
KNOWN = "known_path_bits"
"""What probes read of the path, in bits (`probes.known_bits`)."""
BEYOND = "path_bits_beyond_forward_only"
"""The one number: a seed's known bits of BST less those of forward-only. Both read the same graphs."""
OF_NODE, OF_EDGES = "path_probe_accuracy", "edge_probe_accuracy"
"""The share of right answers for a node of the path, and for the nodes of the prompt's edges."""
BACK = "way_back_accuracy"
"""The share of graphs whose node so many steps before the goal the state behind the prompt knows (`way_back`)."""

Measure = Callable[..., Measurement]
"""Takes a metric, a figure for each seed, and further settings."""
_SHOWN = (
    *(
        "num_nodes",
        "batch_size",
        "examples",
        "layers",
        "shared_from",
        "backward_layers",
        "baseline_layers",
        "hidden",
        "heads",
    ),
    *(
        "head_width",
        "head_layers",
        "horizon",
        "initialization",
        "optimizer",
        "learning_rate",
        "muon_learning_rate",
        "beta2",
    ),
    *(
        "weight_decay",
        "warmup_steps",
        "decay",
        "max_grad_norm",
        "growth_after",
        "growth",
        "first_degree",
        "first_length",
    ),
    *("places", "first_nodes", "mixed_precision", "eval_graphs"),
)


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """Graph by graph, preset by preset, the models of Figure 2 before the ablations."""
    run = outcome.settings
    departures = json.dumps(run.departures, sort_keys=True)
    return *_size(run), run.preset, MODELS.index(run.model), bool(run.departures), departures, run.seed


def _size(run: Run) -> tuple[int, int]:
    """Puts graphs in the order of their edges."""
    return run.final.edges, run.final.degree


def measurements(outcomes: Iterable[RunOutcome]) -> list[Measurement]:
    """Every setting's figures over its seeds."""
    groups = by_setting(outcomes, order)
    every = [outcome for members in groups for outcome in members]
    return [entry for members in groups for entry in _of_group(members, forward_only_of(members[0].settings, every))]


def _of_group(members: Sequence[RunOutcome], others: Mapping[int, RunOutcome]) -> list[Measurement]:
    run = members[0].settings
    setting = {
        "graph": run.graph,
        "model": run.model,
        "preset": run.preset,
        **{name: getattr(run, name) for name in _SHOWN},
        "departures": run.departures,
        "parameters": members[0].parameters,
        "seeds": [outcome.settings.seed for outcome in members],
        "steps_done": [outcome.steps for outcome in members],
    }
    paper = PAPER.figure(METRIC, graph=run.graph, model=run.model) if run.num_nodes == 50 else None

    def measure(metric: str, values: Iterable[float], paper: PaperFigure | None = None, **more: Any) -> Measurement:
        return measurement(DATASET, run.graph, setting | more, metric, values, paper)

    return [
        measure(METRIC, [one.path_accuracy for one in members], paper),
        measure("training_seconds", [one.seconds for one in members]),
        measure("generate_agrees", [one.generated_alike / one.settings.generated for one in members]),
        *_ways_back(members, measure),
        *readings(members, others, measure),
    ]


def _ways_back(members: Sequence[RunOutcome], measure: Measure) -> list[Measurement]:
    """A figure for each step, of the runs that have them."""
    known = {one.settings.seed: one.way_back for one in members if one.way_back}
    steps = enumerate(zip(*known.values(), strict=True), 1)
    return [measure(BACK, shares, steps_back=step, seeds=list(known)) for step, shares in steps]


def table(finished: Iterable[RunOutcome]) -> Table:
    """Figures 2 and 4 of finished runs."""
    return accuracy_table(measurements(finished))


def accuracy_table(measured: Iterable[Measurement]) -> Table:
    """A row for each graph and model: path accuracy in per cent, 1/d beside it."""
    shown = Table(
        ["graph", "model", "departures", ">path accuracy", ">1/d", ">paper", ">seeds", ">steps", ">parameters"]
    )
    entries = [entry for entry in measured if entry.metric == METRIC]
    several = len({entry.setting["preset"] for entry in entries}) > 1  # a table of several cards
    for entry in entries:
        own = entry.setting
        preset = {"preset": own["preset"]} if several and own["preset"] != "cpu" else {}
        departures = departures_in_words(preset | own["departures"])
        chance, done = 100 / graph_named(own["graph"], own["num_nodes"]).degree, steps_in_words(own["steps_done"])
        cells = [own["graph"], own["model"], departures, percent(entry, spread=entry.n > 1), f"{chance:.0f}"]
        cells += [percent(entry.paper, spread=False), str(entry.n), done, f"{own['parameters']:,}"]
        shown.rows.append(cells)
    return shown


def way_back_table(measured: Iterable[Measurement]) -> Table:
    """A row for each BST: the share of graphs of which it knows the node one step before the goal, two, and so on."""
    shown = Table(["graph", "model", "departures", ">known steps back from the goal, %", ">path accuracy", ">seeds"])
    accuracy = ""
    for entry in measured:
        own, share = entry.setting, f"{100 * entry.mean:.0f}"
        if entry.metric == METRIC:
            accuracy = percent(entry, spread=entry.n > 1)
        elif entry.metric == BACK and own["steps_back"] == 1:
            departures = departures_in_words(own["departures"])
            shown.rows.append([own["graph"], own["model"], departures, share, accuracy, str(entry.n)])
        elif entry.metric == BACK:
            shown.rows[-1][3] += f" {share}"
    return shown


def card(outcomes: Mapping[Path, RunOutcome]) -> Card:
    """The card of a preset."""
    own, measured = list(outcomes.values()), measurements(outcomes.values())
    preset = own[0].settings.preset
    folder = choose(outcomes)
    chosen = outcomes[folder].settings
    return Card(
        name=NAME + own[0].settings.card,
        outcomes=own,
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in own),
        measured=measured,
        text={
            "preset": preset,
            "run": chosen,
            "table": accuracy_table(measured).markdown(),
            "knowledge": knowledge_table(measured).markdown(),
            "graphs": f"{max(one.settings.eval_graphs for one in own):,}",
            "chosen": chosen,
        },
        model_class=_class_of(chosen).__name__,
        task="text-generation",
        tags=["star-graph", "planning", "path-finding"],
        headline=[METRIC],
        figures=figures_of(own),
        checkpoint=Checkpoint(
            _class_of(chosen).from_pretrained(folder / "model"),
            star_graph_tokenizer(chosen.final),
            [folder / PROBES_FILE] if chosen.probes else [],
        ),
    )


def choose(outcomes: Mapping[Path, RunOutcome]) -> Path:
    """The folder of the checkpoint: BST before all others, on the hardest graph, of the lowest training loss."""

    def rank(folder: Path) -> tuple[Any, ...]:
        outcome = outcomes[folder]
        loss = outcome.losses[-1] if outcome.losses else float("inf")
        return outcome.settings.model == "bst", *_size(outcome.settings), -loss

    return max(outcomes, key=rank)


def _class_of(run: Run) -> type[PreTrainedModel]:
    return BeliefStateForCausalLM if run.model in BELIEF_STATES else GPT2LMHeadModel


def results(cards: Path) -> dict[str, str]:
    """The table of each preset's card, if there is one, and that of the probes."""
    found = {}
    for preset in Run.PRESETS:
        entries = _entries(cards, preset)
        found[_name(preset)] = accuracy_table(entries).markdown()
        found[f"{_name(preset)}-knowledge"] = knowledge_table(entries).markdown()
    beside = [entry for entry in _entries(cards, "cpu") if entry.setting["model"] in ("bst", "forward_only")]
    objectives = _measured(cards / OBJECTIVES_NAME)
    found[OBJECTIVES_NAME] = accuracy_table([*beside, *objectives]).markdown()
    others = [entry for preset in ("cpu", "cpu-long") for entry in _measured(cards / (_name(preset) + OTHERS))]
    compared = {(entry.setting["model"], entry.setting["preset"]) for entry in others}
    known = [*beside, *objectives]
    usual = [entry for entry in known if (entry.setting["model"], entry.setting["preset"]) in compared]
    found[NAME + OTHERS] = accuracy_table(sorted([*usual, *others], key=_by_length)).markdown()
    found[f"{NAME}{OTHERS}-way-back"] = way_back_table(sorted([*usual, *others], key=_by_length)).markdown()
    return found


def _by_length(entry: Measurement) -> tuple[int, int, int]:
    """Longer paths later, BST first, smaller models first."""
    own = entry.setting
    return graph_named(own["graph"], own["num_nodes"]).length, MODELS.index(own["model"]), own["parameters"]


def summary(cards: Path) -> list[list[str]]:
    """One row: BST on G(2,5), and forward-only beside it."""
    found = {
        entry.setting["model"]: entry
        for entry in _entries(cards, "cpu")
        if entry.metric == METRIC and entry.setting["graph"] == "g-2-5" and not entry.setting["departures"]
    }
    if not {"bst", "forward_only"} <= found.keys():
        return []
    bst, forward = found["bst"], found["forward_only"]
    name = f"[Star graphs](docs/results/star_graphs.md) {bst.setting['graph'].upper()}"
    ours = f"{percent(bst)} ({percent(forward)})"
    measure, reduced = "per cent of paths right (the forward encoder alone)", "width, depth, steps"
    return [[name, measure, ours, percent(bst.paper, spread=False), reduced]]


def _name(preset: str) -> str:
    """The name of a preset's card."""
    return NAME if preset == "cpu" else f"{NAME}-{preset}"


def _entries(cards: Path, preset: str) -> list[Measurement]:
    """What the card of a preset has measured."""
    return _measured(cards / _name(preset))


def _measured(card: Path) -> list[Measurement]:
    file = card / "results.json"
    return Results.load(file).results if file.exists() else []


def readings(members: Sequence[RunOutcome], others: Mapping[int, RunOutcome], measure: Measure) -> list[Measurement]:
    """The figures of one setting's last probes over its seeds; none if a run has no probes.

    Args:
        members: the runs of a setting.
        others: for BST, the runs of forward-only in the same setting, by seed.
        measure: makes a measurement of the setting.
    """
    if not all(outcome.probes for outcome in members):
        return []
    run = members[0].settings
    length = run.final.length
    accuracy = np.array([outcome.probes[-1]["accuracy"] for outcome in members])
    found = [measure(KNOWN, [_bits(outcome) for outcome in members])]
    found += [measure(OF_NODE, accuracy[:, node], node=node + 1) for node in range(length)]
    found.append(measure(OF_EDGES, accuracy[:, length:].mean(1)))
    seeds = [one.settings.seed for one in members]
    more = {seed: others[seed] for seed in seeds if seed in others and others[seed].probes}
    if more:
        beyond = [_bits(one) - _bits(more[seed]) for one, seed in zip(members, seeds, strict=True) if seed in more]
        found.append(measure(BEYOND, beyond, seeds=list(more)))
    return found


def forward_only_of(run: Run, outcomes: Iterable[RunOutcome]) -> dict[int, RunOutcome]:
    """The runs of forward-only beside a BST's run: same graph, preset and departures; by seed."""
    if run.model != "bst":
        return {}
    return {
        outcome.settings.seed: outcome
        for outcome in outcomes
        if (other := outcome.settings).model == "forward_only"
        and (other.graph, other.preset, other.departures) == (run.graph, run.preset, run.departures)
    }


def knowledge_table(measured: Iterable[Measurement]) -> Table:
    """A row for each probed model; the note is the one number, with its spread over the seeds."""
    shown = Table(["graph", "model", ">bits of the path", ">nodes of the path, %", ">nodes of the edges, %", ">seeds"])
    for entry in measured:
        own, spread = entry.setting, f" ± {entry.std:.1f}" if entry.n > 1 else ""
        if entry.metric == KNOWN:
            shown.rows.append([own["graph"], own["model"], f"{entry.mean:.1f}{spread}", "", "", str(entry.n)])
        elif entry.metric == OF_NODE:
            shown.rows[-1][3] += f"{' ' if shown.rows[-1][3] else ''}{100 * entry.mean:.0f}"
        elif entry.metric == OF_EDGES:
            shown.rows[-1][4] = f"{100 * entry.mean:.0f}"
        elif entry.metric == BEYOND:
            graph = graph_named(own["graph"], own["num_nodes"])
            all_bits = graph.length * math.log2(graph.num_nodes)
            shown.notes.append(
                f"G({graph.degree},{graph.length}): the state of BST tells probes {entry.mean:.1f}{spread} bits of the "
                f"path more than that of forward-only; the nodes have {all_bits:.1f} bits, each by itself."
            )
    return shown


def _bits(outcome: RunOutcome) -> float:
    return known_bits(outcome.settings, outcome.probes[-1])
