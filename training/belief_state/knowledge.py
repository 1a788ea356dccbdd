"""Figure 8 in numbers: what probes read from the states behind the prompt, by model and in comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from hf_mech.hub import Measurement

from ..engine.tables import Table
from .probes import known_bits
from .run import RunOutcome
from .settings import Run, graph_named

KNOWN = "known_path_bits"
"""What probes read of the path, in bits (`probes.known_bits`)."""
BEYOND = "path_bits_beyond_forward_only"
"""The one number: a seed's known bits of BST less those of forward-only. Both read the same graphs."""
OF_NODE, OF_EDGES = "path_probe_accuracy", "edge_probe_accuracy"
"""The share of right answers for a node of the path, and for the nodes of the prompt's edges."""

Measure = Callable[..., Measurement]
"""Takes a metric, a figure for each seed, and further settings."""


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
