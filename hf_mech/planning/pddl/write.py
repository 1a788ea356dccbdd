"""PDDL written: names of propositions and actions as PDDL names and back, and problems for unified-planning.

`on(a,b)` is written `on--a--b`. A PDDL name starts with a letter, contains letters, digits, `-` and `_`, and ignores
case. Every other character is written as `__` and two hexadecimal digits for each byte of its UTF-8 form, and so is a
`-` or `_` that is not between two letters or digits. The prefix `x__00` has no meaning: it is put before names that
would begin wrongly, be a keyword, or be taken already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.planning.problem import StripsProblem

MARK = "x__00"
_GROUND = re.compile(r"[^(),]+\([^(),]+(,[^(),]+)*\)", re.DOTALL)
_PLAIN = re.compile(r"[a-z0-9]|(?<=[a-z0-9])[-_](?=[a-z0-9])")
_ESCAPED = re.compile(r"(?:__[0-9a-f]{2})+|--|.", re.DOTALL)

KEYWORDS = frozenset(
    re.findall(
        r"\S+",
        """
        define domain problem requirements types constants objects predicates functions action parameters precondition
        effect init goal metric minimize maximize and or not imply forall exists when either object number increase
        decrease assign scale-up scale-down total-cost total-time always sometime within over at start end all
        preference durative-action duration condition derived constraints
        """,
    )
)


def encode_name(name: str, taken: frozenset[str] | set[str] = frozenset()) -> str:
    """The PDDL name of a proposition or action; `decode_name` is its inverse. Never one of `taken` nor a keyword."""
    parts = re.split(r"[(,]", name[:-1]) if _GROUND.fullmatch(name) else [name]
    encoded = "--".join(_encode_part(part) for part in parts)
    if encoded.startswith(MARK):
        encoded = "__78" + encoded.removeprefix("x")
    if not encoded[:1].isalpha() or encoded in KEYWORDS:
        encoded = MARK + encoded
    while encoded in taken:
        encoded = MARK + encoded
    return encoded


def decode_name(encoded: str) -> str:
    """The name that `encode_name` wrote; other PDDL names are unchanged, except for `--` and `__`."""
    while encoded.startswith(MARK) and encoded != MARK:
        encoded = encoded.removeprefix(MARK)
    pieces = [""]
    for token in _ESCAPED.findall(encoded):
        if token == "--":
            pieces.append("")
        else:
            pieces[-1] += _unescape(token)
    functor, *arguments = pieces
    return f"{functor}({','.join(arguments)})" if arguments else functor


def _encode_part(part: str) -> str:
    escape = "".join
    return escape(
        part[i] if _PLAIN.match(part, i) else escape(f"__{byte:02x}" for byte in part[i].encode())
        for i in range(len(part))
    )


def _unescape(token: str) -> str:
    if not token.startswith("__"):
        return token
    try:
        return bytes.fromhex(token.replace("__", "")).decode()
    except UnicodeDecodeError:  # a foreign name that looks like an encoded one
        return token


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

    `stack(a,b)` becomes the name `stack--a--b`; the top of this file has the rule. `read_pddl` inverts it, so the
    original names return. A domain without a problem is written with every proposition initially true and an empty
    goal.
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
