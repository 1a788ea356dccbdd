"""The pictures of a domain's card: Figures 2 and 3 of the paper, and the accuracy by number of traces."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from datasets import load_dataset
from matplotlib.figure import Figure

from hf_mech.hub import Measurement
from hf_mech.models.strips import StripsDomain, StripsTransformer
from hf_mech.planning.equivalence import Equivalence
from hf_mech.planning.figures import Point, attention_arrays, attention_figure, curves_figure, domains_figure
from hf_mech.planning.problem import StripsProblem

from .run import CellOutcome
from .settings import DATASET

_LENGTH_SHOWN = 6  # of the trace in the picture of the attention heads


def figures_of(
    chosen: CellOutcome,
    problem: StripsProblem,
    learned: StripsDomain,
    model: StripsTransformer,
    curve: Sequence[Measurement],
    judged: Sequence[tuple[CellOutcome, Sequence[Equivalence]]],
) -> dict[str, tuple[Figure, str]]:
    """Pictures with their captions, by file name.

    Args:
        chosen: the cell whose best member is the checkpoint.
        problem: the hidden problem.
        learned: the checkpoint's domain.
        model: the checkpoint.
        curve: the test accuracies of the cells that differ from it in the number of traces alone.
        judged: every cell with the verdicts on its seeds.
    """
    hidden, cell = problem.domain, chosen.settings
    title = f"Learned from {cell.num_train} traces, seed {chosen.seed(chosen.best)}"
    figures = {
        "figure2_learned_domain.png": (
            domains_figure(hidden, learned, title_learned=title),
            f"Figure 2 of the paper for {cell.domain}: the hidden domain, and the one this checkpoint learned",
        )
    }
    wrong = [
        (outcome.test_trace_accuracy[place], place, outcome, verdict)
        for outcome, verdicts in judged
        if outcome.settings.head_factor == 1
        for place, verdict in enumerate(verdicts)
        if verdict.equivalent is False
    ]
    if wrong:
        accuracy, place, outcome, verdict = max(wrong, key=lambda found: found[:2])
        seed = outcome.seed(place)
        size, other = outcome.settings.num_train, StripsDomain.from_dict(outcome.domains[place])
        figures["figure2_wrong_domain.png"] = (
            domains_figure(hidden, other, title_learned=f"Learned from {size} traces, seed {seed}"),
            f"The most accurate of the wrong domains: seed {seed} on {size} traces, test accuracy {accuracy:.4f}; told "
            f"apart by {', '.join(verdict.trace or [])}",
        )
    test = load_dataset(DATASET, cell.domain, **cell.data, split="test")
    for valid, kind in ((True, "valid"), (False, "invalid")):
        traces = (row["input_ids"] for row in test if row["valid"] is valid)
        trace = min(traces, key=lambda ids: abs(len(ids) - _LENGTH_SHOWN))
        with torch.no_grad():
            arrays = attention_arrays(model.theta[0].numpy(), trace)
        figures[f"figure3_{kind}_trace.png"] = (
            attention_figure([hidden.action_names[a] for a in trace], list(learned.propositions), *arrays),
            f"Figure 3 of the paper on a test trace that is {kind}: for each head the scores S, the stick-breaking "
            "scores S' as shade, and the output y",
        )
    points = [
        Point(m.setting["num_train"], tuple(m.values), *((m.paper.mean, m.paper.std) if m.paper else ())) for m in curve
    ]
    if points:
        curves = {cell.domain: sorted(points, key=lambda point: point.size)}
        figures["test_accuracy.png"] = (curves_figure(curves), "Test accuracy against the number of traces")
    return figures
