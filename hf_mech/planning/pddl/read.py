"""PDDL to propositional STRIPS: parsed by unified-planning, compiled to STRIPS, grounded over its objects, pruned."""

from __future__ import annotations

import logging
import re
import threading
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

from hf_mech.planning.pddl.errors import PddlError, UnsupportedPddlError
from hf_mech.planning.pddl.ground import Grounding
from hf_mech.planning.pddl.lifted import refuse_too_large, refuse_unsupported, without_numbers, without_quantifiers
from hf_mech.planning.pddl.sources import Source, check_pair, nested_effect
from hf_mech.planning.problem import StripsProblem

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
