"""The picture of a card: validation perplexity by epoch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from hf_mech.viz.perplexity_curves import perplexity_figure

from .run import RunOutcome
from .settings import OBJECTIVES, STARTS

CAPTION = (
    "Perplexity on validation by epoch: mean over seeds, and one standard deviation as shade. Fine-tuned models begin "
    "at epoch 0, before the first step"
)
_TITLES = {"scratch": "from scratch", "pretrained": "pretrained here", "checkpoint": "from a checkpoint"}


def curves_of(outcomes: Sequence[RunOutcome]) -> Figure:
    """A panel for every start and objective; fine-tuned models from before their first step on."""
    panels: dict[tuple[str, str], dict[str, list[list[float]]]] = {}
    for outcome in outcomes:
        run = outcome.settings
        if run.start != "pretraining":
            before = [] if run.start == "scratch" else [outcome.perplexity_before]
            forms = panels.setdefault((run.start, run.objective), {})
            forms.setdefault(run.form, []).append(before + outcome.validation_perplexity)
    order = sorted(panels, key=lambda panel: (STARTS.index(panel[0]), OBJECTIVES.index(panel[1])))
    return perplexity_figure(
        {
            f"{'MLM' if objective == 'mlm' else 'ALM'}, {_TITLES[start]}": (
                1 if start == "scratch" else 0,
                panels[start, objective],
            )
            for start, objective in order
        }
    )
