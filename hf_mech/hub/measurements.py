"""A figure of results.json: one metric on one task, measured once per seed, and the paper's figure beside it."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hf_mech.hub.errors import ResultsError


@dataclass(frozen=True)
class PaperFigure:
    """The figure that the paper reports, to compare with ours.

    Attributes:
        mean: the paper's figure, in the metric's own unit.
        std: its spread if the paper gives one.
        where: the place in the paper, for example "Table 1".
    """

    mean: float
    std: float | None = None
    where: str = ""


@dataclass(frozen=True)
class Measurement:
    """One metric on one task, measured once per seed. Make it with [`measurement`], which computes mean, std and n.

    Attributes:
        task: the data set's name for `load_dataset`, or the benchmark's.
        config: the data set's configuration.
        setting: all other settings that affect the figure, such as the number of training examples; JSON values.
        metric: the metric's name.
        values: one figure per seed.
        mean: the values' mean.
        std: their population standard deviation (ddof=0, as in `numpy.std`); 0.0 for a single value.
        n: the number of values.
        paper: the paper's figure, if it has one.
    """

    task: str
    config: str | None
    setting: dict[str, Any]
    metric: str
    values: list[float]
    mean: float
    std: float
    n: int
    paper: PaperFigure | None = None


def measurement(
    task: str,
    config: str | None,
    setting: Mapping[str, Any],
    metric: str,
    values: Iterable[float],
    paper: PaperFigure | None = None,
) -> Measurement:
    """One metric's figures, with their mean and population standard deviation (ddof=0).

    Args:
        task: the data set's name for `load_dataset`, or the benchmark's.
        config: the data set's configuration.
        setting: all other settings that affect the figure; JSON values.
        metric: the metric's name.
        values: one figure per seed, at least one; numbers, or anything that `float` takes.
        paper: the paper's figure, if it has one.

    Raises:
        ResultsError: if there are no values.
    """
    figures = [float(value) for value in values]
    if not figures:
        raise ResultsError(f"No values for {metric} on {task}: give one figure per seed that ran.")
    return Measurement(
        task=task,
        config=config,
        setting=dict(setting),
        metric=metric,
        values=figures,
        mean=statistics.fmean(figures),
        std=statistics.pstdev(figures),
        n=len(figures),
        paper=paper,
    )
