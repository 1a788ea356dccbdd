"""The texts of a PDDL domain and problem, and whether they belong together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hf_mech.planning.pddl.errors import MismatchedPddlError, PddlFileError

_HEADER = re.compile(r"^\s*\(\s*define\s*\(\s*([^\s()]+)\s+([^\s()]+)\s*\)", re.IGNORECASE)
_DOMAIN_OF_PROBLEM = re.compile(r"\(\s*:domain\s+([^\s()]+)\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """A PDDL text; `label` is its path, or its kind ("domain", "problem") if it was given as text."""

    text: str
    label: str
    kind: str

    @classmethod
    def of(cls, path_or_text: str | Path, kind: str) -> Source:
        """The text of a path, or the text itself: a string that begins with `(` or `;`, or has several lines.

        Raises:
            PddlFileError: the path cannot be read, or the file is not UTF-8.
        """
        if isinstance(path_or_text, str):
            if not path_or_text.strip():
                raise PddlFileError(f"the {kind} is an empty string; give the path of a PDDL file, or its text", kind)
            text = path_or_text.lstrip()
            if text.startswith(("(", ";")) or "\n" in text:
                return cls(path_or_text, kind, kind)
        label = str(path_or_text)
        try:
            content = Path(path_or_text).read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            reason = getattr(error, "strerror", None) or str(error)
            raise PddlFileError(
                f"the {kind} file cannot be read ({reason}); give the path of a PDDL file, or the PDDL itself as a "
                f"string that begins with a parenthesis. The current folder is {Path.cwd()}.",
                label,
            ) from error
        if not content.strip():
            raise PddlFileError(f"the {kind} file is empty; give a PDDL file with (define ({kind} ...) ...)", label)
        try:
            return cls(content.decode("utf-8-sig"), label, kind)
        except UnicodeDecodeError as error:
            encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
            line = content.count(b"\n", 0, error.start) + 1
            raise PddlFileError(
                f"the {kind} file is not UTF-8 text: byte 0x{content[error.start]:02x} in line {line}. Save it as "
                f"UTF-8, for example: iconv -f {encoding} -t utf-8 {label} > new.pddl",
                label,
            ) from error

    @property
    def bare(self) -> str:
        """The text with its comments blanked out; every other character keeps its place."""
        return re.sub(r";[^\n]*", lambda comment: " " * len(comment[0]), self.text)


def check_pair(domain: Source, problem: Source) -> None:
    """Refuses two texts that do not belong together. Texts without a header are left to the parser.

    Raises:
        MismatchedPddlError: the two are swapped, of the same kind, or the problem is of another domain.
    """
    headers = [_HEADER.match(source.bare) for source in (domain, problem)]
    kinds = [header[1].lower() if header else None for header in headers]
    if kinds == ["problem", "domain"]:
        raise MismatchedPddlError(
            f"this is the problem, and {problem.label} is the domain: the two are swapped. Pass the domain first, the "
            "problem second.",
            domain.label,
        )
    for source, kind in ((domain, kinds[0]), (problem, kinds[1])):
        if kind in ("domain", "problem") and kind != source.kind:
            raise MismatchedPddlError(
                f"this is a {kind}, expected a {source.kind}: (define ({source.kind} ...)). Pass one domain and one "
                "problem of it.",
                source.label,
            )
    wanted = _DOMAIN_OF_PROBLEM.search(problem.bare)
    if headers[0] and wanted and wanted[1].lower() != headers[0][2].lower():
        line = problem.bare.count("\n", 0, wanted.start(1)) + 1
        column = wanted.start(1) - (problem.bare.rfind("\n", 0, wanted.start(1)) + 1) + 1
        raise MismatchedPddlError(
            f"this is a problem of the domain {wanted[1]!r}, but the domain given ({domain.label}) is "
            f"{headers[0][2]!r}. Give the problem's own domain, or correct the name in (:domain ...).",
            problem.label,
            line,
            column,
            problem.text,
        )


def nested_effect(domain: Source) -> str | None:
    """`when` or `forall` if one stands in the effect of a `when`. PDDL does not allow it.

    unified-planning's parser accepts it, but forgets the outer condition.
    """
    parents: list[tuple[str, int]] = []  # the head of every open list, and the number of lists in it so far
    tokens = re.findall(r"[()]|[^\s()]+", domain.bare.lower())
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if token == "(":
            if parents:
                parents[-1] = (parents[-1][0], parents[-1][1] + 1)
            if following in ("when", "forall") and any(head == "when" and lists > 1 for head, lists in parents):
                return following
            parents.append((following, 0))
        elif token == ")" and parents:
            parents.pop()
    return None
