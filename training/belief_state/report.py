"""From the outcomes of the runs to the figures of results.json, a card, and the tables of Figures 2 and 4."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import GPT2LMHeadModel, PreTrainedModel

from hf_mech.hub import Measurement, Results, measurement
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM
from hf_mech.star_graphs.tokenizer import star_graph_tokenizer

from ..engine.card import Card, Checkpoint
from ..engine.tables import Table, percent, steps_in_words
from .figures import figures_of
from .probes import known_bits
from .run import RunOutcome
from .settings import BELIEF_STATES, GRAPHS, MODELS, PAPER, Run

DATASET = "hf_mech/star_graph"
METRIC = "path_accuracy"
KNOWN = "known_path_bits"
"""What probes read of the path from the state behind the prompt (`probes.known_bits`)."""
NAME = "belief-state-star-graphs"
_SHOWN = (
    *("num_nodes", "batch_size", "examples", "layers", "backward_layers", "baseline_layers", "hidden", "heads"),
    *("head_width", "head_layers", "initialization", "optimizer", "learning_rate", "muon_learning_rate", "beta2"),
    *("weight_decay", "warmup_steps", "decay", "max_grad_norm", "growth", "first_degree", "first_length"),
    *("first_nodes", "mixed_precision", "eval_graphs"),
)


def order(outcome: RunOutcome) -> tuple[Any, ...]:
    """Graph by graph, preset by preset, the models of Figure 2 before the ablations."""
    run = outcome.settings
    departures = json.dumps(run.departures, sort_keys=True)
    graph = list(GRAPHS).index(run.graph)
    return graph, run.preset, MODELS.index(run.model), bool(run.departures), departures, run.seed


def measurements(outcomes: Iterable[RunOutcome]) -> list[Measurement]:
    """Every setting's figures over its seeds."""
    groups: dict[tuple[Any, ...], list[RunOutcome]] = {}
    for outcome in sorted(outcomes, key=order):
        groups.setdefault(order(outcome)[:-1], []).append(outcome)
    return [entry for members in groups.values() for entry in _of_group(members)]


def _of_group(members: Sequence[RunOutcome]) -> list[Measurement]:
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
    entries = [
        measurement(DATASET, run.graph, setting, METRIC, [one.path_accuracy for one in members], paper),
        measurement(DATASET, run.graph, setting, "training_seconds", [one.seconds for one in members]),
    ]
    if all(one.probes for one in members):
        bits = [known_bits(run, one.probes[-1]) for one in members]
        entries.append(measurement(DATASET, run.graph, setting, KNOWN, bits))
    alike = [one.generated_alike / one.settings.generated for one in members]
    return [*entries, measurement(DATASET, run.graph, setting, "generate_agrees", alike)]


def table(finished: Iterable[RunOutcome]) -> Table:
    """Figures 2 and 4 of finished runs."""
    return accuracy_table(measurements(finished))


def accuracy_table(measured: Iterable[Measurement]) -> Table:
    """A row for each graph and model: path accuracy in per cent, 1/d beside it."""
    shown = Table(
        ["graph", "model", "departures", ">path accuracy", ">1/d", ">paper", ">seeds", ">steps", ">parameters"]
    )
    for entry in measured:
        if entry.metric != METRIC:
            continue
        own = entry.setting
        departures = ", ".join(f"{name} {value}" for name, value in own["departures"].items())
        chance, done = 100 / GRAPHS[own["graph"]][0], steps_in_words(own["steps_done"])
        cells = [own["graph"], own["model"], departures, percent(entry, spread=entry.n > 1), f"{chance:.0f}"]
        cells += [percent(entry.paper, spread=False), str(entry.n), done, f"{own['parameters']:,}"]
        shown.rows.append(cells)
    return shown


def knowledge(measured: Iterable[Measurement]) -> Table:
    """A row for each probed model: the bits of the path that probes read from its state behind the prompt.

    The note is the one number: the bits that BST's state gives of the path, less those that forward-only's gives.
    """
    shown = Table(["graph", "model", ">bits of the path", ">seeds"])
    found: dict[tuple[str, str], Measurement] = {}
    for entry in measured:
        if entry.metric == KNOWN:
            own = entry.setting
            found.setdefault((own["graph"], own["model"]), entry)
            shown.rows.append([own["graph"], own["model"], f"{entry.mean:.1f} ± {entry.std:.1f}", str(entry.n)])
    for graph in GRAPHS:
        if (graph, "bst") in found and (graph, "forward_only") in found:
            more = found[graph, "bst"].mean - found[graph, "forward_only"].mean
            degree, length = GRAPHS[graph]
            shown.notes.append(
                f"G({degree},{length}): BST's state has {more:.1f} bits of the path that forward-only's does not have, "
                f"of at most {length * math.log2(found[graph, 'bst'].setting['num_nodes']):.1f}."
            )
    return shown


def card(outcomes: Mapping[Path, RunOutcome]) -> Card:
    """The card of a preset."""
    own, measured = list(outcomes.values()), measurements(outcomes.values())
    preset = own[0].settings.preset
    folder = choose(outcomes)
    chosen = outcomes[folder].settings
    return Card(
        name=NAME if preset == "cpu" else f"{NAME}-{preset}",
        outcomes=own,
        seconds=sum(outcome.seconds + outcome.seconds_of_test for outcome in own),
        measured=measured,
        text={
            "preset": preset,
            "run": chosen,
            "table": accuracy_table(measured).markdown(),
            "knowledge": knowledge(measured).markdown(),
            "graphs": f"{max(one.settings.eval_graphs for one in own):,}",
            "chosen": chosen,
        },
        model_class=_class_of(chosen).__name__,
        paper="hu2025belief",
        task="text-generation",
        tags=["star-graph", "planning", "path-finding"],
        headline=[METRIC],
        figures=figures_of(own),
        checkpoint=Checkpoint(_class_of(chosen).from_pretrained(folder / "model"), star_graph_tokenizer(chosen.final)),
    )


def choose(outcomes: Mapping[Path, RunOutcome]) -> Path:
    """The folder of the checkpoint: BST before all others, on the hardest graph, of the lowest training loss."""

    def rank(folder: Path) -> tuple[bool, int, float]:
        outcome = outcomes[folder]
        loss = outcome.losses[-1] if outcome.losses else float("inf")
        return outcome.settings.model == "bst", list(GRAPHS).index(outcome.settings.graph), -loss

    return max(outcomes, key=rank)


def _class_of(run: Run) -> type[PreTrainedModel]:
    return BeliefStateForCausalLM if run.model in BELIEF_STATES else GPT2LMHeadModel


def results(cards: Path) -> dict[str, str]:
    """The table of each preset's card, if there is one."""
    found = {}
    for preset in Run.PRESETS:
        name = NAME if preset == "cpu" else f"{NAME}-{preset}"
        file = cards / name / "results.json"
        found[name] = accuracy_table(Results.load(file).results if file.exists() else []).markdown()
    return found


def summary(cards: Path) -> list[list[str]]:
    """Two rows: BST and forward-only on G(2,5)."""
    file = cards / NAME / "results.json"
    entries = Results.load(file).results if file.exists() else []
    rows = []
    for entry in entries:
        own = entry.setting
        if entry.metric == METRIC and own["model"] in ("bst", "forward_only") and not own["departures"]:
            name = f"[Star graphs](docs/results/star_graphs.md) {own['graph'].upper()}, `{own['model']}`"
            measure, reduced = "per cent of paths right", "width, depth, steps"
            rows.append([name, measure, percent(entry), percent(entry.paper, spread=False), reduced])
    return rows
