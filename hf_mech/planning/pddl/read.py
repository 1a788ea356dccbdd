"""PDDL in and out: sources, names, and the way through unified-planning."""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.planning.pddl.errors import MismatchedPddlError, PddlError, PddlFileError, UnsupportedPddlError
from hf_mech.planning.pddl.ground import Grounding
from hf_mech.planning.pddl.lifted import refuse_too_large, refuse_unsupported, without_numbers, without_quantifiers
from hf_mech.planning.pddl.names import encode_name
from hf_mech.planning.problem import StripsProblem

# ----------------------------------------------------------------------------------------------------------------------
# The texts of a PDDL domain and problem, and whether they belong together.


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


# ----------------------------------------------------------------------------------------------------------------------
# A STRIPS problem as unified-planning's `Problem`, for its writer and its planners.


def to_unified_planning(problem: StripsProblem) -> tuple[Any, dict[str, str]]:
    """The problem with fluents and actions without parameters, under PDDL names.

    Returns:
        unified-planning's `Problem`, and a mapping from our action names to PDDL's.
    """
    from unified_planning.environment import Environment
    from unified_planning.model import Fluent, InstantaneousAction, Problem

    domain = problem.domain
    environment = Environment()
    environment.credits_stream = None
    out = Problem(encode_name(domain.name), environment)
    action_names = _pddl_names(domain.action_names, set())
    atom_names = _pddl_names(domain.propositions, set(action_names.values()))
    fluents = {p: Fluent(atom_names[p], environment=environment) for p in domain.propositions}
    for p in domain.propositions:
        out.add_fluent(fluents[p], default_initial_value=p in problem.initial)
        if p in problem.goal:
            out.add_goal(fluents[p])
    for a in domain.actions:
        action = InstantaneousAction(action_names[a.name], _env=environment)
        for p in domain.propositions:
            if p in a.pre:
                action.add_precondition(fluents[p])
            if p in a.add | a.delete:
                action.add_effect(fluents[p], p in a.add)
        out.add_action(action)
    return out, action_names


def _pddl_names(names: Iterable[str], taken: set[str]) -> dict[str, str]:
    """A unique PDDL name for each; adds them to `taken`."""
    out: dict[str, str] = {}
    for name in names:
        out[name] = encode_name(name, taken)
        taken.add(out[name])
    return out


# ----------------------------------------------------------------------------------------------------------------------
# Propositional STRIPS to PDDL, with predicates and actions without parameters.


def write_pddl(problem: StripsProblem | StripsDomain) -> tuple[str, str]:
    """The texts of a PDDL domain and a PDDL problem file, readable by any PDDL planner.

    `stack(a,b)` becomes the name `stack--a--b`; `names.py` has the rule. `read_pddl` inverts it, so the original names
    return. A domain without a problem is written with every proposition initially true and an empty goal.
    """
    from unified_planning.io import PDDLWriter

    if isinstance(problem, StripsDomain):
        problem = StripsProblem(problem, frozenset(problem.propositions))
    planning_problem, _ = to_unified_planning(problem)
    writer = PDDLWriter(planning_problem)
    name = planning_problem.name  # the writer lengthens it
    domain_text = writer.get_domain().replace(f"(domain {name}-domain)", f"(domain {name})")
    problem_text = writer.get_problem().replace(f"(:domain {name}-domain)", f"(:domain {name})")
    return domain_text, problem_text.replace(f"(problem {name}-problem)", f"(problem {name})")


# ----------------------------------------------------------------------------------------------------------------------
# PDDL to propositional STRIPS: parsed by unified-planning, compiled to STRIPS, grounded over its objects, pruned.


_LOCATION = re.compile(r"line:? ?(\d+), col:? ?(\d+)")
_LOCK = threading.Lock()  # unified-planning's global environment is not made for threads
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
        PddlFileError: a path that cannot be read (also an OSError), or a file that is not UTF-8.
        MismatchedPddlError: the files are swapped, of the same kind, or the problem is of another domain.
        PddlError: a text does not parse; with `.line` and `.column`. The three above are PddlErrors too.
        UnsupportedPddlError: a feature without a STRIPS form (numeric conditions, durations, timed literals,
            constraints, derived predicates, a disjunctive goal, ...); names it and its place.
        GroundingError: more than `max_ground` ground actions or atoms.
    """
    sources = Source.of(domain, "domain"), Source.of(problem, "problem")
    check_pair(*sources)
    with _LOCK:
        lifted = _parse(*sources)
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


def _parse(domain: Source, problem: Source) -> Any:
    """unified-planning's `Problem`. Its parser raises exceptions of many types; all become ours."""
    from unified_planning.environment import get_environment
    from unified_planning.io import PDDLReader

    def parse(*texts: str) -> Any:
        with warnings.catch_warnings():  # unified-planning calls pyparsing by names that pyparsing deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            # The global environment: the reader puts metrics and the variables of forall effects there in any case.
            return PDDLReader(get_environment()).parse_problem_string(*texts)

    for source in (domain, problem):
        for pattern, (feature, how_to_mend) in _UNPARSED.items():
            if re.search(pattern, source.bare, re.IGNORECASE):
                raise UnsupportedPddlError(f"PDDL {source.label}", feature, how_to_mend)
    if inner := nested_effect(domain):
        raise UnsupportedPddlError(
            f"PDDL {domain.label}",
            f"`{inner}` in the effect of a `when`",
            "Join the conditions, (when (and ...) ...), and put `forall` outside.",
        )
    try:
        return parse(domain.text, problem.text)
    except Exception as error:
        try:  # the domain is at fault if it does not parse alone
            parse(domain.text)
        except Exception as of_domain:
            raise _located(of_domain, domain) from of_domain
        raise _located(
            error, problem, " Check that the problem uses the objects, predicates and types of this domain."
        ) from error


def _rest_of(text: str, line: int, column: int) -> str:
    """The line from a column on, both from 1; empty behind the end of the text."""
    lines = text.splitlines()
    return lines[line - 1][column - 1 :] if line <= len(lines) else ""


def _located(error: Exception, source: Source, hint: str = "") -> PddlError:
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
    return PddlError(f"{message}.{hint}", source.label, line, column, source.text)
