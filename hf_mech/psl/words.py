"""Pieces of messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def either(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *most, last = list(names) or ["nothing more"]
    return f"{', '.join(most)} or {last}" if most else last


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`Did you mean ...? ` for a name that is close to a known one, the known names if they are few, or nothing."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    if close:
        return f"Did you mean {either(f'`{match}`' for match in close)}? "
    return f"Known: {', '.join(known)}. " if 0 < len(known) <= 12 else ""
