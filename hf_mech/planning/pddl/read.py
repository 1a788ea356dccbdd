"""PDDL read: the texts, unified-planning's parser, and the bundled problems."""

from __future__ import annotations

import logging
import re
import threading
import warnings
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hf_mech.planning.pddl.ground import Grounding
from hf_mech.planning.pddl.lifted import (
    refuse_too_large,
    refuse_unsupported,
    unsupported,
    without_numbers,
    without_quantifiers,
)
from hf_mech.planning.problem import PlanningError, StripsProblem

# ----------------------------------------------------------------------------------------------------------------------
# The texts of a PDDL domain and problem, and whether they belong together.


_HEADER = re.compile(r"^\s*\(\s*define\s*\(\s*([^\s()]+)\s+([^\s()]+)\s*\)", re.IGNORECASE)
_DOMAIN_OF_PROBLEM = re.compile(r"\(\s*:domain\s+([^\s()]+)\s*\)", re.IGNORECASE)


def _pddl_error(
    message: str, source: str, line: int | None = None, column: int | None = None, text: str = ""
) -> PlanningError:
    """An error with its place in a text, and that line with a caret under the column."""
    where = source if line is None else f"{source}, line {line}, column {column}"
    lines, shown = text.splitlines(), ""
    if line is not None and column is not None and 1 <= line <= len(lines):
        shown = f"\n    {lines[line - 1]}\n    {' ' * (column - 1)}^"
    return PlanningError(f"PDDL {where}: {message}{shown}", source, line, column)


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
            PlanningError: the path cannot be read, or the file is not UTF-8.
        """
        if isinstance(path_or_text, str):
            if not path_or_text.strip():
                raise _pddl_error(f"the {kind} is an empty string; give the path of a PDDL file, or its text", kind)
            text = path_or_text.lstrip()
            if text.startswith(("(", ";")) or "\n" in text:
                return cls(path_or_text, kind, kind)
        label = str(path_or_text)
        try:
            content = Path(path_or_text).read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            reason = getattr(error, "strerror", None) or str(error)
            raise _pddl_error(
                f"the {kind} file cannot be read ({reason}); give the path of a PDDL file, or the PDDL itself as a "
                f"string that begins with a parenthesis. The current folder is {Path.cwd()}.",
                label,
            ) from error
        if not content.strip():
            raise _pddl_error(f"the {kind} file is empty; give a PDDL file with (define ({kind} ...) ...)", label)
        try:
            return cls(content.decode("utf-8-sig"), label, kind)
        except UnicodeDecodeError as error:
            encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
            line = content.count(b"\n", 0, error.start) + 1
            raise _pddl_error(
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
        PlanningError: the two are swapped, of the same kind, or the problem is of another domain.
    """
    headers = [_HEADER.match(source.bare) for source in (domain, problem)]
    kinds = [header[1].lower() if header else None for header in headers]
    if kinds == ["problem", "domain"]:
        raise _pddl_error(
            f"this is the problem, and {problem.label} is the domain: the two are swapped. Pass the domain first, the "
            "problem second.",
            domain.label,
        )
    for source, kind in ((domain, kinds[0]), (problem, kinds[1])):
        if kind in ("domain", "problem") and kind != source.kind:
            raise _pddl_error(
                f"this is a {kind}, expected a {source.kind}: (define ({source.kind} ...)). Pass one domain and one "
                "problem of it.",
                source.label,
            )
    wanted = _DOMAIN_OF_PROBLEM.search(problem.bare)
    if headers[0] and wanted and wanted[1].lower() != headers[0][2].lower():
        line = problem.bare.count("\n", 0, wanted.start(1)) + 1
        column = wanted.start(1) - (problem.bare.rfind("\n", 0, wanted.start(1)) + 1) + 1
        raise _pddl_error(
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


# ----------------------------------------------------------------------------------------------------------------------
# PDDL to propositional STRIPS: parsed by unified-planning, compiled to STRIPS, grounded over its objects, pruned.


_LOCATION = re.compile(r"line:? ?(\d+), col:? ?(\d+)")
LOCK = threading.Lock()  # unified-planning's global environment is not made for threads
_UNPARSED = {  # a pattern of what unified-planning's parser does not know: its name, and a way out
    r"\(\s*:derived\b": ("derived predicates (axioms)", "Make each one an ordinary predicate that the actions set."),
    r"\(\s*preference\b": ("preferences", "Remove them, or make them goals."),
    r"\(\s*either\b": ("a type `either`", "Give the types a common supertype."),
    r":object-fluents\b": ("object fluents", "Write (f ?x) = ?y as a predicate (f ?x ?y)."),
}


def read_pddl(
    domain: str | Path, problem: str | Path, *, prune: bool = True, max_ground: int = 100_000
) -> StripsProblem:
    """Read a PDDL domain and problem as a ground STRIPS problem, named like `stack(a,b)`, in the order of the files.

    PDDL features that STRIPS does not have are compiled away. `StripsProblem.notes` names them, and so does one warning
    of the logger `hf_mech.planning.pddl.read`:

    - Action costs, the metric, and numbers that no condition reads are dropped.
    - `forall` and `exists` are written out over the objects.
    - An action with conditional effects (`when`) becomes one version for each combination of the conditions, and an
      action with a disjunctive precondition one for each alternative: `move(a,b)` becomes `move#1(a,b)`,
      `move#2(a,b)`, ... `StripsProblem.variants` maps them to `move(a,b)`, `original_names` maps a whole plan. A
      sequence is a plan of the PDDL files exactly if some versions of its actions are a plan of the STRIPS problem.
    - A negative condition on `p` needs the complementary proposition `not-p`, which is true exactly if `p` is false.

    An atom that an action both adds and deletes is added, as in PDDL.

    Args:
        domain, problem: a path, or the PDDL itself (a string that begins with `(` or `;`, or has several lines).
        prune: drop the irrelevant parts: static predicates (no action changes them) together with the actions whose
            static preconditions are false, and the atoms that occur in no action and not in the goal.
            With `prune=False` every ground atom and action stays, so `read_pddl(*write_pddl(d), prune=False)` is `d`.
        max_ground: the maximum number of ground actions (all versions), and of ground atoms, before pruning.

    Raises:
        PlanningError: a path that cannot be read, or a file that is not UTF-8; files that are swapped, of the same
            kind, or a problem of another domain; a text that does not parse, with `.source`, `.line` and `.column`; a
            feature without a STRIPS form (numeric conditions, durations, timed literals, constraints, derived
            predicates, a disjunctive goal, ...), with its place; more than `max_ground` ground actions or atoms.
    """
    sources = Source.of(domain, "domain"), Source.of(problem, "problem")
    check_pair(*sources)
    with LOCK:
        lifted = parse(*sources)
        refuse_unsupported(lifted)
        refuse_too_large(lifted, max_ground)
        lifted, costs = without_numbers(lifted)
        lifted, quantifiers = without_quantifiers(lifted, max_ground)
        read = Grounding(lifted, prune, max_ground).problem((*costs, *quantifiers))
    if read.notes:
        _warn_once(
            f"{sources[0].label} and {sources[1].label} were compiled to STRIPS. {' '.join(map(str, read.notes))}"
        )
    return read


@lru_cache(maxsize=256)
def _warn_once(message: str) -> None:
    logging.getLogger(__name__).warning(message)


def parse(domain: Source, problem: Source | None = None) -> Any:
    """unified-planning's `Problem`; call it under `LOCK`.

    Its parser raises exceptions of many types; all become PlanningErrors.
    """
    from unified_planning.environment import get_environment
    from unified_planning.io import PDDLReader

    def parsed(*texts: str) -> Any:
        with warnings.catch_warnings():  # unified-planning calls pyparsing by names that pyparsing deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            # The global environment: the reader puts metrics and the variables of forall effects there in any case.
            return PDDLReader(get_environment()).parse_problem_string(*texts)

    for source in filter(None, (domain, problem)):
        for pattern, (feature, how_to_mend) in _UNPARSED.items():
            if re.search(pattern, source.bare, re.IGNORECASE):
                raise unsupported(f"PDDL {source.label}", feature, how_to_mend)
    if inner := nested_effect(domain):
        raise unsupported(
            f"PDDL {domain.label}",
            f"`{inner}` in the effect of a `when`",
            "Join the conditions, (when (and ...) ...), and put `forall` outside.",
        )
    try:
        return parsed(*(source.text for source in (domain, problem) if source is not None))
    except Exception as error:
        try:  # the domain is at fault if it does not parse alone
            parsed(domain.text)
        except Exception as of_domain:
            raise _located(of_domain, domain) from of_domain
        if problem is None:
            raise
        raise _located(
            error, problem, " Check that the problem uses the objects, predicates and types of this domain."
        ) from error


def _rest_of(text: str, line: int, column: int) -> str:
    """The line from a column on, both from 1; empty behind the end of the text."""
    lines = text.splitlines()
    return lines[line - 1][column - 1 :] if line <= len(lines) else ""


def _located(error: Exception, source: Source, hint: str = "") -> PlanningError:
    message = f"unknown name {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    found = _LOCATION.search(message)
    line, column = (int(found[1]), int(found[2])) if found else (None, None)
    message = re.sub(
        r"[,. ]*(\(at char \d+\), \(line:\d+, col:\d+\)|,? ?found at line:.*|[Ff]rom line:.*|Error from line:.*)$",
        "",
        message,
        flags=re.DOTALL,
    ).strip(" .\n")
    message = re.sub(r"""^UP\w+\(["'](.*?)\.?["']\)$""", r"\1", message)
    if message.startswith("Not able to handle"):
        hint = f" Check that the predicates and functions in it are declared.{hint}"
    elif line and column and re.match(r"\(\s*:requirements", _rest_of(source.text, line, column), re.I):
        hint = f" The parser does not know one of these requirements; remove it.{hint}"
    return _pddl_error(f"{message}.{hint}", source.label, line, column, source.text)


# ----------------------------------------------------------------------------------------------------------------------
# The paper's five domains and larger ones, as PDDL in `domains/`: a folder has `domain.pddl` and a file a problem.
#
# A problem's name is `<folder>-<file>`, or just `<folder>` if its file is `problem.pddl`; a new file is a new domain.


_FILES = {
    folder.parent.name if file.stem == "problem" else f"{folder.parent.name}-{file.stem}": file
    for folder in sorted((Path(__file__).parents[1] / "domains").glob("*/domain.pddl"))
    for file in sorted(folder.parent.glob("*.pddl"))
    if file != folder
}

BUNDLED: tuple[str, ...] = tuple(_FILES)
"""The names that `load_bundled` accepts."""


@cache
def load_bundled(name: str) -> StripsProblem:
    """A bundled problem, grounded; cached. Raises PlanningError for an unknown name."""
    if name not in _FILES:
        raise PlanningError(f"There is no bundled domain {name!r}; choose one of {', '.join(BUNDLED)}.")
    return read_pddl(_FILES[name].parent / "domain.pddl", _FILES[name])
