"""Action traces of hidden STRIPS domains (STRIPS Transformer paper, "Data generation").

    load_dataset("hf_mech/strips_traces", "blocksworld-2b", seed=0, num_train=500)
    load_dataset("hf_mech/strips_traces", "pddl", domain_file="domain.pddl", problem_file="problem.pddl")

Above, the pure generator: `generate_traces(problem, settings)`, the same on every machine and for any number of
processes. Below, the `datasets` builder that wraps it.

Traces are random walks over the applicable actions, from initial states drawn among the reachable ones. A *positive*
trace is such a walk. A *negative* one is a walk of one action less, and a last action that contradicts the walk by
Definition 1: one of its preconditions was last deleted. An action that is inapplicable in the hidden state and yet
contradicts nothing that the trace shows makes a positive trace by Definition 1, so it is never used as a last action.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import Any, ClassVar, NamedTuple

import datasets
import numpy as np

from hf_mech.local_datasets import NAMESPACE, code_hash
from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.models.strips.strips_errors import StripsError
from hf_mech.planning.bundled import BUNDLED, load_bundled
from hf_mech.planning.pddl import read_pddl
from hf_mech.planning.problem import StripsProblem

# ------------------------------------------------------------------------------------------------ the pure generator

MOST_STATES = 10_000  # initial states are drawn among the first so many that a breadth-first search reaches
STATE_CHOICES = 16  # how many choices of initial states a seed may try before it gives up
PATIENCE = 100_000  # walks in a row that bring nothing new before a split gives up


class TraceSettingsError(StripsError):
    """A setting of the trace generator that makes no sense, or settings that contradict each other."""


class TooFewTracesError(StripsError):
    """The domain has fewer unique traces, within the lengths allowed, than were asked for; `found` is how many."""

    def __init__(self, message: str, found: int) -> None:
        super().__init__(message, found)
        self.found = found

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class TraceSettings:
    """What to draw from a domain; the defaults are the paper's.

    Args:
        seed: of the initial states and of the walks; 0 or more.
        num_train: training traces; the paper's sizes are 50, 100, 200, 500, 1000 and 2000.
        num_test: test traces, half of them positive.
        negative_fraction: the share of negative traces in training, rounded to whole traces.
        max_train_length: training lengths are uniform in 1 to this (2 for negative traces: a first action is always
            possible when the initial state is not known).
        max_test_length: the same for the test traces.

    Raises:
        TraceSettingsError: a count, length or fraction out of its range.
    """

    seed: int = 0
    num_train: int = 500
    num_test: int = 10_000
    negative_fraction: float = 0.8
    max_train_length: int = 20
    max_test_length: int = 50

    def __post_init__(self) -> None:
        least = {"seed": 0, "num_train": 1, "num_test": 1, "max_train_length": 2, "max_test_length": 2}
        for name, low in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise TraceSettingsError(f"{name} must be a whole number, {low} or more, got {value!r}.")
        fraction: Any = self.negative_fraction
        if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
            raise TraceSettingsError(f"negative_fraction must be a number in 0 to 1, got {fraction!r}.")


class Trace(NamedTuple):
    """Actions by index, and whether the trace is positive: f_M = 0 in Definition 1."""

    actions: tuple[int, ...]
    valid: bool

    @property
    def labels(self) -> list[int]:
        """1 where the action is inapplicable: nowhere, or in a negative trace at the last position alone."""
        return [0] * (len(self.actions) - 1) + [int(not self.valid)]


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
    few, the seed chooses others.

    Raises:
        TooFewTracesError: no choice of initial states gives as many unique traces as asked for. They are counted before
            any is drawn, so this is certain and quick. (Where the traces would suffice but a random walk hardly ever
            meets the last of them, the search ends after `PATIENCE` walks in vain.)
    """
    walks = _Walks(problem.domain)
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


def _splits(walks: _Walks, train: Sequence[int], test: Sequence[int], settings: TraceSettings) -> TraceSplits:
    negatives = round(settings.num_train * settings.negative_fraction)
    train_counts = (settings.num_train - negatives, negatives)
    test_counts = (settings.num_test - settings.num_test // 2, settings.num_test // 2)
    train_traces = _draw(walks, train, train_counts, settings.max_train_length, _Dice(settings.seed, 1), "train")
    seen = frozenset(train_traces)
    test_traces = _draw(walks, test, test_counts, settings.max_test_length, _Dice(settings.seed, 2), "test", seen)
    shared = seen.intersection(test_traces)
    if shared:
        raise AssertionError(f"Train and test share {len(shared)} traces, such as {min(shared)}; report this as a bug.")
    return TraceSplits(train_traces, test_traces, (train[0], train[1]), (test[0], test[1]))


def _draw(
    walks: _Walks,
    states: Sequence[int],
    counts: tuple[int, int],
    max_length: int,
    dice: _Dice,
    split: str,
    excluded: frozenset[Trace] = frozenset(),
) -> tuple[Trace, ...]:
    """`counts` = (positive, negative) unique traces outside `excluded`, shuffled.

    A walk that ends early, has no contradicting last action, or is known already is thrown away and the length is drawn
    anew: where short traces run out, longer ones take their place.
    """
    drawn: list[Trace] = []
    known = set(excluded)
    for valid, count in zip((True, False), counts, strict=True):
        overlap = sum(1 for t in excluded if t.valid == valid and walks.can_draw(t, states, max_length))
        found = walks.count(states, max_length, valid, enough=count + overlap) - overlap
        if found < count:
            raise _too_few(walks.domain, split, valid, count, found, max_length, overlap, "there are")
        shortest, misses, goal = 1 if valid else 2, 0, len(drawn) + count
        while len(drawn) < goal:
            trace = walks.walk(states[dice.below(2)], shortest + dice.below(max_length - shortest + 1), valid, dice)
            if trace is None or trace in known:
                misses += 1
                if misses > PATIENCE:
                    found, how = len(drawn) - goal + count, f"there are more, but {PATIENCE} walks in a row add none to"
                    raise _too_few(walks.domain, split, valid, count, found, max_length, overlap, how)
                continue
            misses = 0
            known.add(trace)
            drawn.append(trace)
    dice.shuffle(drawn)
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


def _initial_states(walks: _Walks, first: int, seed: int) -> Iterator[tuple[int, int, int, int]]:
    """Choices of (train, train, test, test), a pair in ascending order, each choice once, in the seed's order."""
    states = sorted(s for s in walks.reachable(first, MOST_STATES) if walks.moves[s])  # the others start no walk
    if not states:
        return
    dice, tried = _Dice(seed, 0), set()
    for _ in range(64 * STATE_CHOICES):
        four = dice.sample(states, 4)
        choice = (min(four[:2]), max(four[:2]), min(four[2:]), max(four[2:]))
        if choice not in tried:
            tried.add(choice)
            yield choice
        if len(tried) == STATE_CHOICES:
            return


class _Dice:
    """Random whole numbers from the raw bits of PCG64: numpy promises that those never change between versions."""

    def __init__(self, seed: int, stream: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream,)))
        self._buffer: list[int] = []

    def below(self, n: int) -> int:
        """Uniform in 0 to n - 1, up to n / 2**32."""
        if not self._buffer:
            raw: np.ndarray = self._bits.random_raw(4096)
            self._buffer = (raw >> np.uint64(32)).tolist()
        return self._buffer.pop() * n >> 32

    def shuffle(self, items: list[Any]) -> None:
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def sample(self, items: Sequence[int], n: int) -> list[int]:
        """n different items; if there are fewer, all of them in a random order, over and over."""
        chosen: dict[int, None] = {}
        while len(chosen) < min(n, len(items)):
            chosen[items[self.below(len(items))]] = None
        return (list(chosen) * n)[:n]


class _Moves(dict[int, tuple[tuple[int, int], ...]]):
    """state -> its (action, next state) pairs, worked out when first asked for."""

    def __init__(self, domain: StripsDomain) -> None:
        super().__init__()
        self._domain = domain

    def __missing__(self, state: int) -> tuple[tuple[int, int], ...]:
        moves = tuple((a, self._domain.apply(state, a)) for a in self._domain.applicable(state))
        return self.setdefault(state, moves)


class _Contradictions(dict[int, tuple[int, ...]]):
    """known-false propositions (a mask) -> the actions with one of them as a precondition: Y(i) = 1 in Eq. 6."""

    def __init__(self, domain: StripsDomain) -> None:
        super().__init__()
        self._pre_masks = domain.pre_masks

    def __missing__(self, falsified: int) -> tuple[int, ...]:
        return self.setdefault(falsified, tuple(a for a, pre in enumerate(self._pre_masks) if pre & falsified))


class _Walks:
    """Random walks in one domain, and how many different ones there are."""

    def __init__(self, domain: StripsDomain) -> None:
        self.domain = domain
        self.moves = _Moves(domain)
        self.contradictions = _Contradictions(domain)

    def reachable(self, first: int, most: int) -> list[int]:
        """The states that walks from `first` reach, itself included, breadth first, the first `most` of them."""
        states = {first: None}  # a dict keeps the order
        frontier = [first]
        while frontier and len(states) < most:
            frontier = list(dict.fromkeys(s for f in frontier for _, s in self.moves[f] if s not in states))
            states.update(dict.fromkeys(frontier))
        return list(states)[:most]

    def walk(self, state: int, length: int, valid: bool, dice: _Dice) -> Trace | None:
        """A random trace of the given length and sign from a state; None if the walk has to end before."""
        actions: list[int] = []
        for _ in range(length if valid else length - 1):
            moves = self.moves[state]
            if not moves:
                return None
            action, state = moves[dice.below(len(moves))]
            actions.append(action)
        if not valid:
            last = self.contradictions[self.domain.falsified(actions)]
            if not last:
                return None
            actions.append(last[dice.below(len(last))])
        return Trace(tuple(actions), valid)

    def can_draw(self, trace: Trace, states: Sequence[int], max_length: int) -> bool:
        """Whether `walk` could return this trace from one of the states."""
        if len(trace.actions) > max_length:
            return False
        current = frozenset(states)
        for action in trace.actions if trace.valid else trace.actions[:-1]:
            current = frozenset(after for s in current for a, after in self.moves[s] if a == action)
        return bool(current)

    def count(self, states: Sequence[int], max_length: int, valid: bool, enough: int) -> int:
        """How many different traces of up to `max_length` actions `walk` can return; stops counting at `enough`.

        Exact and without listing any: the walks that agree on where they may be, and on what they have falsified, are
        counted together, by one length after another.
        """
        if not valid and not self.contradictions[reduce(or_, self.domain.delete_masks, 0)]:
            return 0  # nothing is ever deleted that is a precondition: no need to search for it
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
            for (_, falsified), ways in level.items():
                total += ways if valid else ways * len(self.contradictions[falsified])
            if total >= enough or not level:
                break
        return total


# ------------------------------------------------------------------------------------------------------- the builder

VERSION = datasets.Version("1.0.0")
PAPER_MAX_TRAIN_LENGTH = {"simple": 10, "blocksworld-2b": 20, "ferry-1c": 20, "blocksworld-3b": 30, "ferry-2c": 30}
OTHER_MAX_TRAIN_LENGTH = 20  # for every problem that the paper does not have
SHARDS = 16  # of each split: as many processes, DataLoader workers or nodes can share the work

_DESCRIPTION = """\
Traces of actions of a hidden propositional STRIPS domain. A trace is valid (positive) if no action has a \
precondition that the actions before it have last deleted; nothing is known of the initial state. In an invalid \
(negative) trace the last action, and no other, is inapplicable. Test traces are longer than training traces."""

_CITATION = """\
@misc{nunezmolina-strips-world-models,
  title  = {From Next Token Prediction to ({STRIPS}) World Models -- Preliminary Results},
  author = {N{\\'u}{\\~n}ez-Molina, Carlos and G{\\'o}mez, Vicen{\\c{c}} and Geffner, Hector},
}
"""


@dataclass
class StripsTracesConfig(datasets.BuilderConfig):
    """One dataset of traces: a bundled problem by its name, or `pddl` with two files of your own.

    Args:
        seed, num_train, num_test, negative_fraction, max_test_length: see `TraceSettings`.
        max_train_length: None for the paper's: 10 for simple, 20 for blocksworld-2b and ferry-1c, 30 for blocksworld-3b
            and ferry-2c; 20 for every other problem.
        domain_file, problem_file: PDDL files, for the config `pddl` alone.
        max_ground: the most ground actions and atoms that the files may have, see `read_pddl`; for `pddl` alone.
    """

    version: datasets.Version | str | None = VERSION
    seed: int = 0
    num_train: int = 500
    num_test: int = 10_000
    negative_fraction: float = 0.8
    max_train_length: int | None = None
    max_test_length: int = 50
    domain_file: str | None = None
    problem_file: str | None = None
    max_ground: int | None = None

    @property
    def settings(self) -> TraceSettings:
        """The config as the generator takes it. Raises TraceSettingsError for values out of range."""
        length = self.max_train_length
        if length is None:
            length = PAPER_MAX_TRAIN_LENGTH.get(self.name, OTHER_MAX_TRAIN_LENGTH)
        return TraceSettings(
            seed=self.seed,
            num_train=self.num_train,
            num_test=self.num_test,
            negative_fraction=self.negative_fraction,
            max_train_length=length,
            max_test_length=self.max_test_length,
        )

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None) -> str:
        """The name of the cache: it holds what the PDDL files say, not where they lie."""
        problem = problem_of(self)
        content = {"domain": problem.domain.to_dict(), "initial": sorted(problem.initial)}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
        read_already = ("domain_file", "problem_file", "max_ground")
        kept = {k: v for k, v in config_kwargs.items() if k not in read_already and v is not None}
        config_id: str = super().create_config_id({**kept, "problem": digest}, custom_features)
        return config_id


def problem_of(config: StripsTracesConfig) -> StripsProblem:
    """The hidden problem behind a config.

    Raises:
        TraceSettingsError: `pddl` without its two files, files or max_ground for a bundled problem, or a name that is
            neither.
        StripsError: the files cannot be read, as `read_pddl` raises it.
    """
    files = (config.domain_file, config.problem_file)
    if config.name in BUNDLED:
        if (*files, config.max_ground) != (None, None, None):
            raise TraceSettingsError(
                f"Config {config.name!r} is a bundled problem and takes no domain_file, problem_file or max_ground, "
                f"got {(*files, config.max_ground)}; use the config 'pddl' for your own."
            )
        return load_bundled(config.name)
    if config.domain_file is None or config.problem_file is None:
        raise TraceSettingsError(
            f"Config {config.name!r} needs domain_file= and problem_file=, the paths of two PDDL files, got {files}; "
            f"or name a bundled problem: {', '.join(BUNDLED)}."
        )
    if config.max_ground is None:
        return read_pddl(config.domain_file, config.problem_file)
    return read_pddl(config.domain_file, config.problem_file, max_ground=config.max_ground)


class StripsTraces(datasets.GeneratorBasedBuilder):
    """Splits `train` and `test` with the columns

    - `input_ids`: the actions, a list of ClassLabel over the names of the domain's actions;
    - `labels`: one for each action, `applicable` (0) or `inapplicable` (1) after the actions before it (Eq. 6);
    - `valid`: whether all are applicable, f_M = 0 in Definition 1.
    """

    VERSION = VERSION
    BUILDER_CONFIG_CLASS = StripsTracesConfig
    BUILDER_CONFIGS: ClassVar[list[StripsTracesConfig]] = [StripsTracesConfig(name=name) for name in (*BUNDLED, "pddl")]
    config: StripsTracesConfig

    def __init__(
        self,
        cache_dir: str | None = None,
        dataset_name: str | None = None,
        config_name: str | None = None,
        hash: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # What `load_dataset` passes: used directly, the builder has the same cache, and a new one after an edit.
        kwargs = {"repo_id": f"{NAMESPACE}/{__name__.rpartition('.')[2]}", **kwargs}
        super().__init__(cache_dir, dataset_name, config_name, hash or code_hash(__name__), *args, **kwargs)

    @cached_property
    def problem(self) -> StripsProblem:
        """The hidden problem; a training script compares what was learned with `builder.problem.domain`."""
        return problem_of(self.config)

    @property
    def traces(self) -> TraceSplits:
        """All traces, before they become rows; `generate_traces` keeps them. Raises TooFewTracesError like it."""
        return generate_traces(self.problem, self.config.settings)

    def _info(self) -> datasets.DatasetInfo:
        actions = datasets.ClassLabel(names=list(self.problem.domain.action_names))
        features = {
            "input_ids": datasets.List(actions),
            "labels": datasets.List(datasets.ClassLabel(names=["applicable", "inapplicable"])),
            "valid": datasets.Value("bool"),
        }
        return datasets.DatasetInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            license="apache-2.0",
            features=datasets.Features(features),
            version=self.VERSION,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        # Drawn (and kept) before any process starts, so that an error reaches the user with its own type.
        generate_traces(self.problem, self.config.settings)
        shards = list(range(SHARDS))
        return [
            datasets.SplitGenerator(name=datasets.Split.TRAIN, gen_kwargs={"split": "train", "shards": shards}),
            datasets.SplitGenerator(name=datasets.Split.TEST, gen_kwargs={"split": "test", "shards": shards}),
        ]

    def _generate_examples(self, split: str, shards: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of some shards. A shard is a block of neighbours, so any number of processes keeps the order."""
        traces: tuple[Trace, ...] = getattr(self.traces, split)
        for shard in shards:
            for row in range(len(traces) * shard // SHARDS, len(traces) * (shard + 1) // SHARDS):
                trace = traces[row]
                yield row, {"input_ids": list(trace.actions), "labels": trace.labels, "valid": trace.valid}
