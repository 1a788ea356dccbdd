"""Checks of values that a user gives. Pydantic would raise an error of its own, not that of the room."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_whole(name: str, value: Any, least: int, error: type[ValueError], optional: bool = False) -> None:
    """Raises the error if the value is no whole number of at least `least`.

    Args:
        name: of the value in the message.
        optional: whether None is one, too.
    """
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise error(f"{name} must be a whole number, {least} or more{', or None' if optional else ''}, got {value!r}.")


def check_bool(name: str, value: Any, error: type[ValueError]) -> None:
    """Raises the error if the value is neither True nor False; "no" would count as true."""
    if not isinstance(value, bool):
        raise error(f"{name} must be True or False, got {value!r}.")
