"""PDDL to propositional STRIPS: parsed by unified-planning, grounded over its typed objects, pruned."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...models.strips.strips_domain import StripsAction, StripsDomain
from ..problem import StripsProblem
from .errors import GroundingError, PddlError, UnsupportedPddlError
from .names import decode_name

_LOCATION = re.compile(r"line:? ?(\d+), col:? ?(\d+)")


def read_pddl(
    domain: str | Path, problem: str | Path, *, prune: bool = True, max_ground: int = 100_000
) -> StripsProblem:
    """Read a PDDL domain and problem as a ground STRIPS problem, named like `stack(a,b)`, in the order of the files.

    An atom that an action both adds and deletes is added, as in PDDL.

    Args:
        domain, problem: a path, or the PDDL itself (a string that begins with `(` or `;`, or has several lines).
        prune: drop the irrelevant parts: static predicates (no action changes them) together with the actions whose
            static preconditions are false, and the atoms that occur in no action and not in the goal.
            With `prune=False` every ground atom and action stays, so `read_pddl(*write_pddl(d), prune=False)` is `d`.
        max_ground: the maximum number of ground actions, and of ground atoms, before pruning.

    Raises:
        PddlError: a text does not parse; with `.line` and `.column`.
        UnsupportedPddlError: an action or the goal is not propositional STRIPS; names it and the feature.
        GroundingError: more than `max_ground` ground actions or atoms.
        OSError: a path that cannot be read.
    """
    lifted = _parse(_Source.of(domain, "domain"), _Source.of(problem, "problem"))
    _refuse_too_large(lifted, max_ground)
    return _Grounding(lifted, prune).problem()


# ------------------------------------------------------------------------------------------------------------ parsing


@dataclass(frozen=True)
class _Source:
    text: str
    label: str

    @classmethod
    def of(cls, path_or_text: str | Path, kind: str) -> _Source:
        if isinstance(path_or_text, str):
            text = path_or_text.lstrip()
            if text.startswith(("(", ";")) or "\n" in text:
                return cls(path_or_text, kind)
        return cls(Path(path_or_text).read_text(encoding="utf-8-sig"), str(path_or_text))


def _parse(domain: _Source, problem: _Source) -> Any:
    """unified-planning's `Problem`. Its parser raises exceptions of many types; all become `PddlError`."""
    from unified_planning.environment import Environment
    from unified_planning.io import PDDLReader

    def parse(*texts: str) -> Any:
        environment = Environment()
        environment.credits_stream = None
        with warnings.catch_warnings():  # unified-planning calls pyparsing by names that pyparsing deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            return PDDLReader(environment).parse_problem_string(*texts)

    try:
        return parse(domain.text, problem.text)
    except Exception as error:
        try:  # the domain is at fault if it does not parse alone
            parse(domain.text)
        except Exception as of_domain:
            raise _located(of_domain, domain) from of_domain
        raise _located(error, problem) from error


def _located(error: Exception, source: _Source) -> PddlError:
    message = str(error) or type(error).__name__
    found = _LOCATION.search(message)
    line, column = (int(found[1]), int(found[2])) if found else (None, None)
    message = re.sub(r"[,. ]*(\(at char \d+\), \(line:\d+, col:\d+\)|From line:.*)$", "", message, flags=re.DOTALL)
    return PddlError(f"{message}.", source.label, line, column, source.text)


# ---------------------------------------------------------------------------------------------------------- grounding


def _refuse_too_large(lifted: Any, max_ground: int) -> None:
    """The number of groundings is the product of the numbers of objects of each parameter's type."""

    def count(schema: Any, parameters: Any) -> int:
        return math.prod(sum(1 for _ in lifted.objects(p.type)) for p in parameters if p.type.is_user_type())

    for kind, sizes in (
        ("actions", {a.name: count(a, a.parameters) for a in lifted.actions}),
        ("atoms", {f.name: count(f, f.signature) for f in lifted.fluents}),
    ):
        size = sum(sizes.values())
        if size > max_ground:
            largest = max(sizes, key=lambda name: sizes[name])
            raise GroundingError(
                f"PDDL problem {lifted.name!r} has about {size:,} ground {kind} ({largest!r} alone has "
                f"{sizes[largest]:,}), more than max_ground={max_ground:,}. Use fewer objects or tighter parameter "
                f"types, or pass read_pddl(..., max_ground={size}) if that many will fit in memory.",
                size,
            )


class _Grounding:
    """The ground problem of a lifted one."""

    def __init__(self, lifted: Any, prune: bool) -> None:
        from unified_planning.model.walkers import Simplifier

        self.lifted, self.prune = lifted, prune
        env = lifted.environment
        self.simplify = (Simplifier(env, lifted) if prune else env.simplifier).simplify

    def problem(self) -> StripsProblem:
        actions = list(self._actions())
        initial = frozenset(_atom(f, "init") for f, v in self.lifted.explicit_initial_values.items() if v.is_true())
        goal = frozenset(a for g in self.lifted.goals for a in self._atoms(g, "The goal", self._plain) or ())
        if self.prune:
            changed = frozenset[str]().union(*(a.add | a.delete for a in actions))
            goal -= initial - changed  # always true
            occurring = goal.union(*(a.pre | a.add | a.delete for a in actions))
            propositions = tuple(p for p in self._all_atoms() if p in occurring)
            initial &= occurring
        else:
            propositions = tuple(self._all_atoms())
        name = decode_name(self.lifted.name or "domain")
        return StripsProblem(StripsDomain(propositions, tuple(actions), name), initial, goal)

    def _all_atoms(self) -> Iterator[str]:
        for fluent in self.lifted.fluents:
            if fluent.type.is_bool_type():
                for objects in itertools.product(*(list(self.lifted.objects(p.type)) for p in fluent.signature)):
                    yield _ground_name(fluent.name, [o.name for o in objects])

    def _actions(self) -> Iterator[StripsAction]:
        from unified_planning.engines.compilers.grounder import GrounderHelper
        from unified_planning.model import InstantaneousAction

        helper = GrounderHelper(self.lifted, prune_actions=self.prune)
        for action in self.lifted.actions:
            if not isinstance(action, InstantaneousAction):
                raise UnsupportedPddlError(f"Action {action.name!r}", "durations", "Make it an ordinary :action.")
            for objects in helper.get_possible_parameters(action):
                # Not helper.ground_action: that one drops actions which add and delete the same atom.
                ground = self._ground(action, objects)
                if ground is not None:
                    yield ground

    def _ground(self, action: Any, objects: tuple[Any, ...]) -> StripsAction | None:
        """One ground action, or None if its preconditions are false in every state."""
        name = _ground_name(action.name, [str(o) for o in objects])
        where = f"Action {name!r}"
        binding = dict(zip(action.parameters, objects, strict=True))
        pre: set[str] = set()
        for condition in action.preconditions:
            atoms = self._atoms(condition.substitute(binding), where, self.simplify)
            if atoms is None:
                return None
            pre |= atoms
        add: set[str] = set()
        delete: set[str] = set()
        for effect in action.effects:
            if effect.is_forall():
                raise UnsupportedPddlError(where, "a forall effect", "Write one effect for each object.")
            if effect.is_conditional():
                raise UnsupportedPddlError(where, "a conditional effect (when)", "Split the action by its conditions.")
            if not effect.fluent.type.is_bool_type():
                raise UnsupportedPddlError(
                    where, f"a numeric effect on {effect.fluent}", "Only total-cost is allowed, and is ignored."
                )
            atom = _atom(effect.fluent.substitute(binding), where)
            (add if effect.value.is_true() else delete).add(atom)
        return StripsAction(name, frozenset(pre), frozenset(add), frozenset(delete - add))

    def _atoms(self, condition: Any, where: str, simplify: Any) -> set[str] | None:
        """The atoms of a conjunction, or None if it is false."""
        condition = simplify(condition)
        if condition.is_true():
            return set()
        if condition.is_false():
            return None
        if condition.is_and():
            parts = [self._atoms(c, where, simplify) for c in condition.args]
            return None if any(p is None for p in parts) else set().union(*(p for p in parts if p is not None))
        if condition.is_fluent_exp() and condition.type.is_bool_type():
            return {_atom(condition, where)}
        raise UnsupportedPddlError(
            where, f"{_feature(condition)}: {condition}", "Keep to conjunctions of propositions (or use :types)."
        )

    def _plain(self, condition: Any) -> Any:
        return self.lifted.environment.simplifier.simplify(condition)


def _feature(condition: Any) -> str:
    for is_it, feature in (
        (condition.is_not, "a negative condition"),
        (condition.is_or, "a disjunction"),
        (condition.is_implies, "an implication"),
        (condition.is_forall, "a forall condition"),
        (condition.is_exists, "an exists condition"),
    ):
        if is_it():
            return feature
    return "a numeric or other non-propositional condition"


def _atom(expression: Any, where: str) -> str:
    if not all(a.is_object_exp() for a in expression.args):
        raise UnsupportedPddlError(where, f"an atom that is not ground: {expression}", "Bind every variable.")
    return _ground_name(expression.fluent().name, [str(a) for a in expression.args])


def _ground_name(name: str, objects: list[str]) -> str:
    return f"{name}({','.join(objects)})" if objects else decode_name(name)
