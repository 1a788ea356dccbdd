"""results.json, the common form of every figure: the command, the data, the versions and the seeds.

A training script or benchmark ends with

    results = Results.collect("strips-simple", seconds=seconds, results=[
        measurement("hf_mech/strips_traces", "simple", {"num_train": 200}, "test_trace_accuracy", values=[1.0, 0.98]),
    ])
    results.save("model_cards/strips-simple/results.json")

Cards, README tables and plots are rendered from that file.
"""

import dataclasses
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_mech.hub.disk.files import write_text_atomically
from hf_mech.hub.environment import code_version, describe_machine, package_versions, running_command, without_folders
from hf_mech.hub.errors import ResultsError
from hf_mech.hub.measurements import Measurement, PaperFigure
from hf_mech.hub.redaction import redact
from hf_mech.hub.validation import check_measurements, check_origin


@dataclass
class Results:
    """The results of one run: its figures, and the data to reproduce them.

    Attributes:
        name: the checkpoint's or benchmark's name, that of its folder under `model_cards/`.
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
    ) -> "Results":
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
            ResultsError: if [`validate`] finds a fault; then nothing is written.
        """
        validate(self)
        text = json.dumps(redact(dataclasses.asdict(self)), indent=2, ensure_ascii=False, allow_nan=False)
        return write_text_atomically(path, text + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Read a results.json and check it. Secrets that an older version left in it are removed.

        Raises:
            FileNotFoundError: if there is no such file.
            ResultsError: if it is not JSON, lacks a key, has one too many, or [`validate`] finds a fault.
        """
        path = Path(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ResultsError(f"{path} is not JSON ({error}). Let the run write it again.") from error
        results = cls.from_dict(redact(content), where=str(path))
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


def validate(results: Results, *, where: str = "results") -> None:
    """Check that every figure comes from a run.

    Args:
        results: the results to check.
        where: their name in errors, usually the file's path.

    Raises:
        UnbackedNumberError: if the command, commit, machine, versions or time are missing, or if a measurement has no
            values, values that are not finite, or a mean, std or n that differs from theirs.
        ResultsError: if a field has the wrong form, or two measurements are of the same figure.
    """
    check_origin(
        where,
        name=results.name,
        command=results.command,
        commit=results.commit,
        machine=results.machine,
        versions=results.versions,
        seconds=results.seconds,
    )
    check_measurements(where, results.results)


def _measurement_from_dict(content: Any, where: str) -> Measurement:
    fields = dict(_fields(Measurement, content, where))
    if fields.get("paper") is not None:
        fields["paper"] = PaperFigure(**_fields(PaperFigure, fields["paper"], f"{where}, paper"))
    return Measurement(**fields)


def _fields(cls: type, content: Any, where: str) -> dict[str, Any]:
    """`content`, after checking that it is an object with exactly the keys of the dataclass `cls`."""
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
