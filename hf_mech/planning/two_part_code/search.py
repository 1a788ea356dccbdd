"""The search for the domain of the shortest code: what a guess says, what no trace decides, chains, `learn_domain`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from hf_mech.data.random_numbers import Dice
from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.problem import PlanningError
from hf_mech.planning.two_part_code.code import TwoPartCode, check_whole, positions_of, some_of
from hf_mech.planning.two_part_code.kernel import ADD, DELETE, NOTHING, TRUE, Chain, Guess, Positions, anneal, chain_of

# ----------------------------------------------------------------------------------------------------------------------
# What a guess says: its domain, as symbols and as theta, and the actions that it calls inapplicable.


def inapplicable(guess: Guess, data: Positions) -> NDArray[np.bool_]:
    """Whether each position's action is inapplicable by the guessed domain, whatever the initial state (Eq. 6), [N].

    Actions of label 1 before it have changed nothing.
    """
    everything_true = np.zeros((1, len(guess.pre)), np.uint8), np.zeros(len(data.starts), np.int64)
    chain = chain_of(Guess(guess.pre.copy(), guess.effect.copy(), *everything_true), data)
    found: NDArray[np.bool_] = chain.cover[np.arange(len(data.actions)), data.actions] > 0
    return found


def theta_of(guess: Guess) -> NDArray[np.float32]:
    """The guessed domain as theta of Eq. 8-10, [propositions, actions, 3]."""
    return np.stack([guess.pre == 1, guess.effect != NOTHING, guess.effect == DELETE], axis=-1).astype(np.float32)


def speaking(guess: Guess) -> NDArray[np.bool_]:
    """The propositions that can forbid an action: a precondition, and deleted by some action, [propositions]."""
    used: NDArray[np.bool_] = guess.pre.any(1) & (guess.effect == DELETE).any(1)
    return used


def domain_of(guess: Guess, actions: Sequence[str], name: str, *, keep_idle: bool = False) -> StripsDomain:
    """The guessed domain, its propositions named p0, p1, ...

    Args:
        guess: the cells.
        actions: their names.
        name: of the domain.
        keep_idle: whether to keep the propositions that can forbid nothing.
    """
    used = speaking(guess) | keep_idle
    names = [f"p{number}" for number in range(int(used.sum()))]

    def where(cell: NDArray[np.bool_]) -> frozenset[str]:
        return frozenset(name for name, here in zip(names, cell[used], strict=True) if here)

    return StripsDomain(
        tuple(names),
        tuple(
            StripsAction(
                action,
                where(guess.pre[:, a] == 1),
                where(guess.effect[:, a] == ADD),
                where(guess.effect[:, a] == DELETE),
            )
            for a, action in enumerate(actions)
        ),
        name,
    )


# ----------------------------------------------------------------------------------------------------------------------
# From the shortest code to the whole domain: the preconditions and delete effects that it had no need to name.
#
# The shortest code says once what follows from it. If two preconditions of an action are always false together in the
# training traces, it pays for one of them. A trace from another initial state may delete the other one alone. So the
# domain is completed by the invariants that the walks show: an action is applicable only where an atom is true, or only
# where it is false.
#
# - Only where it is true: the atom becomes a precondition.
# - Only where it is false, and the action does not add it: the action deletes it.
#
# A cell that would make more labels wrong than there were, or than `label_noise` explains, is left out: it makes a walk
# impossible that begins before the atom is touched.
#
# An invariant is believed if chance would hardly show it. A *stretch* is the part of a walk between two effects on the
# atom. Let the action be applicable somewhere in a share q of the stretches of one value, and in none of the n
# stretches of the other: were the atom of no account, the chance of that is (1 - q)^n. Values from the start of a trace
# are left out, as all traces share their few initial states.


def complete(guess: Guess, data: Positions, code: TwoPartCode) -> Guess:
    """The guess with every precondition and delete effect that the walks show, for atoms that can forbid an action.

    Args:
        guess: with the shortest code.
        data: the traces that it explains.
        code: `significance` is the largest chance at which an invariant is believed.
    """
    now, bound = guess.copy(), math.log(code.significance)
    most = max(_wrong(now, data), math.ceil(code.label_noise * len(data.starts)))
    while True:
        chain = chain_of(now.copy(), data)
        before = int(now.pre.sum() + (now.effect == DELETE).sum())
        for atom in np.flatnonzero(speaking(now)):
            (true, when_true), (false, when_false) = _stretches(chain, data, int(atom))
            if not true or not false:
                continue
            with np.errstate(divide="ignore"):  # an action that is applicable in every stretch: the chance is 0
                only_true = false * np.log1p(-when_true / true)
                only_false = true * np.log1p(-when_false / false)
            wanted = now.copy()
            wanted.pre[atom, (when_false == 0) & (only_true < bound)] = 1
            deleted = (when_true == 0) & (only_false < bound) & (now.effect[atom] == NOTHING)
            wanted.effect[atom, deleted] = DELETE
            now = wanted if _wrong(wanted, data) <= most else _possible(now, wanted, data, most)
        if now.pre.sum() + (now.effect == DELETE).sum() == before:
            return now


def _possible(now: Guess, wanted: Guess, data: Positions, most: int) -> Guess:
    """The guess with those of the wanted cells, one by one, that leave at most so many labels wrong."""
    for name in ("pre", "effect"):
        for cell in np.argwhere(getattr(wanted, name) != getattr(now, name)):
            tried = now.copy()
            getattr(tried, name)[*cell] = getattr(wanted, name)[*cell]
            if _wrong(tried, data) <= most:
                now = tried
    return now


def _wrong(guess: Guess, data: Positions) -> int:
    """Positions whose label the guess gets wrong, whatever the initial state."""
    return int((inapplicable(guess, data) != data.labels).sum())


def _stretches(chain: Chain, data: Positions, atom: int) -> list[tuple[int, NDArray[np.int64]]]:
    """The stretches in which an atom is true, and those in which it is false.

    Returns:
        For each value, the number of stretches, and in how many of them each action is applicable as far as the other
        atoms go, [actions].
    """
    touches = (chain.effect[atom, data.actions] != NOTHING) & (data.labels == 0)
    number = np.cumsum(touches) - touches  # grows behind every effect
    opens = np.cumsum(touches) - touches > np.repeat(number[data.starts], data.ends[data.starts] - data.starts)
    walked = opens & (data.labels == 0) & (chain.cover[np.arange(len(touches)), data.actions] == 0)
    places = np.flatnonzero(walked)
    if not len(places):
        return [(0, np.zeros(0, np.int64))] * 2
    first = np.flatnonzero(np.diff(number[places], prepend=-1))
    value = chain.unmet[atom, places]
    own = np.outer(value != TRUE, chain.pre[atom])
    applicable = np.logical_or.reduceat(chain.cover[places] - own == 0, first, axis=0)
    true = value[first] == TRUE
    return [(int(kind.sum()), applicable[kind].sum(0)) for kind in (true, ~true)]


# ----------------------------------------------------------------------------------------------------------------------
# Looking for the domain with the shortest code: chains that anneal side by side, and the best of them.


_COLD = 1e-9
_GROWTH = 3


@dataclass(frozen=True)
class _Stage:
    """Some sweeps with some of the traces.

    Attributes:
        traces: which.
        data: they.
        begin, stop: the first sweep, and the one after the last.
        schedule: temperature and price of a wrong label by sweep, [sweeps, 2].
        keep_from: the first sweep, counted from `begin`, at which that price is full.
    """

    traces: NDArray[np.int64]
    data: Positions
    begin: int
    stop: int
    schedule: NDArray[np.float64]
    keep_from: int


class Search:
    """Chains of one set of traces, each with random numbers of its own.

    Args:
        data: the traces.
        num_propositions: of every chain.
        keys: the seed and the number of each chain; a chain depends on nothing else.
        code: prices and schedule.

    Attributes:
        sweep: how many are done.
    """

    def __init__(
        self, data: Positions, num_propositions: int, keys: Sequence[tuple[int, int]], code: TwoPartCode
    ) -> None:
        if num_propositions < 1:
            raise PlanningError(f"num_propositions must be 1 or more, got {num_propositions}.")
        shape = (num_propositions, len(data.first) - 1)
        self.data, self.code, self.sweep = data, code, 0
        self._prices = np.array(code.prices)
        self._stages = _stages(data, code)
        first = data.actions[data.starts]
        self._chains = [
            _Chain.begin(Dice(seed, (restart,)), shape, code.initial_states, first) for seed, restart in keys
        ]

    @property
    def sweeps(self) -> int:
        """How many there are in all."""
        return self._stages[-1].stop

    def advance(self, sweeps: int, jobs: int = 1) -> int:
        """Goes on by so many sweeps, or as many as are left; returns their number."""
        before, stop = self.sweep, min(self.sweep + sweeps, self.sweeps)
        with ThreadPoolExecutor(jobs) as pool:
            for number, stage in enumerate(self._stages):
                until = min(stop, stage.stop)
                if not stage.begin <= self.sweep < until:
                    continue
                if self.sweep == stage.begin and number:
                    for chain in self._chains:
                        chain.take_more(self._stages[number - 1].traces, self.data)
                span = np.array([self.sweep - stage.begin, until - stage.begin, stage.keep_from])
                anneal_stage = partial(_Chain.anneal, stage=stage, span=span, prices=self._prices)
                list(pool.map(anneal_stage, self._chains))
                self.sweep = until
        return self.sweep - before

    @property
    def bits(self) -> list[float]:
        """The shortest code of every chain for the traces so far; infinite until wrong labels have their full price."""
        return [float(chain.bits[0]) for chain in self._chains]

    def best(self, chain: int) -> Guess:
        """The guess of a chain with the shortest code."""
        return self._chains[chain].best

    def wrong_labels(self, chain: int) -> int:
        """How many labels its domain gets wrong."""
        return int((inapplicable(self.best(chain), self.data) != self.data.labels).sum())

    def state_dict(self) -> dict[str, Any]:
        """All that a killed search needs to go on exactly, as JSON has it."""
        return {"sweep": self.sweep, "chains": [chain.to_dict() for chain in self._chains]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from there."""
        self.sweep = state["sweep"]
        self._chains = [_Chain.from_dict(chain) for chain in state["chains"]]


@dataclass
class _Chain:
    """One chain between two sweeps: its guess, the best one and its bits, [1], and its random stream, [1]."""

    now: Guess
    best: Guess
    bits: NDArray[np.float64]
    dice: NDArray[np.uint64]

    @classmethod
    def begin(cls, dice: Dice, shape: tuple[int, int], states: int, first: NDArray[np.int64]) -> _Chain:
        """Cells drawn at random, one initial state for all traces with the same first action, all true in each."""
        now = Guess(
            pre=dice.below(2, shape).astype(np.uint8),
            effect=dice.below(3, shape).astype(np.uint8),
            initial=np.zeros((states, shape[0]), np.uint8),
            state=dice.below(states, (shape[1],))[first],
        )
        return cls(now, now.copy(), np.array([np.inf]), dice.words((1,)))

    def anneal(self, stage: _Stage, span: NDArray[np.int64], prices: NDArray[np.float64]) -> None:
        """Some sweeps of a stage, see `kernel.anneal`."""
        now, best = (own._replace(state=own.state[stage.traces]) for own in (self.now, self.best))
        anneal(now, stage.data, prices, stage.schedule, span, self.dice, self.bits, best)
        self.now.state[stage.traces], self.best.state[stage.traces] = now.state, best.state

    def take_more(self, known: NDArray[np.int64], data: Positions) -> None:
        """Goes on from the best guess; new traces begin in the state of most known ones with the same first action."""
        first, state = data.actions[data.starts], self.best.state.copy()
        for action in np.unique(first):
            alike = state[known][first[known] == action]
            state[first == action] = np.bincount(alike).argmax() if len(alike) else 0
        state[known] = self.best.state[known]
        self.now = self.best._replace(state=state).copy()
        self.bits[0] = np.inf

    def to_dict(self) -> dict[str, Any]:
        guesses = {name: [values.tolist() for values in getattr(self, name)] for name in ("now", "best")}
        return {**guesses, "bits": self.bits.tolist(), "dice": self.dice.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> _Chain:
        kinds: tuple[type[Any], ...] = (np.uint8, np.uint8, np.uint8, np.int64)

        def guess(name: str) -> Guess:
            arrays: list[Any] = [np.array(own, kind) for own, kind in zip(values[name], kinds, strict=True)]
            return Guess(*arrays)

        now, best = guess("now"), guess("best")
        return cls(now, best, np.array(values["bits"], np.float64), np.array(values["dice"], np.uint64))


def _stages(data: Positions, code: TwoPartCode) -> list[_Stage]:
    """Some traces, then three times as many, until there are all; the later stages have a quarter of the sweeps."""
    total, stages = len(data.starts), list[_Stage]()
    size, begin, sweeps, wrong_label = code.first_traces, 0, code.sweeps, code.first_wrong_label
    while not stages or len(stages[-1].traces) < total:
        size = total if size * _GROWTH > total * 2 else size  # no last stage with few more traces
        traces = np.arange(min(size, total)) * total // min(size, total)  # spread out: they may be sorted by sign
        schedule, keep_from = _schedule(code, sweeps, wrong_label)
        stages.append(_Stage(traces, some_of(data, traces), begin, begin + sweeps, schedule, keep_from))
        size, begin, sweeps = size * _GROWTH, begin + sweeps, max(1, code.sweeps // 4)
        wrong_label = 5 * code.first_wrong_label
    return stages


def _schedule(code: TwoPartCode, sweeps: int, first_wrong_label: float) -> tuple[NDArray[np.float64], int]:
    """Temperature and price of a wrong label by sweep, both geometric; the first sweep at which that price is full.

    The price is full after two thirds of the sweeps. The last sweep only accepts what shortens the code.
    """
    done = np.arange(sweeps) / max(1, sweeps - 1)
    hot, cold = code.temperature
    rising = np.minimum(1.0, 1.5 * done) if sweeps > 1 else np.ones(1)
    schedule = np.stack([hot * (cold / hot) ** done, first_wrong_label ** (1 - rising) * code.wrong_label**rising], 1)
    schedule[-1, 0] = _COLD
    return schedule, int(np.argmax(rising >= 1.0))


# ----------------------------------------------------------------------------------------------------------------------
# From labelled traces to a domain in one call.


_STRIDE = 10  # sweeps between two looks at the progress bar


@dataclass(frozen=True)
class LearnedDomain:
    """A domain, and what its code costs.

    Attributes:
        domain: the domain; its propositions are named p0, p1, ...; those that can forbid nothing are left out.
        bits: the length of the shortest code, before what the walks support besides is added to the domain.
        wrong_labels: positions whose label the domain gets wrong by Definition 1, whatever the initial state.
        restart_bits: the code length of every restart.
    """

    domain: StripsDomain
    bits: float
    wrong_labels: int
    restart_bits: tuple[float, ...]


def learn_domain(
    traces: Iterable[Sequence[int | str]],
    labels: Iterable[Sequence[int]],
    actions: Sequence[str],
    *,
    num_propositions: int | None = None,
    seed: int = 0,
    restarts: int = 4,
    code: TwoPartCode | None = None,
    jobs: int = 1,
    progress: bool = True,
) -> LearnedDomain:
    """The domain with the shortest two-part code that annealing finds, and what the walks support besides.

    See `code.py` for the code, and `complete` for the rest. The same arguments give the same domain, with any
    number of jobs.

    Args:
        traces: actions by index or by name.
        labels: of each position, 1: inapplicable, as in `hf_mech/strips_traces`. A 1 may stand anywhere: the action has
            failed, it changes nothing, and the trace goes on from the state before it.
        actions: the names of all actions.
        num_propositions: the largest number of propositions; those that explain too little stay empty. None: as many as
            there are actions.
        seed: 0 or more.
        restarts: how many chains; the shortest code wins.
        code: prices and schedule; None: the defaults.
        jobs: chains at a time, each a thread.
        progress: whether to show a progress bar.

    Raises:
        PlanningError: no traces, an unknown action, a label that is neither 0 nor 1, or a number out of range.
        StripsError: a name that no action can have.
    """
    code = TwoPartCode() if code is None else code
    if not isinstance(code, TwoPartCode):
        raise PlanningError(f"code must be a TwoPartCode, got {code!r}.")
    data = positions_of(traces, labels, actions)
    StripsDomain((), tuple(StripsAction(name) for name in actions), "learned")  # refuses names before the search
    atoms = len(actions) if num_propositions is None else num_propositions
    check_whole("seed", seed, 0)
    for name, count in (("restarts", restarts), ("jobs", jobs), ("num_propositions", atoms)):
        check_whole(name, count, 1)
    search = Search(data, atoms, [(seed, restart) for restart in range(restarts)], code)
    with tqdm(total=search.sweeps, desc="two-part code", unit="sweep", disable=not progress) as bar:
        while search.sweep < search.sweeps:
            done = search.advance(_STRIDE, jobs)
            bar.update(done)
            if (bits := min(search.bits)) < math.inf:
                bar.set_postfix_str(f"{bits:,.0f} bits")
    best = int(np.argmin(search.bits))
    found = complete(search.best(best), data, code)
    wrong = int((inapplicable(found, data) != data.labels).sum())
    return LearnedDomain(domain_of(found, actions, "learned"), search.bits[best], wrong, tuple(search.bits))
