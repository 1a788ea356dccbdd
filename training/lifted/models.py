"""AMLGym's figures of a learned model: predicted applicability, plans, and the likeness of its text to the hidden one.

The figures follow AMLGym (precision and recall of each action schema, then their mean), with what traces of actions
alone leave open: a learned predicate has no name and an initial state is unknown. So states are given as the traces
that lead to them, an atom that no action has deleted counts as true, and the hidden domain, asked in the same way, is
the best that a learner can reach: its figures are `possible_...`. The ground actions of a test instance, and so its
static facts, are given to both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from statistics import fmean

from hf_mech.data.random_numbers import Die
from hf_mech.models.strips import StripsAction, StripsDomain
from hf_mech.models.strips.strips_lifted import LiftedAtom, LiftedDomain, ground_name
from hf_mech.planning import plan
from hf_mech.planning.lifted.domains import lifted_domain
from hf_mech.planning.lifted.walks import LiftedWalks
from hf_mech.planning.problem import PlanningError

from .data import TEST_INSTANCES, big_instance
from .learners import time_limit
from .settings import Cell

STATES, SEEN, AHEAD, WANTED = 20, 300, 10, 2
"""States of the test of applicability; steps that lead to a state, and that lead on to a goal; actions of a goal."""

Part = tuple[str, str, LiftedAtom]
"""An action, `pre`, `add` or `delete`, and an atom."""


def model_figures(cell: Cell, learned: LiftedDomain) -> dict[str, float]:
    """All figures, by name; shares. Those of applicability are left out if no state allows an action."""
    hidden = lifted_domain(cell.domain)
    walks = big_instance(cell.domain, cell.seed, TEST_INSTANCES)
    return (
        _applicability(learned, hidden, walks, cell.seed)
        | _plans(learned, hidden, walks, cell)
        | syntax(learned, hidden)
        | arguments_found(learned, hidden)
    )


# ------------------------------------------------------------------------------------------------------ applicability


def _applicability(learned: LiftedDomain, hidden: LiftedDomain, walks: LiftedWalks, seed: int) -> dict[str, float]:
    die = Die(seed, (3,))
    counts: dict[str, dict[str, list[int]]] = {"": defaultdict(_zeros), "possible_": defaultdict(_zeros)}
    for _ in range(STATES):
        state, trace = _walked(walks, walks.initial, SEEN, die)
        true = set(walks.applicable(state))
        for name, domain in (("", learned), ("possible_", hidden)):
            falsified: set[tuple[str, tuple[str, ...]]] = set()
            for action in trace:
                if walks.actions[action].name in domain.by_name:
                    domain.advance(falsified, walks.actions[action])
            for number, ground in enumerate(walks.actions):
                says = ground.name in domain.by_name and not domain.missing(falsified, ground)
                own = counts[name][ground.name]
                own[0] += says and number in true
                own[1] += says and number not in true
                own[2] += not says and number in true
    found = {}
    for name, of_action in counts.items():
        # An action that never was possible has no recall; AMLGym's 0 would be no fault of the model's.
        pairs = [_precision_recall(*own) for own in of_action.values() if own[0] + own[2]]
        if not pairs:
            return {}  # every walk ends where nothing is possible
        found[f"{name}applicability_precision"] = fmean(pair[0] for pair in pairs)
        found[f"{name}applicability_recall"] = fmean(pair[1] for pair in pairs)
    return found


def _zeros() -> list[int]:
    return [0, 0, 0]


def _precision_recall(true: int, false: int, missed: int) -> tuple[float, float]:
    """As AMLGym: a model that allows nothing is precise, and recalls nothing."""
    return true / (true + false) if true + false else 1.0, true / (true + missed) if true + missed else 1.0


def _walked(walks: LiftedWalks, state: int, length: int, die: Die) -> tuple[int, list[int]]:
    """A walk and the state after it."""
    trace = walks.walk(length, die, state)
    for action in trace:
        state = walks.apply(state, action)
    return state, trace


# --------------------------------------------------------------------------------------------------------------- plans


def _plans(learned: LiftedDomain, hidden: LiftedDomain, walks: LiftedWalks, cell: Cell) -> dict[str, float]:
    """The shares of problems with a plan that is right in the hidden domain, and with one that is not.

    A problem is a trace, and actions to make possible; they are possible some steps of a hidden walk later.
    """
    die, found = Die(cell.seed, (4,)), {}
    problems = [_problem(walks, die) for _ in range(cell.problems)]
    for name, domain in (("", learned), ("possible_", hidden)):
        ground = grounded(domain, walks)
        ends = [_solved(ground, walks, *problem, cell.plan_seconds) for problem in problems]
        found[f"{name}solved"] = ends.count(True) / len(ends)
        found[f"{name}false_plans"] = ends.count(False) / len(ends)
    return found


def _problem(walks: LiftedWalks, die: Die) -> tuple[int, list[int], list[int]]:
    """A state, the trace that leads to it, and actions to make possible, not all of which are."""
    state, trace = _walked(walks, walks.initial, SEEN, die)
    later, _ = _walked(walks, state, AHEAD, die)
    new = [action for action in walks.applicable(later) if action not in walks.applicable(state)]
    goal = new or list(walks.applicable(later))
    die.shuffle(goal)
    return state, trace, goal[:WANTED]


def grounded(domain: LiftedDomain, walks: LiftedWalks) -> StripsDomain:
    """The domain over the ground actions of an instance."""
    actions, propositions = [], dict[str, None]()
    for action in walks.actions:
        if (schema := domain.by_name.get(action.name)) is None:
            continue
        pre, add, delete = (
            [ground_name(*atom.ground(action.objects)) for atom in sorted(part) if atom.predicate not in domain.static]
            for part in (schema.pre, schema.add, schema.delete)
        )
        propositions.update(dict.fromkeys([*pre, *add, *delete]))
        own = frozenset(add)
        actions.append(StripsAction(str(action), frozenset(pre), own, frozenset(delete) - own))
    return StripsDomain(tuple(propositions), tuple(actions), domain.name)


def _solved(
    ground: StripsDomain, walks: LiftedWalks, state: int, trace: Sequence[int], goal: Sequence[int], limit: int
) -> bool | None:
    """Whether the plan is right in the hidden domain; None: there is no plan, or none in time."""
    after, until = ([str(walks.actions[action]) for action in own] for own in (trace, goal))
    known = set(ground.action_names)
    if not known.issuperset(after + until):
        return None
    try:
        with time_limit(limit):
            steps = plan(ground, after=after, until=until)
    except (PlanningError, TimeoutError):  # the trace contradicts the learned domain, or no answer
        return None
    if steps is None:
        return None
    for name in steps:
        [action] = walks.numbers([name])
        if action not in walks.applicable(state):
            return False
        state = walks.apply(state, action)
    return set(goal) <= set(walks.applicable(state))


# -------------------------------------------------------------------------------------------------------------- syntax


def syntax(learned: LiftedDomain, hidden: LiftedDomain) -> dict[str, float]:
    """Precision and recall of preconditions, of effects, and of all; static predicates are left out.

    Every learned predicate is read as the hidden one, and in the order of arguments, with which it shares the most
    effects, then the most preconditions; several may be read as the same. One without a common effect is wrong
    wherever it stands.
    """
    wanted = {action.name: set(_parts(hidden, action.name)) for action in hidden.actions}
    reading = {name: _reading(name, learned, hidden) for name in learned.predicates if name not in learned.static}
    found: dict[str, set[Part]] = {}
    for action in hidden.actions:
        own = found[action.name] = set()
        for name, part, atom in _parts(learned, action.name) if action.name in learned.by_name else ():
            predicate, order = reading[atom.predicate] or (f"?{atom.predicate}", range(len(atom.places)))
            own.add((name, part, LiftedAtom(predicate, tuple(atom.places[place] for place in order))))
    figures = {}
    for label, parts in (("pre", ("pre",)), ("effects", ("add", "delete")), ("syntax", ("pre", "add", "delete"))):
        pairs = []
        for action in hidden.actions:
            says = {part for part in found[action.name] if part[1] in parts}
            true = {part for part in wanted[action.name] if part[1] in parts}
            pairs.append(_precision_recall(len(says & true), len(says - true), len(true - says)))
        figures[f"{label}_precision"] = fmean(pair[0] for pair in pairs)
        figures[f"{label}_recall"] = fmean(pair[1] for pair in pairs)
    return figures


def _parts(domain: LiftedDomain, action: str) -> Iterator[Part]:
    """The atoms of an action that are not static."""
    schema = domain.by_name[action]
    for part in ("pre", "add", "delete"):
        yield from ((action, part, atom) for atom in getattr(schema, part) if atom.predicate not in domain.static)


def _reading(name: str, learned: LiftedDomain, hidden: LiftedDomain) -> tuple[str, tuple[int, ...]] | None:
    """The hidden predicate that a learned one is read as, and the order of its arguments."""
    own = [part for action in learned.by_name for part in _parts(learned, action) if part[2].predicate == name]
    everything = {part for action in hidden.by_name for part in _parts(hidden, action)}
    best: tuple[tuple[int, int], tuple[str, tuple[int, ...]]] | None = None
    for predicate, types in hidden.predicates.items():
        if len(types) != len(learned.predicates[name]):
            continue
        for order in permutations(range(len(types))):
            shared = [
                part
                for action, part, atom in own
                if (action, part, LiftedAtom(predicate, tuple(atom.places[place] for place in order))) in everything
            ]
            score = len(shared) - shared.count("pre"), shared.count("pre")
            if score[0] and (best is None or score > best[0]):
                best = score, (predicate, order)
    return best and best[1]


def arguments_found(learned: LiftedDomain, hidden: LiftedDomain) -> dict[str, float]:
    """Precision and recall of the arguments of actions that some precondition or effect names, static ones left out."""
    named = [
        {(own, place) for own in domain.by_name for *_, atom in _parts(domain, own) for place in atom.places}
        for domain in (learned, hidden)
    ]
    precision, recall = _precision_recall(len(named[0] & named[1]), len(named[0] - named[1]), len(named[1] - named[0]))
    return {"arguments_precision": precision, "arguments_recall": recall}


def names_of_figures() -> Iterable[str]:
    """The names of all figures, those of the hidden domain last."""
    plain = ("applicability_precision", "applicability_recall", "solved", "false_plans")
    syntactic = [f"{label}_{kind}" for label in ("pre", "effects", "syntax") for kind in ("precision", "recall")]
    return [*plain, *syntactic, "arguments_precision", "arguments_recall", *(f"possible_{name}" for name in plain)]
