"""The parser of PSL: text -> `syntax.Program`, or an error that shows the line."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

import lark
from lark import Token, Tree

from hf_mech.programs.errors import PSLError, refused
from hf_mech.programs.psl.check import did_you_mean, either
from hf_mech.programs.psl.conditions import (
    ORDERS,
    Alternatives,
    Conjunction,
    InexpressibleError,
    all_of,
    any_of,
    compared,
    in_sequence,
)
from hf_mech.programs.psl.syntax import (
    DEFAULT_BOUND,
    Assignment,
    Constants,
    Place,
    Production,
    Program,
    Reference,
    Repeat,
    Test,
)

# ----------------------------------------------------------------------------------------------------------------------
# The layout of PSL: turns line ends, indentation and comments into tokens of the grammar.


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


# ----------------------------------------------------------------------------------------------------------------------
# The parser of PSL: text -> `syntax.Program`, or an error that shows the line.


SECTIONS = ("registers", "constants", "system", "watch", "initial", "prompt", "values", "stop")
_LISTS = ("watch", "prompt", "stop")
"""The declarations; they come before the statements, in any order."""

_Node = Any
"""A `lark.Tree` or one of its tokens, depending on the grammar rule."""

_SHOWN = {
    "NAME": "a name",
    "STRING": "a quoted string",
    "NUMBER": "a number",
    "OPERATOR": "`==`",
    "WHERE": "`where`",
    "COMMENT": "a comment",
    "_NL": "the end of the line",
    "_INDENT": "an indented block",
    "_DEDENT": "the end of the block",
    "$END": "the end of the program",
}


def parse_program(text: str, name: str = "<string>") -> Program:
    """The program in `text`, not yet checked (`check.check_program`).

    Args:
        text: PSL; any line ends, tabs or spaces.
        name: the text's name in messages, such as its file.

    Raises:
        PSLError: `text` is not PSL; names the line, the column and the expected form, and shows the line; a constant is
            not declared, or a name is declared twice.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _Builder(text, name).program(_tree(text, name))


@functools.cache
def _grammar() -> lark.Lark:
    text = resources.files(__package__).joinpath("psl.lark").read_text(encoding="utf-8")
    return lark.Lark(text, parser="lalr", lexer="basic", propagate_positions=False)


def _tree(text: str, name: str) -> _Node:
    """The syntax tree; the tokens reach the parser through `lay_out`."""

    def error(message: str, token: Any) -> PSLError:
        return PSLError(message, token.line, token.column, text, name)

    parser = _grammar().parse_interactive("")
    last = None
    try:
        for token in lay_out(_grammar().lex(text)):
            parser.feed_token(token)
            last = token
        return parser.feed_eof(last)
    except LayoutError as wrong:
        raise error(str(wrong), wrong.place) from None
    except lark.UnexpectedCharacters as wrong:
        raise error(_unexpected_character(wrong), wrong) from None
    except lark.UnexpectedToken as wrong:
        if wrong.line in (None, -1, "?"):  # an empty text has no token
            raise PSLError("the program is empty", name=name) from None
        raise error(_unexpected_token(wrong, last, parser.accepts()), wrong) from None


def _unexpected_character(wrong: lark.UnexpectedCharacters) -> str:
    if wrong.char in "'\"":
        return "this string is not closed on its line"
    if wrong.char in "+*%":
        return f"the character {wrong.char!r} has no meaning here: there is no arithmetic but `@pos_increment`"
    return f"the character {wrong.char!r} has no meaning here: quote words that are no names"


def _unexpected_token(wrong: lark.UnexpectedToken, last: Token | None, accepted: Iterable[str]) -> str:
    token = wrong.token
    accepted = sorted(set(accepted) - {"COMMENT", "$END"})
    found = _SHOWN.get(token.type, "") if token.type.startswith("_") else f"`{token}`"
    if token.type == "$END":
        found = "the end of the program"
    message = f"found {found or 'nothing'}, expected {either(_shown(kind) for kind in accepted)}"
    return message + _hint(token, last, set(accepted))


def _hint(token: Token, last: Token | None, accepted: set[str]) -> str:
    """A hint about the likely mistake; `last` is the token before."""
    if accepted == {"COLON"} and last is not None and last.type == "NAME":
        if token.type == "LSQB":
            return ". Tests stand behind `where`, assignments on indented lines below it"
        close = did_you_mean(
            last, ("where", "where_lm", "where_rm", "repeat", "until", "causal_attn", *SECTIONS), False
        )
        return f". {close}".rstrip(" .")
    if "OPERATOR" in accepted and token.type == "EQUAL":
        return ". A test is written with `==`; `=` assigns"
    if "EQUAL" in accepted and (token.type in ("OPERATOR", "COLON")):
        return ". An assignment is written with `=`"
    if "OPERATOR" in accepted and token.type == "AT":
        return ". A function stands on the right side of a test: swap the sides"
    if "AND" in accepted and token.type == "COMMA":
        return ". Tests are joined by `and`"
    if token.type == "NUMBER" and accepted == {"RSQB"}:
        return ". Cells are `n` and `N`; a neighbour is found by a test: `position[n] == position[N]@pos_decrement`"
    if token.type == "AT":
        return ". A function stands behind a register that is read: `position[n] == position[N]@pos_decrement`"
    if (
        token.type in ("WHERE", "REPEAT", "UNTIL", "AND", "OR", "IN", "NOT")
        and "NAME" in accepted
        and "WHERE" not in accepted
    ):
        return f". `{token}` is a word of the language and can be no name; as a value it is quoted"
    if token.type == "_INDENT":
        return ". Only the lines below `where` and `repeat` are indented"
    return ""


def _shown(kind: str) -> str:
    if kind in _SHOWN:
        return _SHOWN[kind]
    return f"`{_grammar().get_terminal(kind).pattern.value}`"


class _Builder:
    """Builds a program from a syntax tree; by the declarations, names become registers or values."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
        self.names: dict[str, dict[str, Token]] = {section: {} for section in SECTIONS}  # the token of each entry
        self.causal = False

    def program(self, tree: _Node) -> Program:
        lines = list(tree.children)
        heads = []
        while lines and lines[0].data == "declaration":  # declarations first: later names refer to them
            heads.append(lines.pop(0))
        for head in heads:
            self.declare(head)
        self.resolve()
        statements = tuple(self.statements(lines))
        sections = self.sections
        return Program(
            registers=sections["registers"],
            constants=sections["constants"],
            system=sections["system"],
            statements=statements,
            watch=tuple(sections["watch"]),
            initial=sections["initial"],
            prompt=tuple(sections["prompt"]),
            values=sections["values"],
            stop=tuple(sections["stop"].values()),
            source=self.text,
        )

    # -- declarations

    def declare(self, tree: _Node) -> None:
        head, body = tree.children
        if head == "causal_attn":
            self.set_causal(head, body)
            return
        if head not in SECTIONS:
            raise self.syntax_error(
                f"`{head}:` is no declaration. {did_you_mean(head, (*SECTIONS, 'causal_attn'))}", head
            )
        brackets = "brackets" if head in _LISTS else "braces"
        if not isinstance(body, Tree) or body.data != brackets:
            form = f"{head}: [...]" if brackets == "brackets" else f"{head}: {{...}}"
            raise self.syntax_error(f"this declaration has the form `{form}`", head)
        for entry in body.children:
            self.declare_entry(head, *entry.children)

    def declare_entry(self, head: Token, key: Token, value: _Node) -> None:
        """One entry; constants of `initial`, `values` and `stop` stay tokens until all sections are read."""
        section = self.sections[head]
        name = self.literal(key)
        self.names[head].setdefault(name, key)
        if head == "constants" and key.type != "NAME" and value is not None:
            raise self.syntax_error("a constant with a value has a name: `name: 'value'`", key)
        if head != "constants" and head != "stop" and key.type != "NAME":
            raise self.syntax_error("expected a register's or role's name, without quotes", key)
        if name in section:
            raise self.check_error(name, key, f"is declared twice in `{head}`", "Leave one of them out.")
        if isinstance(value, Tree) != (head == "values"):
            raise self.syntax_error(f"an entry of `values` is `register: [...]`, one of `{head}` has no list", key)
        wants_value = {"registers": None, "constants": None, **dict.fromkeys(_LISTS, False)}.get(head, True)
        if wants_value is not None and wants_value != (value is not None):
            wrong = "needs a value: `name: value`" if wants_value else "takes no value"
            raise self.syntax_error(f"an entry of `{head}` {wrong}", key)
        if isinstance(value, Token) and value.type == "NAME" and head in ("registers", "constants"):
            raise self.syntax_error(f"quote the value: `{name}: '{value}'`", value)
        if head in ("registers", "constants"):
            section[name] = name if value is None else self.literal(value)
        elif head == "system":
            section[name] = self.literal(value)
        else:
            section[name] = key if value is None else value

    def resolve(self) -> None:
        """Turns the tokens of `initial`, `values` and `stop` into values."""
        sections = self.sections
        sections["initial"] = {name: self.constant(token) for name, token in sections["initial"].items()}
        sections["values"] = {name: self.constants(tree) for name, tree in sections["values"].items()}
        sections["stop"] = {name: self.constant(token) for name, token in sections["stop"].items()}
        for name, token in self.names["constants"].items():
            if name in sections["registers"]:
                raise self.check_error(
                    name, token, "is declared as a register and as a constant", "Rename one of them."
                )

    def set_causal(self, head: Token, value: _Node) -> None:
        if not isinstance(value, Token) or value not in ("true", "false"):
            raise self.syntax_error("write `causal_attn: true` or `causal_attn: false`", head)
        self.causal = value == "true"

    # -- statements

    def statements(self, trees: Iterable[_Node]) -> Iterator[Production | Repeat]:
        for tree in trees:
            if tree.data == "production":
                yield from self.production(tree)
            elif tree.data == "repeat":
                yield self.repeat(tree)
            else:
                head, body = tree.children
                if head != "causal_attn":
                    reason = "stands before the first production" if head in SECTIONS else "is no declaration"
                    raise self.syntax_error(f"`{head}:` {reason}", head)
                self.set_causal(head, body)

    def production(self, tree: _Node) -> Iterator[Production]:
        """A production; one for each alternative of its condition."""
        comment, where, tests, *trees = tree.children
        alternatives = self.alternatives(tests, where)
        assignments = tuple(self.assignment(assignment) for assignment in trees)
        if len(alternatives) > 1:
            with self.expressible(_either(alternatives), where):
                in_sequence(alternatives, assignments)
        for alternative in alternatives:
            yield Production(
                tests=alternative.tests,
                assignments=assignments,
                right_match=where == "where_rm",
                causal=self.causal or alternative.causal,
                comment=_comment(comment),
                place=_place(where),
            )

    def repeat(self, tree: _Node) -> Repeat:
        comment, head, number, body, until = tree.children
        statements = tuple(self.statements(body.children))
        if not statements:
            raise self.check_error("repeat", head, "has no production", "Give it one, or leave the block out.")
        (condition,) = until.children
        if isinstance(condition, Token) and condition != "NO_CHANGE":
            raise self.syntax_error("expected `until NO_CHANGE` or `until` and tests", condition)
        return Repeat(
            body=statements,
            until=None if isinstance(condition, Token) else self.until(condition, head),
            bound=DEFAULT_BOUND if number is None else self.bound(number),
            comment=_comment(comment),
            place=_place(head),
        )

    def bound(self, number: Token) -> int:
        if number.startswith("-") or len(number) > 9 or int(number) == 0:
            raise self.check_error(
                f"repeat {number}", number, "a bound is a number from 1 to 999999999", "E.g. `repeat 500:`."
            )
        return int(number)

    def until(self, tree: _Node, head: Token) -> tuple[Test, ...]:
        """The condition that ends a block: tests that one query and key express."""
        alternatives = self.alternatives(tree, head)
        if len(alternatives) > 1:
            reason = "a block ends by the tests of one query and key, which have no alternatives"
            mend = "Set a register in the block, by a production for each, and test that: `until mark[n] == 1`."
            raise self.check_error(f"until {_either(alternatives)}", head, reason, mend)
        if alternatives[0].causal:
            reason = "the test that ends a block reads all cells, never only those up to N"
            mend = "Set a register in the block by a production with this test, and test that: `until mark[n] == 1`."
            raise self.check_error(f"until {alternatives[0]}", head, reason, mend)
        return alternatives[0].tests

    def alternatives(self, tree: _Node, token: Token) -> Alternatives:
        """The alternatives of a condition, of which one must hold; most conditions have one."""
        waiting, made = [(tree, False)], list[Alternatives]()
        while waiting:  # without recursion: parentheses may be deep
            node, opened = waiting.pop()
            if node.data not in ("tests", "any", "all"):
                made.append((self.test(node),))
            elif not opened:
                waiting.append((node, True))
                waiting.extend((child, False) for child in reversed(node.children))
            else:
                parts = made[-len(node.children) :]
                del made[-len(node.children) :]
                with self.expressible("and", token):
                    made.append(all_of(parts) if node.data == "all" else any_of(parts))
        return made[0]

    def test(self, tree: _Node) -> Conjunction:
        left, *middle, right = tree.children
        if tree.data != "test":
            place = left.children[0]
            constants = Constants(self.constants(right), _place(place))
            return Conjunction((Test(self.test_left(left), "in" if tree.data == "test_in" else "not in", constants),))
        (sign,) = middle
        other: Reference | Constants
        if right.data == "reference":
            other = self.reference(right)
        else:
            (token,) = right.children
            other = Constants((self.constant(token),), _place(token))
        read = self.reference(left) if sign in ORDERS else self.test_left(left)
        if sign not in ORDERS:
            return Conjunction((Test(read, str(sign), other),))
        with self.expressible(f"{read} {sign} {other}", sign):
            values = self.sections["values"].get(read.register)
            return compared(read, str(sign), other, self.sections["system"].get("position", ""), values)

    @contextmanager
    def expressible(self, expression: str, token: Token) -> Iterator[None]:
        """Names the place of a condition that has no exact form."""
        try:
            yield
        except InexpressibleError as error:
            raise self.check_error(expression, token, error.reason, error.mend) from None

    def test_left(self, tree: _Node) -> Reference:
        reference = self.reference(tree)
        if reference.function:
            raise self.syntax_error("a function stands on the right side of a test: swap the sides", tree.children[2])
        return reference

    def assignment(self, tree: _Node) -> Assignment:
        left, right = tree.children
        target = self.reference(left)
        if target.cell != "N" or target.function:
            raise self.syntax_error("only the cell N is updated: `register[N] = ...`", left.children[1])
        if right.data == "constant":
            return Assignment(target.register, self.constant(right.children[0]), target.place)
        return Assignment(target.register, self.reference(right), target.place)

    def reference(self, tree: _Node) -> Reference:
        register, cell, function = tree.children
        if cell not in ("n", "N"):
            raise self.syntax_error(
                f"`{cell}` is no cell: `n` is the cell that is read, `N` the one that is updated", cell
            )
        return Reference(str(register), str(cell), str(function) if function else None, _place(register))

    # -- values

    def constants(self, tree: _Node) -> tuple[str, ...]:
        values = []
        for entry in tree.children:
            key, value = entry.children
            if value is not None:
                raise self.syntax_error("expected a list of constants", key)
            values.append(self.constant(key))
        return tuple(values)

    def constant(self, token: Token) -> str:
        """The value of a constant: a declared name, a number, or a quoted string."""
        if token.type != "NAME":
            return self.literal(token)
        if token in self.sections["constants"]:
            return self.sections["constants"][token]
        if token in self.sections["registers"]:
            mend = f"Write `{token}[n]` or `{token}[N]`, or quote it if the word is meant."
            raise self.check_error(str(token), token, "is a register and stands for no value", mend)
        if token in ("nil", "None", "null"):
            mend = "Copy a register that is never assigned: it is nil. To test for nil, compare with it."
            raise self.check_error(str(token), token, "nil is no constant", mend)
        close = did_you_mean(token, (*self.sections["constants"], *self.sections["registers"]), False)
        mend = (
            close or did_you_mean(token, self.sections["constants"])
        ) + f"Declare it (`constants: {{{token}}}`) or quote it (`'{token}'`)."
        raise self.check_error(str(token), token, "is not declared", mend)

    def literal(self, token: Token) -> str:
        if token.type != "STRING":
            return str(token)
        characters = iter(token[1:-1])
        text = ""
        for character in characters:
            if character == "\\":
                character = next(characters)
                if character not in "\\'\"":
                    raise self.syntax_error(f"`\\{character}` is no escape: a backslash is written `\\\\`", token)
            text += character
        if not text or len(text.split()) != 1 or text.split()[0] != text:
            raise self.syntax_error("a value is one word: not empty, without white space", token)
        return text

    # -- errors

    def syntax_error(self, message: str, token: Any) -> PSLError:
        return PSLError(message.rstrip(), token.line, token.column, self.text, self.name)

    def check_error(self, expression: str, token: Token, reason: str, mend: str) -> PSLError:
        return refused(expression, reason, mend, token.line or 0, token.column or 0, self.text, self.name)


def _either(alternatives: Alternatives) -> str:
    return " or ".join(str(alternative) for alternative in alternatives)


def _place(token: Token) -> Place:
    return Place(token.line or 0, token.column or 0)


def _comment(token: Token | None) -> str:
    return "" if token is None else token.lstrip("#/").strip()
