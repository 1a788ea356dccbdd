"""A card's example: the first Python block of a README, and the names of repositories in it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hf_mech.hub.catalogue import ORGANIZATION
from hf_mech.hub.files import HubError

_BLOCK = re.compile(r"^```python\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)


def first_python_block(text: str, where: str) -> str:
    """The first Python block of a Markdown text.

    Args:
        text: a README.
        where: its place, for the error.

    Raises:
        HubError: it has none.
    """
    if (found := _BLOCK.search(text)) is None:
        raise HubError(f"{where} has no example: no block begins with ```python and ends with ```. Add one.")
    return found[1]


def with_sources(text: str, sources: Mapping[str, str]) -> str:
    """The text with other places for the checkpoints that it names as `hf_mech/<name>`.

    Args:
        text: a README, or code.
        sources: for the checkpoint's name, the folder or the repository to be named instead. Other names stay.

    >>> with_sources("hf_mech/dat-sort, hf_mech/dat-sort-2.", {"dat-sort": "me/sorter"})
    'me/sorter, hf_mech/dat-sort-2.'
    """
    name = re.compile(rf"(?<![\w./-]){re.escape(ORGANIZATION)}/([\w-]+(?:\.[\w-]+)*)")
    return name.sub(lambda found: sources.get(found[1], found[0]), text)
