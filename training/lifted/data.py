"""The log of a cell, from small instances, and the walks and contradictions in big ones that judge what was learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from hf_mech.data.random_numbers import Die
from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.domains import instance, lifted_domain
from hf_mech.planning.lifted.walks import LiftedTrace, LiftedWalks, LogSettings

from .settings import BURN_IN, CONDITIONS, Cell

Trace = list[GroundAction]
TEST_INSTANCES, SHORTEST, LONGEST = 3, 5, 60
GOAL_LENGTHS = (5, 30)  # of the traces of `goals`, as AMLGym has them
_BIG = 500_000  # the seeds of big instances begin here


class Log(NamedTuple):
    """Traces, and 1 for each action that is said to have failed."""

    traces: list[Trace]
    labels: list[list[int]]

    @property
    def done(self) -> list[Trace]:
        """The traces without failed actions."""
        pairs = zip(self.traces, self.labels, strict=True)
        return [[one for one, label in zip(trace, own, strict=True) if not label] for trace, own in pairs]


class Judges(NamedTuple):
    """Walks that a right domain allows, and traces whose last action alone contradicts those before."""

    walks: list[Trace]
    contradictions: list[Trace]


def log_of(cell: Cell) -> Log:
    """The log of a cell. Habits are the same in all its instances."""
    settings = CONDITIONS[cell.condition]
    if settings.walk_bias:
        favoured = favoured_actions(cell.domain, cell.seed)
        settings = replace(settings, walk_bias=0, weights=dict.fromkeys(favoured, 1 + settings.walk_bias))
    found = Log([], [])
    for number in range(cell.instances):
        walks = LiftedWalks(instance(cell.domain, "small", 100 * cell.seed + number))
        for trace in _traces(walks, cell, settings, 100 * cell.seed + number):
            found.traces.append(
                [GroundAction(one.name, tuple(f"{each}@{number}" for each in one.objects)) for one in trace.actions]
            )
            found.labels.append(list(trace.labels))
    return found


def favoured_actions(domain: str, seed: int) -> list[str]:
    """Half of the action schemas."""
    names = [action.name for action in lifted_domain(domain).actions]
    Die(seed, (0,)).shuffle(names)
    return names[: len(names) // 2]


def _traces(walks: LiftedWalks, cell: Cell, settings: LogSettings, seed: int) -> Iterator[LiftedTrace]:
    left = cell.actions // cell.instances
    if settings.policy == "walk":
        yield from walks.traces(left, cell.length, seed, settings)
        return
    die, (least, most) = Die(seed, (1,)), GOAL_LENGTHS
    while left > 0:
        trace = walks.trace(min(left, least + die.below(most - least + 1)), die, settings)
        left -= max(1, len(trace.actions))
        if trace.actions:
            yield trace


def big_instance(domain: str, seed: int, number: int) -> LiftedWalks:
    """One of the big instances of a seed."""
    return LiftedWalks(instance(domain, "big", _BIG + 10 * seed + number))


@lru_cache(maxsize=2)
def judges_of(domain: str, seed: int, walks: int) -> Judges:
    """Uniform walks in big instances, and each walk again with a last action that contradicts it by Definition 1."""
    found = Judges([], [])
    for number in range(TEST_INSTANCES):
        big, die = big_instance(domain, seed, number), Die(seed, (2, number))
        goal = walks * (number + 1) // TEST_INSTANCES
        while len(found.walks) < goal or len(found.contradictions) < goal:
            state = big.initial
            for action in big.walk(die.below(BURN_IN + 1), die):
                state = big.apply(state, action)
            length = SHORTEST + die.below(LONGEST - SHORTEST + 1)
            walk = [big.actions[action] for action in big.walk(length, die, state)]
            if len(walk) < 2:
                continue
            if len(found.walks) < goal:
                found.walks.append(walk)
            against = big.contradictions(walk)
            if against and len(found.contradictions) < goal:
                found.contradictions.append([*walk, against[die.below(len(against))]])
    return found
