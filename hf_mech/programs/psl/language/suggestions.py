"""Suggestions for error messages: the known names that are close to an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def either(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *most, last = list(names) or ["nothing more"]
    return f"{', '.join(most)} or {last}" if most else last


def did_you_mean(name: str, known: Iterable[str], otherwise_all: bool = True) -> str:
    """`Did you mean ...? ` for a name that is close to a known one.

    Args:
        name: the unknown name.
        known: the known names.
        otherwise_all: whether to list all known names if none is close and there are few.

    >>> did_you_mean("regoin", ["region", "field"])
    'Did you mean `region`? '
    >>> did_you_mean("x", ["region", "field"])
    'Known: region, field. '
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    if close:
        return f"Did you mean {either(f'`{match}`' for match in close)}? "
    return f"Known: {', '.join(known)}. " if otherwise_all and 0 < len(known) <= 12 else ""
