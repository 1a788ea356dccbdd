"""The Python of a card, run with a checkpoint that lies somewhere else than the card says."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import redirect_stdout

from hf_mech.hub.catalogue import ORGANIZATION
from hf_mech.hub.files import HubError

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def first_snippet(text: str) -> str:
    """The first block of Python in a card.

    Raises:
        HubError: it has none.
    """
    if (found := _BLOCK.search(text)) is None:
        raise HubError("The card has no block of Python: write one under its heading 'How to use'.")
    return found[1]


def with_sources(text: str, sources: Mapping[str, str]) -> str:
    """The text with other places for the checkpoints that it names as `hf_mech/<name>`.

    Args:
        text: a card, or code.
        sources: for the checkpoint's name, the folder or the repository to be named instead. Other names stay.

    >>> with_sources("hf_mech/dat-sort, hf_mech/dat-sort-2.", {"dat-sort": "me/sorter"})
    'me/sorter, hf_mech/dat-sort-2.'
    """
    name = re.compile(rf"(?<![\w./-]){re.escape(ORGANIZATION)}/([\w-]+(?:\.[\w-]+)*)")
    return name.sub(lambda found: sources.get(found[1], found[0]), text)


def run_snippet(code: str) -> str:
    """Runs a snippet, and returns its output."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "<card>", "exec"), {"__name__": "__card__"})
    return printed.getvalue()
