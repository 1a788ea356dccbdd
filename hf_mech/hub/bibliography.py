"""The papers behind the models and data sets: the entries of bibliography.bib by their keys."""

from __future__ import annotations

import re
from pathlib import Path

from hf_mech.hub.files import HubError

_ENTRIES = Path(__file__).with_suffix(".bib").read_text(encoding="utf-8").split("\n\n")
_BY_KEY = {re.search(r"{(.+),", entry)[1]: f"{entry.strip()}\n" for entry in _ENTRIES}  # type: ignore[index]

KEYS = tuple(_BY_KEY)
"""The keys that `bibtex` takes."""


def bibtex(key: str) -> str:
    """The BibTeX entry of a paper, in ASCII, with a newline at its end.

    Raises:
        HubError: there is no such entry; the message lists the keys that there are.

    Example:

    ```python
    >>> print(bibtex("li2024stack"))
    @inproceedings{li2024stack,
      title     = {A Transformer with Stack Attention},
      author    = {Li, Jiaoda and White, Jennifer C. and Sachan, Mrinmaya and Cotterell, Ryan},
      booktitle = {Findings of the Association for Computational Linguistics: NAACL 2024},
      year      = {2024},
    }

    ```
    """
    if key not in _BY_KEY:
        raise HubError(f"The bibliography has no entry {key!r}; choose one of {', '.join(KEYS)}.")
    return _BY_KEY[key]


def title(key: str) -> str:
    """The title of a paper, in words.

    >>> title("hu2025belief")
    'The Belief State Transformer'
    """
    return re.sub("[{}]", "", re.search(r"title\s*=\s*(.+),\n", bibtex(key))[1])  # type: ignore[index]
