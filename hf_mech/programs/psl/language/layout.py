"""The layout of PSL: turns line ends, indentation and comments into tokens of the grammar."""

from __future__ import annotations

from collections.abc import Iterator

from lark import Token

MAX_NESTING = 50
"""The maximum depth of nested blocks."""

_TAB = 8
_CLOSING = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}


class LayoutError(Exception):
    """A line whose indentation fits no block, or brackets that are not closed; `place` is the token at fault."""

    def __init__(self, message: str, place: Token) -> None:
        super().__init__(message)
        self.place = place


def lay_out(tokens: Iterator[Token]) -> Iterator[Token]:
    """Raw tokens -> tokens with the layout made explicit.

    `_NL` remains only at the end of a statement's line: not in brackets, not after `and` and `or`, not on lines that
    are empty or hold only a comment. `_INDENT` and `_DEDENT` open and close blocks. The only comment that remains is
    the last one before a production or a repeat block, on its own line.

    Raises:
        LayoutError: for indentation that fits no block, nesting deeper than `MAX_NESTING`, or open brackets.
    """
    widths = [0]  # the indentation of the open blocks
    brackets: list[Token] = []
    indentation = ""
    in_line = False
    comment: Token | None = None
    last: Token | None = None
    for token in tokens:
        if token.type == "COMMENT":
            comment = comment if in_line else token
            continue
        if token.type == "_NL":
            indentation = token.rpartition("\n")[2]
            if in_line and not brackets and last is not None and last.type not in ("AND", "OR"):
                yield Token.new_borrow_pos("_NL", "\n", token)
                in_line = False
            continue
        if not in_line:
            yield from _blocks(len(indentation.expandtabs(_TAB)), widths, token)
            in_line = True
            if comment is not None and token.type in ("WHERE", "REPEAT"):
                yield comment
            comment = None
        if token.type in _CLOSING:
            brackets.append(token)
        elif token.type in _CLOSING.values() and brackets:
            brackets.pop()
        yield token
        last = token
    if last is None:
        return
    if brackets:
        raise LayoutError(f"`{brackets[-1]}` is never closed", brackets[-1])
    if in_line:
        yield Token.new_borrow_pos("_NL", "\n", last)
    for _ in widths[1:]:
        yield Token.new_borrow_pos("_DEDENT", "", last)


def _blocks(width: int, widths: list[int], token: Token) -> Iterator[Token]:
    """The blocks that a line opens or closes by its indentation; updates `widths`."""
    if width > widths[-1]:
        widths.append(width)
        if len(widths) > MAX_NESTING + 1:
            raise LayoutError(f"blocks are nested deeper than {MAX_NESTING}", token)
        yield Token.new_borrow_pos("_INDENT", "", token)
    while width < widths[-1]:
        widths.pop()
        yield Token.new_borrow_pos("_DEDENT", "", token)
    if width != widths[-1]:
        raise LayoutError("this indentation fits no block: indent as the lines of one block above", token)
