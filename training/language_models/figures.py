"""The picture of a card: validation perplexity by epoch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from hf_mech.languages.figures import perplexity_figure

from .run import RunOutcome
from .settings import OBJECTIVES, STARTS

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
