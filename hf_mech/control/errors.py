"""The error of environments, policies and their data. Each message names the fault and its remedy."""

from __future__ import annotations

from typing import Any

import numpy as np


class ControlError(ValueError):
    """What an environment, a policy, a recording or a data set of episodes refuses."""


class MissingExtraError(ControlError, ImportError):
    """A package that an extra of hf-mech installs is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed. Run: pip install 'hf-mech[{extra}]'")
        self.package, self.extra = package, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)  # a worker process hands it on


def check_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Raises ControlError if the value is not a whole number, or is not in `least` to `most`."""
    expected = f"a whole number, {least} or more" if most is None else f"a whole number, {least} to {most}"
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        raise ControlError(f"{name} must be {expected}, got {value!r}.")


def check_frame_size(frame_size: Any, least: tuple[int, int], most: tuple[int, int]) -> None:
    """Raises ControlError if the value is not (height, width) within these bounds."""
    pair = isinstance(frame_size, tuple | list) and len(frame_size) == 2
    if not pair or not all(
        isinstance(size, int) and low <= size <= high for size, low, high in zip(frame_size, least, most, strict=True)
    ):
        raise ControlError(
            f"frame_size must be (height, width), whole numbers from {least} to {most}, got {frame_size!r}."
        )
