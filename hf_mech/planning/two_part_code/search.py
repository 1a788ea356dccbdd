"""Looking for the domain with the shortest code: chains that anneal side by side, and the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...models.strips.strips_domain import StripsAction, StripsDomain
from ...random_numbers import Dice
from .code import TwoPartCode, TwoPartCodeError
from .kernel import ADD, DELETE, NOTHING, Guess, Positions, anneal, chain_of

_STRIDE = 10  # sweeps between two looks at the progress bar
_COLD = 1e-9


@dataclass(frozen=True)
class LearnedDomain:
    """A domain, and what its code costs.

    Attributes:
        domain: the domain; its propositions are named p0, p1, ...; those that no action names are left out.
        bits: the length of the whole code.
        wrong_labels: positions whose label the domain gets wrong.
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
    """The domain with the shortest two-part code (see `code.py`) that annealing finds.

    The same arguments give the same domain, with any number of jobs.

    Args:
        traces: actions by index or by name.
        labels: of each position, 1: inapplicable, as in `hf_mech/strips_traces`.
        actions: the names of all actions.
        num_propositions: the largest number of propositions; those that explain too little stay empty. None: as many as
            there are actions.
        seed: 0 or more.
        restarts: how many chains; the shortest code wins.
        code: prices and schedule; None: the defaults.
        jobs: chains at a time, each a thread.
        progress: whether to show a progress bar.

    Raises:
        TwoPartCodeError: no traces, an unknown action, a label that is neither 0 nor 1, or a number out of range.
    """
    code = code or TwoPartCode()
    data = positions_of(traces, labels, actions)
    if restarts < 1 or jobs < 1:
        raise TwoPartCodeError(f"restarts and jobs must be 1 or more, got {restarts} and {jobs}.")
    atoms = len(actions) if num_propositions is None else num_propositions
    search = Search(data, atoms, [(seed, restart) for restart in range(restarts)], code)
    with tqdm(total=code.sweeps, desc="two-part code", unit="sweep", disable=not progress) as bar:
        while search.sweep < code.sweeps:
            done = search.advance(_STRIDE, jobs)
            bar.update(done)
            bar.set_postfix_str(f"{min(search.bits):,.0f} bits")
    best = int(np.argmin(search.bits))
    domain = domain_of(search.best(best), actions, "learned")
    return LearnedDomain(domain, search.bits[best], search.wrong_labels(best), tuple(search.bits))


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
            raise TwoPartCodeError(f"num_propositions must be 1 or more, got {num_propositions}.")
        shape = (num_propositions, len(data.first) - 1)
        self.data, self.code, self.sweep = data, code, 0
        self._prices = np.array(code.prices)
        self._schedule, self._keep_from = _schedule(code)
        first = data.actions[data.starts]
        self._chains = [
            _Chain.begin(Dice(seed, (restart,)), shape, code.initial_states, first) for seed, restart in keys
        ]

    def advance(self, sweeps: int, jobs: int = 1) -> int:
        """Goes on by so many sweeps, or as many as are left; returns their number."""
        stop = min(self.sweep + sweeps, self.code.sweeps)

        def go_on(chain: _Chain) -> None:
            span = np.array([self.sweep, stop, self._keep_from])
            anneal(chain.now, self.data, self._prices, self._schedule, span, chain.dice, chain.bits, chain.best)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(go_on, self._chains))
        done, self.sweep = stop - self.sweep, stop
        return done

    @property
    def bits(self) -> list[float]:
        """The shortest code of every chain so far; infinite before wrong labels have their full price."""
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
        return cls(now, Guess(*(values.copy() for values in now)), np.array([np.inf]), dice.words((1,)))

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


def _schedule(code: TwoPartCode) -> tuple[NDArray[np.float64], int]:
    """Temperature and price of a wrong label by sweep, both geometric; the first sweep at which that price is full.

    The price is full after two thirds of the sweeps. The last sweep only accepts what shortens the code.
    """
    done = np.arange(code.sweeps) / max(1, code.sweeps - 1)
    hot, cold = code.temperature
    rising = np.minimum(1.0, 1.5 * done)
    schedule = np.stack(
        [hot * (cold / hot) ** done, code.first_wrong_label ** (1 - rising) * code.wrong_label**rising], 1
    )
    schedule[-1, 0] = _COLD
    return schedule, int(np.argmax(rising >= 1.0))


def positions_of(
    traces: Iterable[Sequence[int | str]], labels: Iterable[Sequence[int]], actions: Sequence[str]
) -> Positions:
    """The traces as arrays. Raises TwoPartCodeError for what [`learn_domain`] refuses."""
    index = {name: number for number, name in enumerate(actions)} | {number: number for number in range(len(actions))}
    if len(index) != 2 * len(actions) or not actions:
        raise TwoPartCodeError(f"actions must be one or more different names, got {list(actions)}.")
    flat: list[int] = []
    told: list[int] = []
    ends: list[int] = []
    for trace, own in zip(traces, labels, strict=True):
        if unknown := [action for action in trace if action not in index]:
            raise TwoPartCodeError(f"Unknown action {unknown[0]!r} in trace {len(ends)}; known: {', '.join(actions)}.")
        if len(own) != len(trace) or not {*own} <= {0, 1}:
            raise TwoPartCodeError(
                f"Trace {len(ends)} needs a label for each of its {len(trace)} actions, 0 (applicable) or 1; got "
                f"{list(own)}."
            )
        flat += [index[action] for action in trace]
        told += own
        ends += [len(flat)] * len(trace)
    if not flat:
        raise TwoPartCodeError("There are no traces to learn from; give at least one that is not empty.")
    positions = np.array(flat)
    places = np.argsort(positions, kind="stable")
    return Positions(
        actions=positions,
        labels=np.array(told, np.uint8),
        starts=np.unique(ends, return_index=True)[1],
        ends=np.array(ends),
        places=places,
        first=np.searchsorted(positions[places], np.arange(len(actions) + 1)),
        log2=np.log2(np.maximum(np.arange(len(actions) + 1), 1)),
    )


def inapplicable(guess: Guess, data: Positions) -> NDArray[np.bool_]:
    """Whether each position's action is inapplicable by the guessed domain, whatever the initial state (Eq. 6), [N]."""
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
