"""The papers behind the models and data sets: one BibTeX file for each, named by its key."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent

KEYS: tuple[str, ...] = tuple(sorted(path.stem for path in _HERE.glob("*.bib")))
"""The keys that `bibtex` takes."""


class UnknownPaperError(ValueError):
    """A key that no entry of the bibliography has."""


@cache
def bibtex(key: str) -> str:
    """The BibTeX entry of a paper, in ASCII, with a newline at its end.

    Raises:
        UnknownPaperError: there is no such entry; the message lists the keys that there are.

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
    if key not in KEYS:
        raise UnknownPaperError(f"The bibliography has no entry {key!r}; choose one of {', '.join(KEYS)}.")
    return (_HERE / f"{key}.bib").read_text(encoding="utf-8")


__all__ = ["KEYS", "UnknownPaperError", "bibtex"]
