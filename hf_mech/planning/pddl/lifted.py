"""A parsed problem before grounding: its size, features without a STRIPS form, and numbers and quantifiers removed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from hf_mech.planning.problem import CompilationNote, PlanningError


def unsupported(where: str, feature: str, how_to_mend: str) -> PlanningError:
    """The error of PDDL that is well formed but has no propositional STRIPS form.

    Args:
        where: the action (or "The goal", "The problem") at fault.
        feature: the feature that STRIPS does not have.
        how_to_mend: one sentence.
    """
    return PlanningError(
        f"{where} uses {feature}, which propositional STRIPS does not have (it has positive preconditions, and "
        f"unconditional add and delete effects on propositions). {how_to_mend}"
    )


def refuse_unsupported(lifted: Any) -> None:
    """Raises PlanningError for time, constraints, hierarchies, ..., which no compilation can remove."""
    from unified_planning.model import InstantaneousAction, Problem

    for action in lifted.actions:
        if not isinstance(action, InstantaneousAction):
            raise unsupported(f"Action {action.name!r}", "durations", "Make it an ordinary :action.")
        if type(action) is not InstantaneousAction:
            raise unsupported(f"Action {action.name!r}", "sensing", "Make it an ordinary :action.")
    for found, feature, how_to_mend in (
        (lifted.timed_effects or lifted.timed_goals, "timed literals or goals", "Remove the times."),
        (lifted.trajectory_constraints, "constraints on the trajectory (:constraints)", "Remove them."),
        (lifted.processes or lifted.events, "processes or events", "Make them ordinary actions."),
        (type(lifted) is not Problem, f"a {type(lifted).__name__}", "Write an ordinary domain with :action only."),
    ):
        if found:
            raise unsupported("The problem", feature, how_to_mend)


def refuse_too_large(lifted: Any, max_ground: int) -> None:
    """The number of groundings is the product of the numbers of objects of each parameter's type."""
    for kind, sizes in (
        ("actions", {a.name: _combinations(lifted, a.parameters) for a in lifted.actions}),
        ("atoms", {f.name: _combinations(lifted, f.signature) for f in lifted.fluents}),
    ):
        size = sum(sizes.values())
        if size > max_ground:
            largest = max(sizes, key=lambda name: sizes[name])
            raise PlanningError(
                f"PDDL problem {lifted.name!r} has about {size:,} ground {kind} ({largest!r} alone has "
                f"{sizes[largest]:,}), more than max_ground={max_ground:,}. Use fewer objects or tighter parameter "
                f"types, or pass read_pddl(..., max_ground={size}) if that many will fit in memory."
            )


def without_numbers(lifted: Any) -> tuple[Any, list[CompilationNote]]:
    """The problem without its metric and without effects on numbers that no condition reads.

    Raises:
        PlanningError: an effect on a number that a condition reads.
    """
    read = {fluent for _, condition in _conditions(lifted) for fluent in _fluents(condition)}
    costs = [metric.costs for metric in lifted.quality_metrics if metric.is_minimize_action_costs()]
    where = {action.name for of_actions in costs for action in of_actions}
    found = bool(lifted.quality_metrics)
    smaller = lifted.clone()
    smaller.clear_quality_metrics()
    for action in smaller.actions:
        kept = []
        for effect in action.effects:
            fluent = effect.fluent.fluent()
            if fluent.type.is_bool_type():
                kept.append(effect)
                continue
            if fluent in read:
                raise unsupported(
                    f"Action {action.name!r}",
                    f"a numeric effect on {effect.fluent}, which a condition reads",
                    "Only numbers that no condition reads, such as total-cost, can be dropped.",
                )
            where.add(action.name)
        if len(kept) < len(action.effects):
            action.clear_effects()
            for effect in kept:
                action._add_effect_instance(effect)
    if not found and not where:
        return lifted, []
    text = "dropped; all plans count as equally good."
    return smaller, [CompilationNote("costs and metric", in_order(lifted, where), text)]


def without_quantifiers(lifted: Any, max_ground: int) -> tuple[Any, list[CompilationNote]]:
    """The problem with `forall` and `exists` written out over the objects.

    Raises:
        PlanningError: more than `max_ground` conditions would come out of an action.
    """
    from unified_planning.engines import CompilationKind
    from unified_planning.engines.compilers import QuantifiersRemover

    where: set[str] = set()
    sizes: dict[str, int] = {}
    for name, condition in _conditions(lifted):
        size, quantified = _written_out(lifted, condition)
        sizes[name] = sizes.get(name, 0) + size
        if quantified:
            where.add(name)
    for action in lifted.actions:
        for effect in action.effects:
            if effect.is_forall():
                where.add(action.name)
                size = _written_out(lifted, effect.condition)[0]
                sizes[action.name] = sizes.get(action.name, 0) + size * _combinations(lifted, effect.forall)
    if not where:
        return lifted, []
    largest = max(where, key=lambda name: sizes.get(name, 0))
    if sizes.get(largest, 0) > max_ground:
        raise PlanningError(
            f"The quantifiers of {largest!r} stand for about {sizes[largest]:,} conditions and effects, more than "
            f"max_ground={max_ground:,}. Use fewer objects, or give the variables tighter types."
        )
    removed = QuantifiersRemover().compile(lifted, CompilationKind.QUANTIFIERS_REMOVING).problem
    removed.name = lifted.name
    return removed, [CompilationNote("forall and exists", in_order(lifted, where), "written out over the objects.")]


def in_order(lifted: Any, where: set[str]) -> tuple[str, ...]:
    """The names of actions, and "the goal", in the order of the files."""
    return tuple(name for name in (*(action.name for action in lifted.actions), "the goal") if name in where)


def _combinations(lifted: Any, variables: Any) -> int:
    return math.prod(sum(1 for _ in lifted.objects(v.type)) for v in variables if v.type.is_user_type())


def _conditions(lifted: Any) -> Iterator[tuple[str, Any]]:
    """Every condition, with the name of its action or "the goal"."""
    for action in lifted.actions:
        for condition in action.preconditions:
            yield action.name, condition
        for effect in action.effects:
            yield action.name, effect.condition
            if effect.fluent.fluent().type.is_bool_type():
                yield action.name, effect.value
    for goal in lifted.goals:
        yield "the goal", goal


def _fluents(expression: Any) -> set[Any]:
    inner = set().union(*(_fluents(part) for part in expression.args))
    return inner | {expression.fluent()} if expression.is_fluent_exp() else inner


def _written_out(lifted: Any, expression: Any) -> tuple[int, bool]:
    """The number of leaves of the expression without quantifiers, and whether it has any quantifier."""
    parts = [_written_out(lifted, part) for part in expression.args]
    size, quantified = sum(size for size, _ in parts) or 1, any(found for _, found in parts)
    if expression.is_forall() or expression.is_exists():
        return size * _combinations(lifted, expression.variables()), True
    return size, quantified
