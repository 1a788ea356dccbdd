"""The paper's five domains and larger ones, as PDDL in `domains/`: a folder has `domain.pddl` and a file a problem.

A problem's name is `<folder>-<file>`, or just `<folder>` if its file is `problem.pddl`; a new file is a new domain.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hf_mech.models.strips.strips_errors import StripsError
from hf_mech.planning.pddl import read_pddl
from hf_mech.planning.problem import StripsProblem

_FILES = {
    folder.parent.name if file.stem == "problem" else f"{folder.parent.name}-{file.stem}": file
    for folder in sorted((Path(__file__).parent / "domains").glob("*/domain.pddl"))
    for file in sorted(folder.parent.glob("*.pddl"))
    if file != folder
}

BUNDLED: tuple[str, ...] = tuple(_FILES)
"""The names that `load_bundled` accepts."""


@cache
def load_bundled(name: str) -> StripsProblem:
    """A bundled problem, grounded; cached. Raises StripsError for an unknown name."""
    if name not in _FILES:
        raise StripsError(f"There is no bundled domain {name!r}; choose one of {', '.join(BUNDLED)}.")
    return read_pddl(_FILES[name].parent / "domain.pddl", _FILES[name])
