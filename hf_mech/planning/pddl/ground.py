"""Grounding: from a lifted problem to propositions and actions, and conditions in the forms that STRIPS can say."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.pddl.lifted import in_order, unsupported
from hf_mech.planning.pddl.write import decode_name
from hf_mech.planning.problem import CompilationNote, PlanningError, StripsProblem

# ----------------------------------------------------------------------------------------------------------------------
# Ground conditions as alternatives: disjunctions of conjunctions of positive and negative atoms.


_MOST_COMPARED = 500


class Alternative(NamedTuple):
    """A conjunction: every atom of `true` is true and every atom of `false` is false."""

    true: frozenset[str] = frozenset()
    false: frozenset[str] = frozenset()


class TooManyAlternativesError(Exception):
    """The condition has more than the allowed number of alternatives."""


def alternatives(
    condition: Any, atom: Callable[[Any], str], where: str, most: int, wanted: bool = True
) -> list[Alternative]:
    """The disjunctive normal form of a ground condition without quantifiers.

    Contradictory alternatives and those that another one covers are left out: an empty list is "false", a list of one
    empty alternative is "true".

    Args:
        condition: an expression of unified-planning.
        atom: the name of a ground atom.
        where: the action or goal, for errors.
        most: the maximum number of alternatives in any part of the condition.
        wanted: False for the alternatives in which the condition does not hold.

    Raises:
        TooManyAlternativesError: there are more.
        PlanningError: the condition has a part that is no proposition.
    """

    def expand(part: Any, wanted: bool) -> list[Alternative]:
        if part.is_bool_constant():
            return [Alternative()] if part.bool_constant_value() is wanted else []
        if part.is_not():
            return expand(part.arg(0), not wanted)
        if part.is_implies():
            left, right = part.args
            if wanted:
                return _shortest([*expand(left, False), *expand(right, True)])
            return conjunction([expand(left, True), expand(right, False)], most)
        if part.is_iff():
            left, right = part.args
            same = [conjunction([expand(left, value), expand(right, value is wanted)], most) for value in (True, False)]
            return _shortest(same[0] + same[1])
        if part.is_and() or part.is_or():
            parts = [expand(arg, wanted) for arg in part.args]
            if part.is_and() is wanted:
                return conjunction(parts, most)
            return _shortest(option for options in parts for option in options)
        if part.is_fluent_exp() and part.type.is_bool_type():
            name = frozenset({atom(part)})
            return [Alternative(true=name) if wanted else Alternative(false=name)]
        raise unsupported(where, f"{_feature(part)}: {part}", "Keep to conditions on propositions.")

    return expand(condition, wanted)


def conjunction(parts: Iterable[list[Alternative]], most: int) -> list[Alternative]:
    """The alternatives in which all parts hold. Raises TooManyAlternativesError for more than `most` combinations."""
    made = [Alternative()]
    for part in parts:
        if len(made) * len(part) > most:
            raise TooManyAlternativesError
        made = _shortest(
            Alternative(left.true | right.true, left.false | right.false) for left, right in product(made, part)
        )
    return made


def _shortest(options: Iterable[Alternative]) -> list[Alternative]:
    """The options that are consistent and (unless there are too many to compare) not covered by another one."""
    consistent = [option for option in dict.fromkeys(options) if not option.true & option.false]
    if not 2 <= len(consistent) <= _MOST_COMPARED:
        return consistent
    return [
        option
        for option in consistent
        if not any(
            other != option and other.true <= option.true and other.false <= option.false for other in consistent
        )
    ]


def _feature(condition: Any) -> str:
    if condition.is_equals() or condition.is_le() or condition.is_lt():
        return "a numeric condition or an equality of non-objects"
    return "a non-propositional condition"


# ----------------------------------------------------------------------------------------------------------------------
# The ground STRIPS problem of a lifted one without quantifiers, whose actions may have any condition on propositions.
#
# unified-planning has compilers for conditional effects and disjunctions too. They leave out the versions of an action
# that have no effect, which are plans all the same; here every version is kept.


class _Rule(NamedTuple):
    """One version of a ground action."""

    name: str  # of the ground action; several versions share it
    condition: Alternative
    add: frozenset[str]
    delete: frozenset[str]


class Grounding:
    """Makes the ground problem; the work is done by `problem`.

    Args:
        lifted: unified-planning's `Problem`, without quantifiers, numbers that change, or time.
        prune, max_ground: see `read_pddl`.
    """

    def __init__(self, lifted: Any, prune: bool, max_ground: int) -> None:
        from unified_planning.model.walkers import Simplifier

        self.lifted, self.prune, self.max_ground = lifted, prune, max_ground
        env = lifted.environment
        self.plain = env.simplifier.simplify
        self.simplify = (Simplifier(env, lifted) if prune else env.simplifier).simplify
        self.conditional: set[str] = set()  # the lifted actions with conditional effects
        self.disjunctive: set[str] = set()
        self.negative: set[str] = set()  # or "the goal"

    def problem(self, notes: tuple[CompilationNote, ...] = ()) -> StripsProblem:
        """The ground problem, with the notes so far and those of this step.

        Raises:
            PlanningError: a condition on something other than propositions, a disjunctive goal, or more than
                `max_ground` versions of actions.
        """
        rules = list(self._rules())
        goal = self._goal()
        wanted = goal.false.union(*(rule.condition.false for rule in rules))
        atoms = list(self._all_atoms())
        complement = _complements(wanted, atoms)
        actions, variants = _actions(rules, complement)

        true = frozenset(_atom(f, "init") for f, v in self.lifted.explicit_initial_values.items() if v.is_true())
        initial = true | {name for atom, name in complement.items() if atom not in true}
        goals = goal.true | {complement[atom] for atom in goal.false}
        propositions = [name for atom in atoms for name in (atom, complement.get(atom)) if name is not None]
        if self.prune:
            changed = frozenset[str]().union(*(a.add | a.delete for a in actions))
            goals -= initial - changed  # always true
            occurring = goals.union(*(a.pre | a.add | a.delete for a in actions))
            propositions = [p for p in propositions if p in occurring]
            initial &= occurring
        domain = StripsDomain(tuple(propositions), tuple(actions), decode_name(self.lifted.name or "domain"))
        notes = (*notes, *self._notes(variants, [complement[atom] for atom in atoms if atom in complement]))
        return StripsProblem(domain, initial, goals, notes, variants)

    def _notes(self, variants: dict[str, str], complements: list[str]) -> Iterator[CompilationNote]:
        versions = "each ground action became one action for"
        counts = f"{len(variants)} actions, such as {next(iter(variants), '')}, from {len(set(variants.values()))}"
        if self.conditional:
            text = f"{versions} each combination of the conditions that can hold ({counts})."
            yield CompilationNote("conditional effects (when)", in_order(self.lifted, self.conditional), text)
        if self.disjunctive:
            text = f"{versions} each alternative ({counts})."
            yield CompilationNote("disjunctive conditions", in_order(self.lifted, self.disjunctive), text)
        if complements:
            text = f"{len(complements)} complementary propositions added, such as {complements[0]}."
            yield CompilationNote("negative conditions", in_order(self.lifted, self.negative), text)

    # ------------------------------------------------------------------------------------------------------- actions

    def _rules(self) -> Iterator[_Rule]:
        # Not unified-planning's GrounderHelper: it drops actions that add and delete the same atom, and fails if two
        # static preconditions exclude the same object.
        count = 0
        for action in self.lifted.actions:
            for objects in itertools.product(*self._choices(action)):
                for rule in self._versions(action, objects):
                    count += 1
                    if count > self.max_ground:
                        raise self._too_many(action.name)
                    if rule.condition.false:
                        self.negative.add(action.name)
                    yield rule

    def _choices(self, action: Any) -> list[list[Any]]:
        """The objects for each parameter of an action, without those that a static precondition excludes."""
        made = [list(self.lifted.objects(p.type)) for p in action.parameters]
        static = self.lifted.get_static_fluents() if self.prune else ()
        true = [atom for atom, value in self.lifted.explicit_initial_values.items() if value.is_true()]
        conditions = list(action.preconditions)
        for condition in conditions:  # grows during the loop
            if condition.is_and():
                conditions += condition.args
            elif condition.is_fluent_exp() and condition.fluent() in static:
                for place, argument in enumerate(condition.args):
                    if argument.is_parameter_exp():
                        own = action.parameters.index(argument.parameter())
                        fits = {atom.args[place].object() for atom in true if atom.fluent() == condition.fluent()}
                        made[own] = [o for o in made[own] if o in fits]
        return made

    def _versions(self, action: Any, objects: tuple[Any, ...]) -> Iterator[_Rule]:
        """The versions of one ground action that are possible in some state; none if it is never applicable."""
        name = _ground_name(action.name, [str(o) for o in objects])
        where = f"Action {name!r}"
        binding = dict(zip(action.parameters, objects, strict=True))
        manager = self.lifted.environment.expression_manager
        effects: dict[Any, tuple[set[str], set[str]]] = {}  # condition: atoms made true, atoms made false
        for effect in action.effects:
            condition = self.simplify(effect.condition.substitute(binding))
            value = self.simplify(effect.value.substitute(binding))
            if not value.is_bool_constant():
                raise unsupported(where, f"an effect with a computed value: {effect}", "Use `when`.")
            if not condition.is_false():
                side = 0 if value.is_true() else 1
                effects.setdefault(condition, (set(), set()))[side].add(_atom(effect.fluent.substitute(binding), where))
        always = effects.pop(manager.TRUE(), (set(), set()))
        try:
            pre = [self._alternatives(self.simplify(c.substitute(binding)), where) for c in action.preconditions]
            made = self._combinations(name, conjunction(pre, self.max_ground), always, effects)
        except TooManyAlternativesError:
            raise self._too_many(where) from None
        if any(count > 1 for count in Counter((rule.add, rule.delete) for rule in made).values()):
            self.disjunctive.add(action.name)
        if len({(rule.add, rule.delete) for rule in made}) > 1:
            self.conditional.add(action.name)
        yield from made

    def _combinations(
        self,
        name: str,
        options: list[Alternative],
        always: tuple[set[str], set[str]],
        effects: dict[Any, tuple[set[str], set[str]]],
    ) -> list[_Rule]:
        """A rule for every combination of conditions of effects that agrees with the precondition, `options`."""
        where = f"Action {name!r}"
        held = [self._alternatives(condition, where) for condition in effects]
        not_held = [self._alternatives(condition, where, wanted=False) for condition in effects]
        changes = list(effects.values())
        made: dict[_Rule, None] = {}
        unfinished = [(0, options, frozenset(always[0]), frozenset(always[1]))]
        while unfinished:
            decided, options, add, delete = unfinished.pop()
            if not options:
                continue
            if decided < len(effects):
                without = conjunction([options, not_held[decided]], self.max_ground)
                unfinished.append((decided + 1, without, add, delete))
                adds, deletes = changes[decided]
                together = conjunction([options, held[decided]], self.max_ground)
                unfinished.append((decided + 1, together, add | adds, delete | deletes))
                continue
            made.update(dict.fromkeys(_Rule(name, option, add, delete - add) for option in options))
            if len(made) > self.max_ground:
                raise self._too_many(where)
        return list(made)

    def _alternatives(self, condition: Any, where: str, wanted: bool = True) -> list[Alternative]:
        return alternatives(condition, lambda part: _atom(part, where), where, self.max_ground, wanted)

    def _too_many(self, where: str) -> PlanningError:
        return PlanningError(
            f"{where} has more than max_ground={self.max_ground:,} versions without conditional effects and "
            "disjunctions. Use fewer objects, split the action, or pass a larger max_ground to read_pddl."
        )

    # ---------------------------------------------------------------------------------------------------------- goal

    def _goal(self) -> Alternative:
        goal = self.lifted.environment.expression_manager.And(self.lifted.goals)
        try:
            options = self._alternatives(self.plain(goal), "The goal")
            if len(options) > 1 and self.prune:  # static predicates may decide
                options = self._alternatives(self.simplify(goal), "The goal")
        except TooManyAlternativesError:
            raise self._too_many("The goal") from None
        if len(options) == 1:
            if options[0].false:
                self.negative.add("the goal")
            return options[0]
        feature = "a disjunction (or exists)" if options else "a contradiction, true in no state"
        raise unsupported("The goal", f"{feature}: {goal}", "Choose one alternative, a conjunction.")

    def _all_atoms(self) -> Iterator[str]:
        for fluent in self.lifted.fluents:
            if fluent.type.is_bool_type():
                for objects in itertools.product(*(list(self.lifted.objects(p.type)) for p in fluent.signature)):
                    yield _ground_name(fluent.name, [o.name for o in objects])


def _complements(wanted: frozenset[str], atoms: list[str]) -> dict[str, str]:
    """A new name for the complement of every atom of `wanted`: `not-p`, or `not-not-p` if there is a `not-p`."""
    taken, names = set(atoms), {}
    for atom in atoms:
        if atom in wanted:
            name = f"not-{atom}"
            while name in taken:
                name = f"not-{name}"
            taken.add(name)
            names[atom] = name
    return names


def _actions(rules: list[_Rule], complement: dict[str, str]) -> tuple[list[StripsAction], dict[str, str]]:
    """The rules as actions, and the ground action of each one that is one of several versions."""
    versions: dict[str, list[_Rule]] = {}
    for rule in rules:
        versions.setdefault(rule.name, []).append(rule)
    actions, variants = [], {}
    for name, same in versions.items():
        functor, bracket, objects = name.partition("(")
        for number, rule in enumerate(same, 1):
            own = f"{functor}#{number}{bracket}{objects}" if len(same) > 1 else name
            if len(same) > 1:
                variants[own] = name
            actions.append(
                StripsAction(
                    own,
                    rule.condition.true | {complement[atom] for atom in rule.condition.false},
                    rule.add | {complement[atom] for atom in rule.delete if atom in complement},
                    rule.delete | {complement[atom] for atom in rule.add if atom in complement},
                )
            )
    return actions, variants


def _atom(expression: Any, where: str) -> str:
    if not all(a.is_object_exp() for a in expression.args):
        raise unsupported(where, f"an atom that is not ground: {expression}", "Bind every variable.")
    return _ground_name(expression.fluent().name, [str(a) for a in expression.args])


def _ground_name(name: str, objects: list[str]) -> str:
    return f"{name}({','.join(objects)})" if objects else decode_name(name)
