"""Errors of PDDL: it cannot be read, it does not parse, it is not STRIPS, it is too large to ground."""

from __future__ import annotations

from hf_mech.models.strips.strips_errors import StripsError


class PddlError(StripsError):
    """PDDL that cannot be read.

    Attributes:
        source: "domain" or "problem", or the path of the file.
        line, column: the place, both from 1; None if the parser does not report it.
    """

    def __init__(
        self, message: str, source: str = "domain", line: int | None = None, column: int | None = None, text: str = ""
    ) -> None:
        self.source, self.line, self.column = source, line, column
        where = source if line is None else f"{source}, line {line}, column {column}"
        super().__init__(f"PDDL {where}: {message}{_excerpt(text, line, column)}")


class PddlFileError(PddlError, OSError):
    """A path that cannot be read: no such file, a folder, no permission; or a file that is not UTF-8 text."""


class MismatchedPddlError(PddlError):
    """Two files that do not belong together: swapped, of the same kind, or a problem of another domain."""


class UnsupportedPddlError(StripsError):
    """PDDL that is well formed but has no propositional STRIPS form.

    Attributes:
        where: the action (or "The goal", "The problem") at fault.
        feature: the feature that STRIPS does not have.
    """

    def __init__(self, where: str, feature: str, how_to_mend: str) -> None:
        self.where, self.feature = where, feature
        super().__init__(
            f"{where} uses {feature}, which propositional STRIPS does not have (it has positive preconditions, and "
            f"unconditional add and delete effects on propositions). {how_to_mend}"
        )


class GroundingError(StripsError):
    """A lifted problem with more ground actions or ground atoms than `max_ground`; `size` is the estimate."""

    def __init__(self, message: str, size: int) -> None:
        self.size = size
        super().__init__(message)


def _excerpt(text: str, line: int | None, column: int | None) -> str:
    """The offending line with a caret under the column, or nothing."""
    lines = text.splitlines()
    if line is None or column is None or not 1 <= line <= len(lines):
        return ""
    return f"\n    {lines[line - 1]}\n    {' ' * (column - 1)}^"
