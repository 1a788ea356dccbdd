"""Action traces of a STRIPS problem (STRIPS Transformer paper, "Data generation").

Traces are random walks over the applicable actions, from initial states drawn among the reachable ones. A *positive*
trace is such a walk. A *negative* trace is a walk followed by a last action that contradicts it by Definition 1: one of
the action's preconditions was last deleted. If an action is inapplicable in the hidden state but does not contradict
the trace, the trace is positive by Definition 1; such an action is never used as a last action. Other negatives, biased
walks, plans, failed attempts and wrong labels, which the paper does not have, are settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from hf_mech.data.random_numbers import Die
from hf_mech.data.whole_numbers import check_whole
from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.planning.problem import PlanningError, StripsProblem
from hf_mech.planning.walks import NEGATIVES, POLICIES, Trace, Walks

MOST_STATES = 10_000  # initial states are drawn among this many first states of a breadth-first search
STATE_CHOICES = 16  # choices of initial states that a seed may try
PATIENCE = {"walk": 100_000, "expert": 10_000}  # a split stops after so many traces in a row that it has already
_STATES, _TRAIN, _TEST, _BIAS, _NOISE = range(5)  # a seed's streams of random numbers

PAPER_MAX_TRAIN_LENGTH = {"simple": 10, "blocksworld-2b": 20, "ferry-1c": 20, "blocksworld-3b": 30, "ferry-2c": 30}
"""The longest training traces of the paper's problems; its test traces have up to 50 actions."""


class TooFewTracesError(PlanningError):
    """The domain has fewer unique traces of the allowed lengths than requested; `found` is their number."""

    def __init__(self, message: str, found: int = 0) -> None:
        super().__init__(message)
        self.found = found


# ----------------------------------------------------------------------------------------------------------------------
# The data set: settings, initial states, and the traces of both splits.


@dataclass(frozen=True)
class TraceSettings:
    """The settings of a dataset of traces; the defaults are the paper's.

    Args:
        seed: of the initial states and of the walks; 0 or more.
        num_train: training traces; the paper's sizes are 50, 100, 200, 500, 1000 and 2000.
        num_test: test traces, half of them positive.
        negative_fraction: the share of negative traces in training, rounded to whole traces.
        max_train_length: training lengths are uniform in 1 to this (2 to this for negative traces: if the initial state
            is unknown, a first action is always possible).
        max_test_length: the same for the test traces.
        negatives: how the last action of a negative trace is drawn, one of `NEGATIVES`; the paper's is "contradiction".
        test_negatives: the same for the test traces; None: as in training.
        walk_bias: half of the actions, drawn by the seed, are taken 1 + walk_bias times as often as the others, in
            training; 0: all alike.
        label_noise: the share of training traces whose last label is wrong.
        policy: how the other actions of a training trace are drawn, one of `POLICIES`; the paper's is "walk". Test
            traces are always walks.
        failure_rate: how likely each action of a training trace, except the last, is a failed attempt: drawn like the
            last action of a negative trace, labelled inapplicable, without any effect. Not with "first_inapplicable".

    Raises:
        PlanningError: a count, length or fraction out of its range, or an unknown kind of negatives or policy.
    """

    seed: int = 0
    num_train: int = 500
    num_test: int = 10_000
    negative_fraction: float = 0.8
    max_train_length: int = 20
    max_test_length: int = 50
    negatives: str = "contradiction"
    test_negatives: str | None = None
    walk_bias: int = 0
    label_noise: float = 0.0
    policy: str = "walk"
    failure_rate: float = 0.0

    def __post_init__(self) -> None:
        least = {"seed": 0, "num_train": 1, "num_test": 1, "max_train_length": 2, "max_test_length": 2, "walk_bias": 0}
        for name, low in least.items():
            check_whole(name, getattr(self, name), low, PlanningError)
        for name in ("negative_fraction", "label_noise", "failure_rate"):
            fraction: Any = getattr(self, name)
            if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
                raise PlanningError(f"{name} must be a number in 0 to 1, got {fraction!r}.")
        for name in ("negatives", "test_negatives"):
            kind = getattr(self, name)
            if kind not in NEGATIVES and not (name == "test_negatives" and kind is None):
                raise PlanningError(f"{name} must be one of {', '.join(NEGATIVES)}, got {kind!r}.")
        if self.policy not in POLICIES:
            raise PlanningError(f"policy must be one of {', '.join(POLICIES)}, got {self.policy!r}.")
        if self.failure_rate and (self.failure_rate == 1 or self.negatives == "first_inapplicable"):
            raise PlanningError(
                f"failure_rate must be below 1, and 0 with negatives='first_inapplicable', got {self.failure_rate!r} "
                f"with {self.negatives!r}."
            )


class TraceSplits(NamedTuple):
    """Both splits in their final order, and the two initial states (masks of true propositions) of each."""

    train: tuple[Trace, ...]
    test: tuple[Trace, ...]
    train_states: tuple[int, int]
    test_states: tuple[int, int]


@lru_cache(maxsize=4)
def generate_traces(problem: StripsProblem, settings: TraceSettings) -> TraceSplits:
    """All traces of one dataset: unique, none of them in both splits; a pure function of its arguments.

    The initial states, two a split, are drawn among the reachable states in which some action is applicable (in a
    large domain, among the first `MOST_STATES`); all four differ if there are four. If the traces of a choice are too
    few, other states are drawn.

    Raises:
        TooFewTracesError: no choice of initial states gives the requested number of unique traces. They are counted
            before any is drawn, so this is exact and fast. (If there are enough traces but random walks almost never
            find the last ones, the search ends after `PATIENCE` walks without a new trace. With failed attempts and
            plans, the search alone decides.)
    """
    walks = Walks(problem.domain)
    failures: list[TooFewTracesError] = []
    for states in _initial_states(walks, problem.domain.mask(problem.initial), settings.seed):
        try:
            return _splits(walks, states[:2], states[2:], settings)
        except TooFewTracesError as error:
            failures.append(error)
    if not failures:
        raise TooFewTracesError(
            f"Domain {problem.domain.name!r} has no traces: no action is applicable in any state that the problem's "
            "initial state leads to. Check that initial state.",
            found=0,
        )
    nearest = max(failures, key=lambda failure: failure.found)
    choices = f"Seed {settings.seed} tried {len(failures)} choices of initial states; this one came nearest."
    raise TooFewTracesError(f"{nearest} {choices}", nearest.found)


def _splits(walks: Walks, train: Sequence[int], test: Sequence[int], settings: TraceSettings) -> TraceSplits:
    negatives = round(settings.num_train * settings.negative_fraction)
    train_counts = (settings.num_train - negatives, negatives)
    test_counts = (settings.num_test - settings.num_test // 2, settings.num_test // 2)
    biased = Walks(walks.domain, _weights(walks.domain, settings)) if settings.walk_bias else walks
    own, other = settings.negatives, settings.test_negatives or settings.negatives
    dice = [Die(settings.seed, (stream,)) for stream in (_TRAIN, _TEST)]
    how = (settings.policy, settings.failure_rate)
    train_traces = _draw(biased, train, train_counts, settings.max_train_length, dice[0], "train", own, *how)
    seen = frozenset(train_traces)
    seen |= {Trace(trace.actions, valid) for trace in train_traces if trace.failed for valid in (True, False)}
    test_traces = _draw(walks, test, test_counts, settings.max_test_length, dice[1], "test", other, excluded=seen)
    shared = seen.intersection(test_traces)
    if shared:
        raise AssertionError(f"Train and test share {len(shared)} traces, such as {min(shared)}; report this as a bug.")
    return TraceSplits(_mislabelled(train_traces, settings), test_traces, (train[0], train[1]), (test[0], test[1]))


def _weights(domain: StripsDomain, settings: TraceSettings) -> list[int]:
    """How often a biased walk takes each action, in proportion."""
    order = list(range(len(domain.actions)))
    Die(settings.seed, (_BIAS,)).shuffle(order)
    favoured = set(order[: len(order) // 2])
    return [1 + settings.walk_bias * (action in favoured) for action in range(len(order))]


def _mislabelled(traces: tuple[Trace, ...], settings: TraceSettings) -> tuple[Trace, ...]:
    """The traces, so many of them with the other sign."""
    order = list(range(len(traces)))
    Die(settings.seed, (_NOISE,)).shuffle(order)
    wrong = set(order[: round(len(traces) * settings.label_noise)])
    return tuple(trace._replace(valid=trace.valid ^ (i in wrong)) for i, trace in enumerate(traces))


def _draw(
    walks: Walks,
    states: Sequence[int],
    counts: tuple[int, int],
    max_length: int,
    die: Die,
    split: str,
    negatives: str,
    policy: str = "walk",
    failure_rate: float = 0.0,
    excluded: frozenset[Trace] = frozenset(),
) -> tuple[Trace, ...]:
    """`counts` = (positive, negative) unique traces outside `excluded`, shuffled.

    A walk that ends early, has no contradicting last action, or is already known is discarded, and a new length is
    drawn: when short traces run out, longer ones replace them.
    """
    drawn: list[Trace] = []
    known = set(excluded)
    excluded = frozenset(trace for trace in excluded if not trace.failed)
    for valid, count in zip((True, False), counts, strict=True):
        overlap = sum(1 for t in excluded if t.valid == valid and walks.can_draw(t, states, max_length))
        found = walks.count(states, max_length, valid, count + overlap, negatives) - overlap
        if found < count and not failure_rate:  # with failures there are more
            raise _too_few(walks.domain, split, valid, count, found, max_length, overlap, "there are")
        shortest, misses, goal = 1 if valid else 2, 0, len(drawn) + count
        while len(drawn) < goal:
            state, length = states[die.below(2)], shortest + die.below(max_length - shortest + 1)
            trace = walks.walk(state, length, valid, die, negatives, policy, failure_rate)
            if trace is None or trace in known:
                misses += 1
                if misses > PATIENCE[policy]:
                    found = len(drawn) - goal + count
                    how = f"there may be more, but {PATIENCE[policy]} traces in a row add none to"
                    raise _too_few(walks.domain, split, valid, count, found, max_length, overlap, how)
                continue
            misses = 0
            known.add(trace)
            drawn.append(trace)
    die.shuffle(drawn)
    return tuple(drawn)


def _too_few(
    domain: StripsDomain, split: str, valid: bool, wanted: int, found: int, length: int, overlap: int, how: str
) -> TooFewTracesError:
    shortest, sign = (1, "positive") if valid else (2, "negative")
    taken = f" besides the {overlap} that train has" if overlap else ""
    return TooFewTracesError(
        f"The {split} split of domain {domain.name!r} needs {wanted} unique {sign} traces of {shortest} to {length} "
        f"actions; {how} {found}{taken}. Lower num_{split}, raise max_{split}_length, or change negative_fraction.",
        found,
    )


def _initial_states(walks: Walks, first: int, seed: int) -> Iterator[tuple[int, int, int, int]]:
    """Choices of (train, train, test, test), a pair in ascending order, each choice once, in the seed's order."""
    states = sorted(s for s in walks.reachable(first, MOST_STATES) if walks.moves[s])  # no walk starts in the others
    if not states:
        return
    die, tried = Die(seed, (_STATES,)), set()
    for _ in range(64 * STATE_CHOICES):
        four = _four(states, die)
        choice = (min(four[:2]), max(four[:2]), min(four[2:]), max(four[2:]))
        if choice not in tried:
            tried.add(choice)
            yield choice
        if len(tried) == STATE_CHOICES:
            return


def _four(states: Sequence[int], die: Die) -> list[int]:
    """Four different states; if there are fewer, all of them in a random order, over and over."""
    chosen: dict[int, None] = {}
    while len(chosen) < min(4, len(states)):
        chosen[states[die.below(len(states))]] = None
    return (list(chosen) * 4)[:4]
