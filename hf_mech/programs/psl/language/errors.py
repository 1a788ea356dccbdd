"""The errors of PSL programs and prompts. Each names the place, the reason and the remedy."""

from __future__ import annotations


class PSLError(ValueError):
    """Every error of hf_mech.programs.psl about a program, a prompt or a compiled form."""


class _SourceError(PSLError):
    """An error at a place in a program's text.

    Args:
        message: the fault, and the expected form.
        line: counted from 1; 0 if there is no place.
        column: counted from 1; 0 for the whole line.
        source: the program's text, to show the line.
        name: the program's name or file.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0, source: str = "", name: str = "<string>") -> None:
        self.message = message
        self.line = line
        self.column = column
        self.name = name
        super().__init__(message + _shown(line, column, source, name))


class PSLSyntaxError(_SourceError):
    """The text is not PSL. Has `line`, `column` and `message`; the error's text shows the line and a caret below it."""


class PSLCheckError(_SourceError):
    """The program is PSL, but has no exact meaning or no exact compiled form.

    Args:
        expression: the expression at fault, as parsed.
        reason: why it is refused.
        mend: what to write instead.
        line, column, source, name: as in `_SourceError`.
    """

    def __init__(
        self,
        expression: str,
        reason: str,
        mend: str,
        line: int = 0,
        column: int = 0,
        source: str = "",
        name: str = "<string>",
    ) -> None:
        self.expression = expression
        self.reason = reason
        self.mend = mend
        super().__init__(f"`{expression}`: {reason}. {mend}", line, column, source, name)


class ProgramError(PSLError):
    """A program cannot be found, read, or run as requested: an unknown name, a function that is not registered."""


class RepeatBoundError(PSLError):
    """A repeat block did not end within its bound.

    Args:
        line: the line of the block's `repeat`; 0 if it has none.
        bound: the maximum number of repetitions of the block.
    """

    def __init__(self, line: int, bound: int) -> None:
        self.line = line
        self.bound = bound
        where = f"the repeat block of line {line}" if line else "a repeat block"
        super().__init__(
            f"{where} has not ended after {bound} repetitions, its bound. If the program does end, "
            f"allow it more, e.g. `repeat {10 * bound}:`"
        )


class PromptError(PSLError):
    """A prompt that a program cannot read: empty, or not a string or list of words."""


class PromptTooLongError(PromptError):
    """A prompt, or the text generated from it, has more words than the position register has numbers.

    Args:
        length: the number of words, or a lower bound of it.
        limit: the maximum number of words.
    """

    def __init__(self, length: int, limit: int) -> None:
        self.length = length
        self.limit = limit
        super().__init__(
            f"{length} words, prompt and completion together, are more than the {limit} positions of the program's "
            f"position register. Shorten the prompt or raise the limit: "
            f"max_position_embeddings={2 ** length.bit_length()}"
        )


class QKVLError(PSLError):
    """Malformed QKVL in JSON; the message names the place and the expected form."""


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
