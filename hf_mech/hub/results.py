"""results.json: every figure with its runs, spread and the paper's, checked and written."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_mech.hub.environment import code_version, describe_machine, package_versions, running_command, without_folders
from hf_mech.hub.files import HubError, write_text_atomically

# ----------------------------------------------------------------------------------------------------------------------
# A figure of results.json: one metric on one task, measured once per seed, and the paper's figure beside it.


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
        HubError: if there are no values.
    """
    figures = [float(value) for value in values]
    if not figures:
        raise HubError(f"No values for {metric} on {task}: give one figure per seed that ran.")
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


# ----------------------------------------------------------------------------------------------------------------------
# No number without a run: the checks that a results.json passes before it is saved, loaded, rendered or pushed.


_REQUIRED_VERSIONS = ("python", "torch", "transformers")
_REQUIRED_MACHINE = ("cpu", "gpu", "cores")


def _check_origin(results: Results, where: str) -> None:
    """Check that a results.json names the command, machine, versions and duration of its run."""
    machine: Any = results.machine
    versions: Any = results.versions
    _check_text(results.name, f"{where}: name")
    for key in ("command", "commit"):
        value = getattr(results, key)
        if not isinstance(value, str) or not value.strip():
            raise HubError(f"{where}: {key} is {value!r}, so nobody can repeat the run. {_BY_THE_RUN}")
    if not isinstance(machine, dict) or any(key not in machine for key in _REQUIRED_MACHINE):
        raise HubError(f"{where}: machine must have {', '.join(_REQUIRED_MACHINE)}, got {machine!r}. {_BY_THE_RUN}")
    if not machine["cpu"] or not isinstance(machine["cores"], int) or machine["cores"] < 1:
        raise HubError(f"{where}: machine names no cpu or no cores: {machine!r}. {_BY_THE_RUN}")
    if not isinstance(versions, dict) or any(not versions.get(key) for key in _REQUIRED_VERSIONS):
        raise HubError(f"{where}: versions must have {', '.join(_REQUIRED_VERSIONS)}, got {versions!r}. {_BY_THE_RUN}")
    if not _is_figure(results.seconds) or results.seconds <= 0:
        raise HubError(f"{where}: seconds must be a positive time, got {results.seconds!r}. {_BY_THE_RUN}")


def _check_measurements(measurements: Sequence[Measurement], where: str) -> None:
    """Check that every figure follows from measured values, and that no two measurements are of the same figure."""
    if not measurements:
        raise HubError(f"{where} has no measurements. Append what measurement(...) returns.")
    seen: set[str] = set()
    for index, entry in enumerate(measurements):
        place = f"{where}, results[{index}]"
        _check_measurement(entry, place)
        key = json.dumps([entry.task, entry.config, entry.setting, entry.metric], sort_keys=True)
        if key in seen:
            raise HubError(
                f"{place} measures {entry.metric} on {entry.task} ({entry.config}) in the setting {entry.setting}, "
                "as an earlier entry does. Put the values of all seeds in one entry, or tell the settings apart."
            )
        seen.add(key)


def _check_measurement(entry: Measurement, where: str) -> None:
    _check_text(entry.task, f"{where}: task")
    _check_text(entry.metric, f"{where}: metric")
    if entry.config is not None:
        _check_text(entry.config, f"{where}: config")
    _check_setting(entry.setting, where)
    values: Any = entry.values
    if not isinstance(values, list) or not values:
        raise HubError(f"{where}: {entry.metric} has no values; expected one per seed, got {values!r}.")
    for seed, value in enumerate(values):
        if not _is_figure(value):
            raise HubError(
                f"{where}: values[{seed}] of {entry.metric} is {value!r}, not a finite number. Did that run diverge?"
            )
    follows = {"n": len(values), "mean": statistics.fmean(values), "std": statistics.pstdev(values)}
    for name, expected in follows.items():
        got = getattr(entry, name)
        if not _is_figure(got) or not math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12):
            raise HubError(
                f"{where}: {name} of {entry.metric} is {got!r}, but {expected!r} follows from its values. {_BY_THE_RUN}"
            )
    if entry.paper is not None:
        _check_paper(entry.paper, f"{where}: paper")


def _check_setting(setting: Any, where: str) -> None:
    if not isinstance(setting, dict):
        raise HubError(f"{where}: setting must be a mapping of names to JSON values, got {setting!r}.")
    try:
        restored = json.loads(json.dumps(setting, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise HubError(f"{where}: setting {setting!r} is not JSON ({error}). Use plain numbers and text.") from error
    if restored != setting:
        raise HubError(
            f"{where}: setting {setting!r} would be read back as {restored!r}. Use text for names, lists for tuples."
        )


def _check_paper(paper: PaperFigure, where: str) -> None:
    if not _is_figure(paper.mean) or not (paper.std is None or _is_figure(paper.std)):
        raise HubError(f"{where}: mean and std must be finite numbers (std may be null), got {paper!r}.")
    place: Any = paper.where
    if not isinstance(place, str) or not place.strip():
        raise HubError(f"{where} does not say where in the paper its figure stands, for example 'Table 1'.")


def _check_text(value: Any, where: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise HubError(f"{where} must be a text that is not empty, got {value!r}.")


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_BY_THE_RUN = "Results are written by the run, never by hand: use Results.collect() and measurement()."


# ----------------------------------------------------------------------------------------------------------------------
# results.json, the common form of every figure: the command, the data, the versions and the seeds.
#
# A training script or benchmark ends with
#
#     results = Results.collect("strips-simple", seconds=seconds, results=[
#         measurement("hf_mech/strips_traces", "simple", {"num_train": 200}, "test_trace_accuracy", values=[1.0, 0.98]),
#     ])
#     results.save("docs/results/strips-simple/results.json")
#
# Cards, README tables and plots are rendered from that file.


@dataclass
class Results:
    """The results of one run: its figures, and the data to reproduce them.

    Attributes:
        name: the checkpoint's or benchmark's name, that of its folder.
        command: the command that ran, without the folders of absolute paths.
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

    def __post_init__(self) -> None:
        if isinstance(self.command, str):
            self.command = without_folders(self.command)

    @classmethod
    def collect(
        cls,
        name: str,
        *,
        seconds: float,
        results: Iterable[Measurement] = (),
        command: str | None = None,
        commit: str | None = None,
    ) -> Results:
        """Gather `results` together with the commit, machine, versions and command of the running process.

        Args:
            name: the checkpoint's or benchmark's name.
            seconds: the duration of the run.
            results: the measurements; more can be appended to `.results`.
            command: by default the command line of this process.
            commit: by default the commit of the running hf_mech.
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
        """Write the file in one step and without secrets, after checking that every figure comes from a run.

        Returns:
            The path written.

        Raises:
            HubError: if [`validate`] finds a fault; then nothing is written.
        """
        validate(self)
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False, allow_nan=False)
        return write_text_atomically(path, text + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """Read a results.json and check it.

        Raises:
            FileNotFoundError: if there is no such file.
            HubError: if it is not JSON, lacks a key, has one too many, or [`validate`] finds a fault.
        """
        path = Path(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise HubError(f"{path} is not JSON ({error}). Let the run write it again.") from error
        results = cls.from_dict(content, where=str(path))
        validate(results, where=str(path))
        return results

    @classmethod
    def from_dict(cls, content: Any, *, where: str = "results") -> Results:
        """Build the results from parsed JSON; `where` names their source in errors.

        Raises:
            HubError: if a key is missing or unknown.
        """
        fields = dict(_fields(cls, content, where))
        if not isinstance(fields["results"], list):
            raise HubError(f"{where}: results must be a list of measurements, got {fields['results']!r}.")
        fields["results"] = [
            _measurement_from_dict(entry, f"{where}, results[{index}]") for index, entry in enumerate(fields["results"])
        ]
        return cls(**fields)


def validate(results: Results, *, where: str = "results") -> None:
    """Check that every figure comes from a run.

    Args:
        results: the results to check.
        where: their name in errors, usually the file's path.

    Raises:
        HubError: if the command, commit, machine, versions or time are missing, a field has the wrong form, two
            measurements are of the same figure, or one has no values, values that are not finite, or a mean, std or n
            that differs from theirs.
    """
    _check_origin(results, where)
    _check_measurements(results.results, where)


def _measurement_from_dict(content: Any, where: str) -> Measurement:
    fields = dict(_fields(Measurement, content, where))
    if fields.get("paper") is not None:
        fields["paper"] = PaperFigure(**_fields(PaperFigure, fields["paper"], f"{where}, paper"))
    return Measurement(**fields)


def _fields(cls: type, content: Any, where: str) -> dict[str, Any]:
    """`content`, after checking that it is an object with exactly the keys of the dataclass `cls`."""
    if not isinstance(content, dict):
        raise HubError(f"{where} must be a JSON object, got {type(content).__name__}.")
    fields = dataclasses.fields(cls)
    optional = {"std"} if cls is PaperFigure else {"paper"}
    known = {entry.name for entry in fields}
    if missing := sorted(known - optional - content.keys()):
        raise HubError(f"{where} lacks {', '.join(missing)}. Results are written by the run: Results.collect().")
    if unknown := sorted(content.keys() - known):
        raise HubError(f"{where} has unknown keys {', '.join(unknown)}; expected {', '.join(sorted(known))}.")
    return content
