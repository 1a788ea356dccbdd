"""Looking for the domain with the shortest code: chains that anneal side by side, and the best of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_mech.data.random_numbers import Dice
from hf_mech.planning.two_part_code.code import TwoPartCode, TwoPartCodeError
from hf_mech.planning.two_part_code.guesses import inapplicable
from hf_mech.planning.two_part_code.kernel import Guess, Positions, anneal
from hf_mech.planning.two_part_code.positions import some_of

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
            raise TwoPartCodeError(f"num_propositions must be 1 or more, got {num_propositions}.")
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
