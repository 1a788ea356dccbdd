"""Random walks in a propositional STRIPS domain, plans in it, and the traces that they leave."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import NamedTuple

from hf_mech.data.random_numbers import Die
from hf_mech.models.strips.strips_domain import StripsDomain

MOST_SEARCHED = 10_000  # states that the search for one plan may store
_GOALS = 16  # goals that an expert tries before it gives up
_FAR = 30  # the longest walk that draws a goal


class Trace(NamedTuple):
    """A trace of actions.

    Attributes:
        actions: by index.
        valid: whether the trace without its failed attempts is positive: f_M = 0 in Definition 1.
        failed: the positions of failed attempts before the last action. They changed nothing.
    """

    actions: tuple[int, ...]
    valid: bool
    failed: tuple[int, ...] = ()

    @property
    def labels(self) -> list[int]:
        """1 where the action is inapplicable: at the failed attempts, and at the last position of a negative trace."""
        labels = [0] * (len(self.actions) - 1) + [int(not self.valid)]
        for position in self.failed:
            labels[position] = 1
        return labels


NEGATIVES = ("contradiction", "inapplicable", "first_inapplicable")
"""How negative traces end.

- contradiction: after a walk, an action that contradicts it (Definition 1), each as likely; the paper's.
- inapplicable: after a walk, an action that the hidden state does not allow, each as likely.
- first_inapplicable: no walk; any actions, each as likely, until the hidden state does not allow one. Only traces that
  contradict themselves are kept.
"""


POLICIES = ("walk", "expert")
"""How the actions are drawn.

- walk: each applicable action as likely; the paper's.
- expert: a shortest plan towards a random goal, then one towards the next. A goal is one or two propositions that are
  false now and true at the end of a random walk from here.
"""


class Expert:
    """Shortest plans towards one random goal after another. States and goals are masks.

    Not the planner of the extra `plan`: a data set is a pure function of its settings, and must not change with the
    version of a planner, or need one. A planner also starts anew for each plan; this search keeps what it found.

    Args:
        moves: the (action, next state) pairs of a state, in a fixed order.
        walk: the (action, next state) pairs of a random walk from a state; it draws the goals.
    """

    def __init__(
        self,
        moves: Callable[[int], Sequence[tuple[int, int]]],
        walk: Callable[[int, Die], Iterator[tuple[int, int]]],
    ) -> None:
        self._moves, self._walk = moves, walk
        self._found: dict[tuple[int, int], tuple[int, ...] | None] = {}

    def steps(self, state: int, die: Die, random_share: float = 0.0) -> Iterator[tuple[int, int]]:
        """The actions of the plans, each with the state after it; ends where no goal is found.

        Args:
            state: the initial state.
            die: the random numbers.
            random_share: how likely a step is a random one instead; then a new goal is drawn.
        """
        tries = 0
        while tries < _GOALS:
            *_, (_, far) = [(0, state), *islice(self._walk(state, die), 1 + die.below(_FAR))]
            new = far & ~state
            goals = [bit for bit in range(new.bit_length()) if new >> bit & 1]
            die.shuffle(goals)
            plan = self.shortest_plan(state, sum(1 << bit for bit in goals[: 1 + die.below(2)]))
            tries = 0 if plan else tries + 1
            for action in plan or ():
                if random_share and die.below(1 << 30) < random_share * (1 << 30):
                    action, state = next(self._walk(state, die))
                    yield action, state
                    break
                state = next(following for number, following in self._moves(state) if number == action)
                yield action, state

    def shortest_plan(self, state: int, goal: int) -> tuple[int, ...] | None:
        """The first shortest plan in the order of the moves; None if it lies beyond `MOST_SEARCHED` states.

        Args:
            state: the initial state.
            goal: the propositions to make true.
        """
        if (state, goal) in self._found:
            return self._found[state, goal]
        before: dict[int, tuple[int, int]] = {state: (-1, -1)}  # state -> the state before it, and the action
        reached = state if not goal & ~state else None
        waiting = deque([state])
        while waiting and reached is None and len(before) < MOST_SEARCHED:
            current = waiting.popleft()
            for action, following in self._moves(current):
                if following not in before:
                    before[following] = (current, action)
                    if not goal & ~following:
                        reached = following
                        break
                    waiting.append(following)
        plan: list[int] = []
        while reached is not None and reached != state:
            reached, action = before[reached]
            plan.append(action)
        self._found[state, goal] = None if reached is None else tuple(reversed(plan))
        return self._found[state, goal]


class Walks:
    """Random walks in one domain. States are masks of true propositions, as in `StripsDomain`.

    Attributes:
        domain: the domain.
        moves: state -> its (action, next state) pairs; computed at the first use of a state.
        contradictions: known-false propositions (a mask) -> the actions with one of them as a precondition: Y(i) = 1 in
            Eq. 6.
        weights: how much likelier a walk takes one action than another, whole numbers by action; None: all alike.
        expert: draws the plans.
    """

    def __init__(self, domain: StripsDomain, weights: Sequence[int] | None = None) -> None:
        self.domain = domain
        self.weights = weights
        self.moves = _Moves(domain)
        self.contradictions = _Contradictions(domain)
        self.expert = Expert(self.moves.__getitem__, self._steps)

    def reachable(self, first: int, most: int) -> list[int]:
        """The states that walks from `first` reach, itself included, breadth first, the first `most` of them."""
        states = {first: None}  # a dict keeps the order
        frontier = [first]
        while frontier and len(states) < most:
            frontier = list(dict.fromkeys(s for f in frontier for _, s in self.moves[f] if s not in states))
            states.update(dict.fromkeys(frontier))
        return list(states)[:most]

    def walk(
        self,
        state: int,
        length: int,
        valid: bool,
        die: Die,
        negatives: str = "contradiction",
        policy: str = "walk",
        failure_rate: float = 0.0,
    ) -> Trace | None:
        """A random trace of the given length and sign from a state; None if the walk ends early.

        Args:
            state, length, valid: where it begins, how long it is, and whether it is positive.
            die: the random numbers.
            negatives: how the last action of a negative trace is drawn, one of `NEGATIVES`; failed attempts likewise.
            policy: how the other actions are drawn, one of `POLICIES`.
            failure_rate: how likely each action before the last is a failed attempt, which changes nothing.
        """
        if not valid and negatives == "first_inapplicable":
            return self._until_inapplicable(state, length, die)
        steps = self._steps(state, die) if policy == "walk" else self.expert.steps(state, die)
        actions: list[int] = []
        failed: list[int] = []
        falsified = 0
        while len(actions) < (length if valid else length - 1):
            if failure_rate and len(actions) < length - 1 and die.below(1 << 30) < failure_rate * (1 << 30):
                wrong = self._wrong(state, falsified, negatives)
                if wrong:
                    failed.append(len(actions))
                    actions.append(wrong[die.below(len(wrong))])
                    continue
            step = next(steps, None)
            if step is None:
                return None
            action, state = step
            falsified = self.domain.advance(falsified, action)
            actions.append(action)
        if not valid:
            last = self._wrong(state, falsified, negatives)
            if not last:
                return None
            actions.append(last[die.below(len(last))])
        return Trace(tuple(actions), valid, tuple(failed))

    def _wrong(self, state: int, falsified: int, negatives: str) -> Sequence[int]:
        """The actions that a negative trace may end with."""
        return self._forbidden([state]) if negatives == "inapplicable" else self.contradictions[falsified]

    def _steps(self, state: int, die: Die) -> Iterator[tuple[int, int]]:
        """The actions of a random walk, each with the state after it."""
        while moves := self.moves[state]:
            action, state = self._choose(moves, die)
            yield action, state

    def _choose(self, moves: Sequence[tuple[int, int]], die: Die) -> tuple[int, int]:
        if self.weights is None:
            return moves[die.below(len(moves))]
        weighted = [move for move in moves for _ in range(self.weights[move[0]])]
        return weighted[die.below(len(weighted))]

    def _until_inapplicable(self, state: int, length: int, die: Die) -> Trace | None:
        """Any actions until one is inapplicable; None if that does not contradict them, or if it takes too many."""
        actions: list[int] = []
        while len(actions) < length:
            action = die.below(len(self.domain.actions))
            actions.append(action)
            if self.domain.pre_masks[action] & ~state:
                contradicts = action in self.contradictions[self.domain.falsified(actions[:-1])]
                return Trace(tuple(actions), False) if contradicts else None
            state = self.domain.apply(state, action)
        return None

    def can_draw(self, trace: Trace, states: Sequence[int], max_length: int) -> bool:
        """Whether `walk` could return this trace from one of the states."""
        if len(trace.actions) > max_length:
            return False
        current = frozenset(states)
        for action in trace.actions if trace.valid else trace.actions[:-1]:
            current = frozenset(after for s in current for a, after in self.moves[s] if a == action)
        return bool(current)

    def count(
        self, states: Sequence[int], max_length: int, valid: bool, enough: int, negatives: str = "contradiction"
    ) -> int:
        """The number of different traces of up to `max_length` actions that `walk` can return; stops at `enough`.

        Exact, without enumerating them. Walks of one length are counted together if they have the same possible states
        and the same falsified propositions; the counts of longer walks follow from these.
        """
        by_state = not valid and negatives == "inapplicable"
        if not valid and not by_state and not self.contradictions[reduce(or_, self.domain.delete_masks, 0)]:
            return 0  # no precondition is ever deleted: no need to search
        level = {(frozenset(states), 0): 1}
        total = 0
        for _ in range(max_length if valid else max_length - 1):
            longer: defaultdict[tuple[frozenset[int], int], int] = defaultdict(int)
            for (current, falsified), ways in level.items():
                after: defaultdict[int, set[int]] = defaultdict(set)
                for state in current:
                    for action, following in self.moves[state]:
                        after[action].add(following)
                for action, following_states in after.items():
                    longer[frozenset(following_states), self.domain.advance(falsified, action)] += ways
            level = longer
            for (current, falsified), ways in level.items():
                last = self._forbidden(current) if by_state else self.contradictions[falsified]
                total += ways if valid else ways * len(last)
            if total >= enough or not level:
                break
        return total

    def _forbidden(self, states: Iterable[int]) -> list[int]:
        """The actions that one of the states does not allow."""
        return [a for a, pre in enumerate(self.domain.pre_masks) if any(pre & ~state for state in states)]


class _Moves(dict[int, tuple[tuple[int, int], ...]]):
    def __init__(self, domain: StripsDomain) -> None:
        super().__init__()
        self._domain = domain

    def __missing__(self, state: int) -> tuple[tuple[int, int], ...]:
        moves = tuple((a, self._domain.apply(state, a)) for a in self._domain.applicable(state))
        return self.setdefault(state, moves)


class _Contradictions(dict[int, tuple[int, ...]]):
    def __init__(self, domain: StripsDomain) -> None:
        super().__init__()
        self._pre_masks = domain.pre_masks

    def __missing__(self, falsified: int) -> tuple[int, ...]:
        return self.setdefault(falsified, tuple(a for a, pre in enumerate(self._pre_masks) if pre & falsified))
