"""No number without a run: the checks that a results.json passes before it is saved, loaded, rendered or pushed."""

import json
import math
import statistics
from collections.abc import Sequence
from typing import Any

from hf_mech.hub.errors import ResultsError, UnbackedNumberError
from hf_mech.hub.measurements import Measurement, PaperFigure

_REQUIRED_VERSIONS = ("python", "torch", "transformers")
_REQUIRED_MACHINE = ("cpu", "gpu", "cores")


def check_origin(
    where: str, *, name: Any, command: Any, commit: Any, machine: Any, versions: Any, seconds: Any
) -> None:
    """Check that a results.json names the command, machine, versions and duration of its run.

    Args:
        where: its name in errors, usually the file's path.
        name, command, commit, machine, versions, seconds: its fields, see [`~hf_mech.hub.results.Results`].

    Raises:
        UnbackedNumberError: if a field that is needed to repeat the run is missing.
        ResultsError: if the name is not a string.
    """
    _check_text(name, f"{where}: name")
    for key, value in (("command", command), ("commit", commit)):
        if not isinstance(value, str) or not value.strip():
            raise UnbackedNumberError(f"{where}: {key} is {value!r}, so nobody can repeat the run. {_BY_THE_RUN}")
    if not isinstance(machine, dict) or any(key not in machine for key in _REQUIRED_MACHINE):
        raise UnbackedNumberError(
            f"{where}: machine must have {', '.join(_REQUIRED_MACHINE)}, got {machine!r}. {_BY_THE_RUN}"
        )
    if not machine["cpu"] or not isinstance(machine["cores"], int) or machine["cores"] < 1:
        raise UnbackedNumberError(f"{where}: machine names no cpu or no cores: {machine!r}. {_BY_THE_RUN}")
    if not isinstance(versions, dict) or any(not versions.get(key) for key in _REQUIRED_VERSIONS):
        raise UnbackedNumberError(
            f"{where}: versions must have {', '.join(_REQUIRED_VERSIONS)}, got {versions!r}. {_BY_THE_RUN}"
        )
    if not _is_figure(seconds) or seconds <= 0:
        raise UnbackedNumberError(f"{where}: seconds must be a positive time, got {seconds!r}. {_BY_THE_RUN}")


def check_measurements(where: str, measurements: Sequence[Measurement]) -> None:
    """Check that every figure follows from measured values.

    Args:
        where: the name of the results in errors, usually the file's path.
        measurements: all of them.

    Raises:
        UnbackedNumberError: if there is no measurement, or one has no values, values that are not finite, or a mean,
            std or n that differs from theirs.
        ResultsError: if a field has the wrong form, or two measurements are of the same figure.
    """
    if not measurements:
        raise UnbackedNumberError(f"{where} has no measurements. Append what measurement(...) returns.")
    seen: set[str] = set()
    for index, entry in enumerate(measurements):
        place = f"{where}, results[{index}]"
        _check_measurement(entry, place)
        key = json.dumps([entry.task, entry.config, entry.setting, entry.metric], sort_keys=True)
        if key in seen:
            raise ResultsError(
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
        raise UnbackedNumberError(f"{where}: {entry.metric} has no values; expected one per seed, got {values!r}.")
    for seed, value in enumerate(values):
        if not _is_figure(value):
            raise UnbackedNumberError(
                f"{where}: values[{seed}] of {entry.metric} is {value!r}, not a finite number. Did that run diverge?"
            )
    follows = {"n": len(values), "mean": statistics.fmean(values), "std": statistics.pstdev(values)}
    for name, expected in follows.items():
        got = getattr(entry, name)
        if not _is_figure(got) or not math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12):
            raise UnbackedNumberError(
                f"{where}: {name} of {entry.metric} is {got!r}, but {expected!r} follows from its values. {_BY_THE_RUN}"
            )
    if entry.paper is not None:
        _check_paper(entry.paper, f"{where}: paper")


def _check_setting(setting: Any, where: str) -> None:
    if not isinstance(setting, dict):
        raise ResultsError(f"{where}: setting must be a mapping of names to JSON values, got {setting!r}.")
    try:
        restored = json.loads(json.dumps(setting, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ResultsError(
            f"{where}: setting {setting!r} is not JSON ({error}). Use plain numbers and text."
        ) from error
    if restored != setting:
        raise ResultsError(
            f"{where}: setting {setting!r} would be read back as {restored!r}. Use text for names, lists for tuples."
        )


def _check_paper(paper: PaperFigure, where: str) -> None:
    if not _is_figure(paper.mean) or not (paper.std is None or _is_figure(paper.std)):
        raise ResultsError(f"{where}: mean and std must be finite numbers (std may be null), got {paper!r}.")
    place: Any = paper.where
    if not isinstance(place, str) or not place.strip():
        raise UnbackedNumberError(f"{where} does not say where in the paper its figure stands, for example 'Table 1'.")


def _check_text(value: Any, where: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ResultsError(f"{where} must be a text that is not empty, got {value!r}.")


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_BY_THE_RUN = "Results are written by the run, never by hand: use Results.collect() and measurement()."
