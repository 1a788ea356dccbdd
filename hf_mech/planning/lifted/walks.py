"""Random walks in an instance of a lifted domain, and logs of them as people have them.

A log differs from a walk: it begins anywhere, its actions have habits, some attempts fail, and some rows are wrong or
missing. `LogSettings` says how much of each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, NamedTuple

from hf_mech.data.random_numbers import Die
from hf_mech.data.whole_numbers import check_whole
from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.grounding import ground_actions
from hf_mech.planning.lifted.pddl import GroundAtom, LiftedProblem
from hf_mech.planning.problem import PlanningError
from hf_mech.planning.walks import POLICIES, Expert

MOST_KEPT = 100_000  # states whose applicable actions are kept
_WALK, _NOISE, _BIAS = range(3)  # a seed's streams of random numbers


class LiftedTrace(NamedTuple):
    """A log: ground actions, and 1 for each that is said to have failed, else 0."""

    actions: tuple[GroundAction, ...]
    labels: tuple[int, ...]

    @property
    def texts(self) -> list[str]:
        """The actions as texts: `stack b1 b2`."""
        return [" ".join([action.name, *action.objects]) for action in self.actions]


@dataclass(frozen=True)
class LogSettings:
    """How a log differs from a uniform walk from the initial state.

    Args:
        policy: how steps are drawn: a random "walk", or an "expert" who follows shortest plans towards random goals.
        random_share: how likely a step of an expert is a random one instead.
        walk_bias: half of the action schemas, drawn by the seed, are taken 1 + walk_bias times as often; 0: all alike.
        weights: how often each schema is taken, in proportion; a schema without a weight has 1. Multiplies the bias.
        burn_in: the log begins after an unseen walk of 0 to this many steps, each as likely.
        failure_rate: how likely a row is a failed attempt: an inapplicable action, labelled 1, which changes nothing.
        wrong_action: how likely a step is logged as another, random action of the instance.
        missing_step: how likely a step is not logged.
        wrong_label: how likely the label of a row is wrong.

    Raises:
        PlanningError: a number out of its range.
    """

    policy: str = "walk"
    random_share: float = 0.0
    walk_bias: int = 0
    weights: Mapping[str, int] | None = None
    burn_in: int = 0
    failure_rate: float = 0.0
    wrong_action: float = 0.0
    missing_step: float = 0.0
    wrong_label: float = 0.0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise PlanningError(f"policy must be one of {', '.join(POLICIES)}, got {self.policy!r}.")
        for name in ("walk_bias", "burn_in"):
            check_whole(name, getattr(self, name), 0, PlanningError)
        for name in ("random_share", "failure_rate", "wrong_action", "missing_step", "wrong_label"):
            rate: Any = getattr(self, name)
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
                raise PlanningError(f"{name} must be a number of 0 or more, below 1, got {rate!r}.")
        weights: dict[str, Any] = dict(self.weights or {})
        for name, weight in weights.items():
            if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
                raise PlanningError(f"The weight of {name!r} must be a whole number, 1 or more, got {weight!r}.")


CLEAN = LogSettings()

ENDINGS = ("contradiction", "inapplicable")
"""How negative logs end; as in `hf_mech.planning.walks.NEGATIVES`."""


class LiftedWalks:
    """The ground actions of an instance, and random walks over them. States are masks of true atoms.

    Attributes:
        problem: the instance.
        actions: the ground actions whose static preconditions hold, schema by schema.
        atoms: the atoms that actions need or change; bit i of a state is atom i.
        initial: the initial state.

    Raises:
        PlanningError: no action has objects of its types for which its static preconditions hold.
    """

    def __init__(self, problem: LiftedProblem) -> None:
        self.problem = problem
        self.actions = list(ground_actions(problem))
        if not self.actions:
            raise PlanningError(
                f"No action of domain {problem.domain.name!r} has objects of its types in problem {problem.name!r} for "
                "which its static preconditions hold."
            )
        self.index = {action: number for number, action in enumerate(self.actions)}
        self._bits: dict[GroundAtom, int] = {}
        domain, static = problem.domain, problem.domain.static
        self._pre: list[int] = []
        self._add: list[int] = []
        self._delete: list[int] = []
        for action in self.actions:
            schema = domain.by_name[action.name]
            pre = (atom for atom in schema.pre if atom.predicate not in static)
            for masks, own in ((self._pre, pre), (self._add, schema.add), (self._delete, schema.delete)):
                masks.append(self._mask(atom.ground(action.objects) for atom in sorted(own)))
            self._delete[-1] &= ~self._add[-1]
        self.initial = self._mask(sorted(atom for atom in problem.initial if atom[0] not in static))
        self.atoms = list(self._bits)
        self._moves: dict[int, tuple[int, ...]] = {}
        self._experts: dict[tuple[int, ...] | None, Expert] = {}  # by the weights of the walks that draw goals
        self._watch()

    def _mask(self, atoms: Iterable[GroundAtom]) -> int:
        mask = 0
        for atom in atoms:
            mask |= 1 << self._bits.setdefault(atom, len(self._bits))
        return mask

    def _watch(self) -> None:
        """Files every action under the one of its preconditions that the fewest actions share."""
        users = [0] * len(self.atoms)
        for pre in self._pre:
            for bit in _bits(pre):
                users[bit] += 1
        self._watched: list[list[int]] = [[] for _ in self.atoms]
        self._always: list[int] = []
        for action, pre in enumerate(self._pre):
            rarest = min(_bits(pre), key=lambda bit: users[bit], default=None)
            (self._always if rarest is None else self._watched[rarest]).append(action)
        self._watching = sum(1 << bit for bit, own in enumerate(self._watched) if own)

    # -------------------------------------------------------------------------------------------------------- states

    def applicable(self, state: int) -> tuple[int, ...]:
        """The numbers of the actions that a state allows, ascending."""
        moves = self._moves.get(state)
        if moves is None:
            false, found, pre = ~state, list(self._always), self._pre
            for bit in _bits(state & self._watching):
                found += [action for action in self._watched[bit] if not pre[action] & false]
            moves = tuple(sorted(found))
            if len(self._moves) < MOST_KEPT:
                self._moves[state] = moves
        return moves

    def apply(self, state: int, action: int) -> int:
        """The state after an action."""
        return state & ~self._delete[action] | self._add[action]

    def true_atoms(self, state: int) -> frozenset[GroundAtom]:
        """The atoms of a state."""
        return frozenset(self.atoms[bit] for bit in _bits(state))

    # --------------------------------------------------------------------------------------------------------- walks

    def walk(self, length: int, die: Die, state: int | None = None, weights: Sequence[int] | None = None) -> list[int]:
        """The numbers of the actions of a random walk; shorter if it comes to a state that allows none.

        Args:
            length: the number of steps.
            die: the random numbers.
            state: where it begins; None: the initial state.
            weights: how often each ground action is taken when it is possible, in proportion; None: all alike.
        """
        first = self.initial if state is None else state
        return [action for action, _ in islice(self._steps(first, die, weights), length)]

    def _steps(self, state: int, die: Die, weights: Sequence[int] | None) -> Iterator[tuple[int, int]]:
        """The actions of a random walk, each with the state after it."""
        while moves := self.applicable(state):
            if weights is None:
                action = moves[die.below(len(moves))]
            else:
                sums = list(accumulate(weights[action] for action in moves))
                action = moves[bisect_right(sums, die.below(sums[-1]))]
            state = self.apply(state, action)
            yield action, state

    def _plans(self, state: int, die: Die, weights: Sequence[int] | None, share: float) -> Iterator[tuple[int, int]]:
        """The actions of plans towards random goals, each with the state after it."""
        key = None if weights is None else tuple(weights)
        if key not in self._experts:
            self._experts[key] = Expert(
                lambda state: [(action, self.apply(state, action)) for action in self.applicable(state)],
                lambda state, die: self._steps(state, die, weights),
            )
        return self._experts[key].steps(state, die, share)

    def weights(self, settings: LogSettings, seed: int = 0) -> list[int] | None:
        """How often each ground action is taken, in proportion; None: all alike. The seed draws the favoured schemas.

        Raises:
            PlanningError: a weight for an action that the domain does not have.
        """
        names = [action.name for action in self.problem.domain.actions]
        if unknown := sorted(set(settings.weights or {}) - set(names)):
            raise PlanningError(f"weights: domain {self.problem.domain.name!r} has no actions {unknown}, only {names}.")
        if not settings.walk_bias and not settings.weights:
            return None
        order = list(names)
        Die(seed, (_BIAS,)).shuffle(order)
        by_name = {name: 1 + settings.walk_bias * (name in order[: len(order) // 2]) for name in names}
        by_name = {name: weight * (settings.weights or {}).get(name, 1) for name, weight in by_name.items()}
        return [by_name[action.name] for action in self.actions]

    # ---------------------------------------------------------------------------------------------------------- logs

    def traces(self, actions: int, length: int, seed: int = 0, settings: LogSettings = CLEAN) -> list[LiftedTrace]:
        """Logs of up to `length` rows, from the initial state, until they have `actions` rows together.

        Noise changes the rows only; the walks beneath are the same with and without it.

        Raises:
            PlanningError: the initial state allows no action, or a weight for an unknown action.
        """
        if not self.applicable(self.initial):
            raise PlanningError(f"The initial state of problem {self.problem.name!r} allows no action.")
        weights = self.weights(settings, seed)
        walk, noise = Die(seed, (_WALK,)), Die(seed, (_NOISE,))
        found: list[LiftedTrace] = []
        while actions > 0:
            found.append(self.trace(min(length, actions), walk, settings, weights, noise))
            actions -= len(found[-1].actions)
        return [trace for trace in found if trace.actions]

    def trace(
        self,
        length: int,
        die: Die,
        settings: LogSettings = CLEAN,
        weights: Sequence[int] | None = None,
        noise: Die | None = None,
    ) -> LiftedTrace:
        """A log of `length` rows; shorter if the walk comes to a state that allows no action.

        Args:
            length: the number of rows.
            die: the random numbers of the walk.
            settings: of the log; its habits count only through `weights`.
            weights: by ground action, from `weights`.
            noise: the random numbers of failures and wrong rows; None: those of the walk.
        """
        return self._log(self._rows(length, die, settings, weights, noise or die)[0], settings, noise or die)

    def negative(
        self,
        length: int,
        die: Die,
        negatives: str = "contradiction",
        settings: LogSettings = CLEAN,
        weights: Sequence[int] | None = None,
        noise: Die | None = None,
    ) -> LiftedTrace | None:
        """A log whose last action is wrong, labelled 1; None if the walk ends early or no action would be wrong.

        Args:
            length: the number of rows.
            negatives: one of `ENDINGS`.
            die, settings, weights, noise: as for `trace`.

        Raises:
            PlanningError: unknown negatives.
        """
        if negatives not in ENDINGS:
            raise PlanningError(f"negatives must be one of {', '.join(ENDINGS)}, got {negatives!r}.")
        rows, state, falsified = self._rows(length - 1, die, settings, weights, noise or die)
        if len(rows) < length - 1:
            return None
        if negatives == "contradiction":
            last = self._contradicting(falsified)
        else:
            allowed = set(self.applicable(state))
            last = [action for action in range(len(self.actions)) if action not in allowed]
        if not last:
            return None
        return self._log([*rows, (last[die.below(len(last))], 1)], settings, noise or die)

    def _rows(
        self, length: int, die: Die, settings: LogSettings, weights: Sequence[int] | None, noise: Die
    ) -> tuple[list[tuple[int, int]], int, int]:
        """Actions with true labels; the state after them, and the atoms that they have last deleted."""
        state, falsified = self.initial, 0
        for action in self.walk(die.below(settings.burn_in + 1), die, state, weights):
            state = self.apply(state, action)
        rows: list[tuple[int, int]] = []
        planned = settings.policy == "expert"
        steps = self._plans(state, die, weights, settings.random_share) if planned else self._steps(state, die, weights)
        while len(rows) < length:
            if _chance(settings.failure_rate, noise) and (failing := self._failing(state, noise)) is not None:
                rows.append((failing, 1))
                continue
            step = next(steps, None)
            if step is None:
                break
            action, state = step
            falsified = falsified & ~self._add[action] | self._delete[action]
            if _chance(settings.missing_step, noise):
                continue
            rows.append((noise.below(len(self.actions)) if _chance(settings.wrong_action, noise) else action, 0))
        return rows, state, falsified

    def _log(self, rows: Sequence[tuple[int, int]], settings: LogSettings, noise: Die) -> LiftedTrace:
        labels = tuple(label ^ _chance(settings.wrong_label, noise) for _, label in rows)
        return LiftedTrace(tuple(self.actions[action] for action, _ in rows), labels)

    def _failing(self, state: int, die: Die) -> int | None:
        """A random action that the state does not allow; None if it allows all."""
        allowed = set(self.applicable(state))
        while len(allowed) < len(self.actions):
            if (action := die.below(len(self.actions))) not in allowed:
                return action
        return None

    # ----------------------------------------------------------------------------------------------------- negatives

    def numbers(self, trace: Iterable[Any]) -> list[int]:
        """The numbers of ground actions, as `parse_action` takes them.

        Raises:
            StripsError: an action that the domain does not have.
            PlanningError: a ground action that the instance does not have; names its position.
        """
        found = []
        for position, given in enumerate(trace):
            action = self.problem.domain.read(given, position)
            if action not in self.index:
                raise PlanningError(
                    f"Problem {self.problem.name!r} has no action {str(action)!r} (position {position}): its objects "
                    "are unknown or of other types, or a static precondition is false."
                )
            found.append(self.index[action])
        return found

    def contradictions(self, trace: Iterable[Any], failed: Sequence[int] | None = None) -> list[GroundAction]:
        """The actions of the instance that contradict a trace by Definition 1: a precondition was last deleted.

        Args:
            trace: ground actions of the instance.
            failed: 1 for each that failed and so changed nothing; None: all were done.
        """
        falsified = 0
        for position, action in enumerate(self.numbers(trace)):
            if failed is None or not failed[position]:
                falsified = falsified & ~self._add[action] | self._delete[action]
        return [self.actions[action] for action in self._contradicting(falsified)]

    def _contradicting(self, falsified: int) -> list[int]:
        return [action for action, pre in enumerate(self._pre) if pre & falsified]

    def inapplicable(self, trace: Iterable[Any], failed: Sequence[int] | None = None) -> list[GroundAction]:
        """The actions of the instance that are not possible after a trace from the initial state.

        Args:
            trace, failed: as for `contradictions`.

        Raises:
            PlanningError: an action of the trace that is not possible, and not failed.
        """
        state = self.initial
        for position, action in enumerate(self.numbers(trace)):
            if failed is None or not failed[position]:
                if self._pre[action] & ~state:
                    raise PlanningError(f"{str(self.actions[action])!r} is not possible at position {position}.")
                state = self.apply(state, action)
        allowed = set(self.applicable(state))
        return [action for number, action in enumerate(self.actions) if number not in allowed]


def _bits(mask: int) -> Iterator[int]:
    """The positions of the ones."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _chance(rate: float, die: Die) -> bool:
    """True with this probability; draws nothing if it is 0."""
    return rate > 0 and die.below(1 << 30) < rate * (1 << 30)
