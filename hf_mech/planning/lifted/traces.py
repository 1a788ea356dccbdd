"""The logs of a data set over a lifted domain: train in a small instance, test in one at least twice as large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

from hf_mech.data.random_numbers import Die
from hf_mech.data.whole_numbers import check_whole
from hf_mech.planning.lifted.domains import DOMAINS, SIZES, instance
from hf_mech.planning.lifted.pddl import LiftedProblem
from hf_mech.planning.lifted.walks import ENDINGS, LiftedTrace, LiftedWalks, LogSettings
from hf_mech.planning.problem import PlanningError
from hf_mech.planning.traces import TooFewTracesError

PATIENCE = 10_000  # a split stops after this many walks in a row without a new trace
_TRAIN, _TRAIN_NOISE, _TEST = range(3)  # a seed's streams of random numbers


@dataclass(frozen=True)
class LiftedTraceSettings:
    """The settings of a data set of lifted traces. Test traces are clean, uniform walks, and half of them negative.

    Args:
        domain: one of `DOMAINS`.
        seed: of the instances and of the walks; 0 or more.
        num_train, num_test: the numbers of traces.
        size, test_size: of the instances of both splits, one of `SIZES`.
        negative_fraction: the share of negative traces in training, rounded to whole traces.
        max_train_length, max_test_length: lengths are uniform in 1 to this (2 to this for negative traces). A positive
            walk that ends early is a shorter trace.
        negatives, test_negatives: how the last action of a negative trace is drawn, one of `ENDINGS`; a failed attempt
            is always any inapplicable action. None: as in training.
        policy, random_share, walk_bias, burn_in, failure_rate, wrong_action, missing_step, wrong_label: of the training
            traces, see `LogSettings`.

    Raises:
        PlanningError: a value out of its range.
    """

    domain: str
    seed: int = 0
    num_train: int = 40
    num_test: int = 2000
    size: str = "small"
    test_size: str = "big"
    negative_fraction: float = 0.0
    max_train_length: int = 100
    max_test_length: int = 50
    negatives: str = "contradiction"
    test_negatives: str | None = None
    policy: str = "walk"
    random_share: float = 0.0
    walk_bias: int = 0
    burn_in: int = 0
    failure_rate: float = 0.0
    wrong_action: float = 0.0
    missing_step: float = 0.0
    wrong_label: float = 0.0

    def __post_init__(self) -> None:
        least = {"seed": 0, "num_train": 1, "num_test": 1, "max_train_length": 2, "max_test_length": 2}
        for name, low in least.items():
            check_whole(name, getattr(self, name), low, PlanningError)
        share: Any = self.negative_fraction
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise PlanningError(f"negative_fraction must be a number in 0 to 1, got {share!r}.")
        endings, sizes = (*ENDINGS,), (*SIZES,)
        for name, allowed in {
            "domain": DOMAINS,
            "size": sizes,
            "test_size": sizes,
            "negatives": endings,
            "test_negatives": (*endings, None),
        }.items():
            if getattr(self, name) not in allowed:
                raise PlanningError(
                    f"{name} must be one of {', '.join(map(str, allowed))}, got {getattr(self, name)!r}."
                )
        _ = self.log

    @property
    def log(self) -> LogSettings:
        """How training traces differ from uniform walks."""
        mine = asdict(self)
        return LogSettings(**{field.name: mine[field.name] for field in fields(LogSettings) if field.name in mine})


class LiftedSplits(NamedTuple):
    """Both splits in their final order, and their instances."""

    train: tuple[LiftedTrace, ...]
    test: tuple[LiftedTrace, ...]
    train_problem: LiftedProblem
    test_problem: LiftedProblem


@lru_cache(maxsize=4)
def generate_lifted_traces(settings: LiftedTraceSettings) -> LiftedSplits:
    """All traces of a data set: unique, and none of them in both splits; a pure function of its settings.

    Raises:
        TooFewTracesError: the walks find no more unique traces.
    """
    problems = [instance(settings.domain, size, settings.seed) for size in (settings.size, settings.test_size)]
    walks = [LiftedWalks(problem) for problem in problems]
    negatives = round(settings.num_train * settings.negative_fraction)
    counts = (settings.num_train - negatives, negatives)
    dice = [Die(settings.seed, (7, stream)) for stream in (_TRAIN, _TRAIN_NOISE, _TEST)]
    known: set[tuple[Any, ...]] = set()
    train = _draw(walks[0], counts, settings.max_train_length, settings.negatives, settings, dice[:2], known)
    plain = LiftedTraceSettings(settings.domain, settings.seed)
    ending = settings.test_negatives or settings.negatives
    counts = (settings.num_test - settings.num_test // 2, settings.num_test // 2)
    test = _draw(walks[1], counts, settings.max_test_length, ending, plain, dice[2:], known)
    return LiftedSplits(train, test, *problems)


def _draw(
    walks: LiftedWalks,
    counts: tuple[int, int],
    max_length: int,
    negatives: str,
    settings: LiftedTraceSettings,
    dice: Sequence[Die],
    known: set[tuple[Any, ...]],
) -> tuple[LiftedTrace, ...]:
    """`counts` = (positive, negative) traces whose actions are not `known`, shuffled; they become known."""
    die, noise = dice[0], dice[-1]
    weights, log = walks.weights(settings.log, settings.seed), settings.log
    drawn: list[LiftedTrace] = []
    for valid, count in zip((True, False), counts, strict=True):
        shortest, misses, goal = 1 if valid else 2, 0, len(drawn) + count
        while len(drawn) < goal:
            length = shortest + die.below(max_length - shortest + 1)
            trace: LiftedTrace | None
            if valid:
                trace = walks.trace(length, die, log, weights, noise)
            else:
                trace = walks.negative(length, die, negatives, log, weights, noise)
            if trace is None or not trace.actions or trace.actions in known:
                misses += 1
                if misses > PATIENCE:
                    found = len(drawn) - goal + count
                    raise TooFewTracesError(
                        f"{PATIENCE} walks in a row in {walks.problem.name!r} add none to {found} unique "
                        f"{'positive' if valid else 'negative'} traces of up to {max_length} actions, {count} are "
                        "needed. Ask for fewer traces, longer ones, or a bigger instance.",
                        found,
                    )
                continue
            misses = 0
            known.add(trace.actions)
            drawn.append(trace)
    die.shuffle(drawn)
    return tuple(drawn)
