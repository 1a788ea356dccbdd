"""results.json, the one form of every figure: what ran, on what, with which versions and seeds.

A training script or benchmark ends with

    results = Results.collect("strips-simple", seconds=seconds, results=[
        measurement("hf_mech/strips_traces", "simple", {"num_train": 200}, "test_trace_accuracy", values=[1.0, 0.98]),
    ])
    results.save("model_cards/strips-simple/results.json")

and cards, README tables and plots are rendered from that file.
"""

import dataclasses
import json
import os
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .environment import code_version, describe_machine, package_versions, running_command
from .errors import ResultsError
from .files import write_text_atomically
from .validation import validate

__all__ = ["Measurement", "PaperFigure", "Results", "measurement", "validate"]


@dataclass(frozen=True)
class PaperFigure:
    """The figure that the paper reports, to stand beside ours.

    Attributes:
        mean: the paper's figure, in the metric's own unit.
        std: its spread where the paper tells one.
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
        setting: what else decides the figure, such as the number of training examples; JSON values.
        metric: the metric's name.
        values: one figure per seed.
        mean: the values' mean.
        std: their population standard deviation (ddof=0, as `numpy.std` has it); 0.0 for a single value.
        n: how many values there are.
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


@dataclass
class Results:
    """Everything one run has to say: its figures, and what is needed to get them again.

    Attributes:
        name: the checkpoint's or benchmark's name, that of its folder under `model_cards/`.
        command: the command that ran.
        commit: the code's commit, see [`~hf_mech.hub.environment.code_version`].
        machine: `{"cpu": str, "gpu": str or None, "cores": int}`.
        versions: package to version, at least python, torch and transformers.
        seconds: the run's wall-clock time.
        results: the measurements.
    """

    name: str
    command: str
    commit: str
    machine: dict[str, Any]
    versions: dict[str, str]
    seconds: float
    results: list[Measurement] = field(default_factory=list)

    @classmethod
    def collect(
        cls,
        name: str,
        *,
        seconds: float,
        results: Iterable[Measurement] = (),
        command: str | None = None,
        commit: str | None = None,
    ) -> "Results":
        """Gather `results` together with the commit, machine, versions and command of the process that is running.

        Args:
            name: the checkpoint's or benchmark's name.
            seconds: how long the run took.
            results: the measurements; more can be appended to `.results`.
            command: this process's command line by default.
            commit: the commit of the hf_mech that is running by default.
        """
        return cls(
            name=name,
            command=command or running_command(),
            commit=commit or code_version(),
            machine=describe_machine(),
            versions=package_versions(),
            seconds=float(seconds),
            results=list(results),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file in one step, after checking that every figure has a run behind it.

        Returns:
            The path written.

        Raises:
            ResultsError: if [`validate`] finds a fault; nothing is written then.
        """
        validate(self)
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False, allow_nan=False)
        return write_text_atomically(path, text + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Read a results.json and check it.

        Raises:
            FileNotFoundError: if there is no such file.
            ResultsError: if it is not JSON, lacks a key, has one too many, or [`validate`] finds a fault.
        """
        path = Path(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ResultsError(f"{path} is not JSON ({error}). Let the run write it again.") from error
        results = cls.from_dict(content, where=str(path))
        validate(results, where=str(path))
        return results

    @classmethod
    def from_dict(cls, content: Any, *, where: str = "results") -> "Results":
        """Build the results from parsed JSON; `where` names their source in errors.

        Raises:
            ResultsError: if a key is missing or unknown.
        """
        fields = dict(_fields(cls, content, where))
        if not isinstance(fields["results"], list):
            raise ResultsError(f"{where}: results must be a list of measurements, got {fields['results']!r}.")
        fields["results"] = [
            _measurement_from_dict(entry, f"{where}, results[{index}]") for index, entry in enumerate(fields["results"])
        ]
        return cls(**fields)


def measurement(
    task: str,
    config: str | None,
    setting: Mapping[str, Any],
    metric: str,
    values: Iterable[float],
    paper: PaperFigure | None = None,
) -> Measurement:
    """One metric's figures, with the mean and the population standard deviation (ddof=0) that follow from them.

    Args:
        task: the data set's name for `load_dataset`, or the benchmark's.
        config: the data set's configuration.
        setting: what else decides the figure; JSON values.
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


def _measurement_from_dict(content: Any, where: str) -> Measurement:
    fields = dict(_fields(Measurement, content, where))
    if fields.get("paper") is not None:
        fields["paper"] = PaperFigure(**_fields(PaperFigure, fields["paper"], f"{where}, paper"))
    return Measurement(**fields)


def _fields(cls: type, content: Any, where: str) -> dict[str, Any]:
    """`content`, once it is sure to be an object with the keys of the dataclass `cls` and no others."""
    if not isinstance(content, dict):
        raise ResultsError(f"{where} must be a JSON object, got {type(content).__name__}.")
    fields = dataclasses.fields(cls)
    optional = {"std"} if cls is PaperFigure else {"paper"}
    known = {entry.name for entry in fields}
    if missing := sorted(known - optional - content.keys()):
        raise ResultsError(f"{where} lacks {', '.join(missing)}. Results are written by the run: Results.collect().")
    if unknown := sorted(content.keys() - known):
        raise ResultsError(f"{where} has unknown keys {', '.join(unknown)}; expected {', '.join(sorted(known))}.")
    return content
