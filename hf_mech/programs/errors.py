"""The errors of programs, prompts and tasks. Each names the place, the reason and the remedy."""

from __future__ import annotations


class ProgramsError(ValueError):
    """Every error of hf_mech.programs: a program, a prompt, a setting or a file that it refuses.

    Attributes:
        bound: the most repetitions of a repeat block that did not end within them; None for other errors.
        limit: the most words of prompt and completion, if they are too many; None for other errors.
    """

    bound: int | None = None
    limit: int | None = None


class PSLError(ProgramsError):
    """A text that is no PSL, or a program without an exact meaning or an exact compiled form.

    The error's text shows the line, and a caret below the place.

    Args:
        message: the fault, and the expected form.
        line: counted from 1; 0 if there is no place.
        column: counted from 1; 0 for the whole line.
        source: the program's text, to show the line.
        name: the program's name or file.

    Attributes:
        expression: the expression that the checker refuses, as parsed; empty if the text is no PSL.
        reason: why the checker refuses it.
        mend: what to write instead.
    """

    expression = reason = mend = ""

    def __init__(self, message: str, line: int = 0, column: int = 0, source: str = "", name: str = "<string>") -> None:
        self.message, self.line, self.column, self.name = message, line, column, name
        super().__init__(message + _shown(line, column, source, name))


def refused(
    expression: str, reason: str, mend: str, line: int = 0, column: int = 0, source: str = "", name: str = "<string>"
) -> PSLError:
    """The error of an expression that the checker refuses, for this reason; `mend` says what to write instead."""
    error = PSLError(f"`{expression}`: {reason}. {mend}", line, column, source, name)
    error.expression, error.reason, error.mend = expression, reason, mend
    return error


def endless_repeat(line: int, bound: int) -> ProgramsError:
    """The error of a repeat block that did not end within its bound; its `repeat` stands in this line, 0 if in none."""
    where = f"the repeat block of line {line}" if line else "a repeat block"
    error = ProgramsError(
        f"{where} has not ended after {bound} repetitions, its bound. If the program does end, "
        f"allow it more, e.g. `repeat {10 * bound}:`"
    )
    error.bound = bound
    return error


def too_many_words(length: int, limit: int) -> ProgramsError:
    """The error of a prompt, or the text generated from it, of more words than the position register has numbers."""
    error = ProgramsError(
        f"{length} words, prompt and completion together, are more than the {limit} positions of the program's "
        f"position register. Shorten the prompt or raise the limit: "
        f"max_position_embeddings={2 ** length.bit_length()}"
    )
    error.limit = limit
    return error


def _shown(line: int, column: int, source: str, name: str) -> str:
    """`(name, line 3, column 7)` and, if the text is known, the line with a caret under the column."""
    if not line:
        return ""
    where = f"\n  {name}, line {line}" + (f", column {column}" if column else "")
    lines = source.split("\n") if source else []
    if line > len(lines):
        return where
    # Tabs are kept before the caret, so it is below its character for any tab width.
    text = lines[line - 1]
    caret = "".join("\t" if character == "\t" else " " for character in text[: column - 1])
    caret += " " * (column - 1 - len(text))
    return f"{where}\n    {text}" + (f"\n    {caret}^" if column else "")
