"""The Python of a card, run with a checkpoint that lies somewhere else than the card says."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

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


def run_snippet(code: str, repository: str, source: str) -> str:
    """Runs a snippet, and returns its output.

    Args:
        code: that loads `repository`.
        repository: its name on the Hub.
        source: a folder, or another repository, to load instead.
    """
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code.replace(f'"{repository}"', repr(source)), "<card>", "exec"), {"__name__": "__card__"})
    return printed.getvalue()
