"""The scripted experts solve their scenarios, and turn by the angle that they mean to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hf_mech.control import episode_seed, make_environment, make_policy
from hf_mech.control.geometry import LEFT, RIGHT, UNIT, next_turn
from hf_mech.control.vizdoom.experts import Player, player
from hf_mech.control.vizdoom.scenarios import walls
from tests.control.environments import play

HOME, CORRIDOR = "hf_mech/MyWayHome-v0", "hf_mech/DeadlyCorridor-v0"


def episodes(name: str, count: int, policy: str = "expert", **settings: Any) -> dict[str, np.ndarray]:
    """Success, return and length of episodes that nothing was tuned on."""
    decide = make_policy(policy, **settings)  # type: ignore[arg-type]
    with make_environment(name) as environment:
        played = [play(environment, decide, episode_seed(14, "play", index)) for index in range(count)]
    return {
        "success": np.array([episode["success"] for episode in played]),
        "return": np.array([episode["rewards"].sum() for episode in played]),
        "length": np.array([len(episode["actions"]) for episode in played]),
    }


@pytest.mark.parametrize(("name", "least_return", "most_steps"), [(HOME, 0.93, 300), (CORRIDOR, 22, 110)])
def test_experts_succeed(name: str, least_return: float, most_steps: int) -> None:
    results = episodes(name, 5)
    assert results["success"].all()
    assert results["return"].min() > least_return
    assert results["length"].max() < most_steps


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least", "mean_return"), [(HOME, 0.99, 0.96), (CORRIDOR, 0.95, 21)])
def test_experts_succeed_in_a_hundred_episodes(name: str, least: float, mean_return: float) -> None:
    results = episodes(name, 100)
    assert results["success"].mean() >= least
    assert results["return"].mean() > mean_return


def test_noise_costs_return() -> None:
    results = episodes(HOME, 5, "noisy", noise=0.5)
    assert results["length"].mean() > 1.2 * episodes(HOME, 5)["length"].mean()


def test_turns_end_where_they_should() -> None:
    """Follows the plan in the engine, whose angle is the judge."""
    with make_environment(CORRIDOR, skill=1) as environment:
        for units in (1, -1, 3, 10, -29, 64, -102):
            for held in (0, 1, 2):
                _turn(environment, units, held)


def _turn(environment: Any, units: int, held: int) -> None:
    environment.reset(seed=0)
    for _ in range(3):
        environment.step(np.zeros(4, np.int64))
    for _ in range(held):
        environment.step(np.array([LEFT, 0, 0, 0]))
    game = environment.unwrapped.game
    goal = player(game).angle + units * UNIT
    decisions = []
    while abs(off := player(game).to_turn(goal)) > UNIT / 2:
        plan = next_turn(held, off - UNIT / 2, off + UNIT / 2)
        assert plan is not None
        decisions.append(plan[1])
        environment.step(np.array([plan[0], 0, 0, 0]))
        held = held + 1 if plan[0] else 0
    assert decisions == list(range(len(decisions), 0, -1))


def test_impossible_turns_have_no_plan() -> None:
    assert next_turn(0, 0.1, UNIT - 0.1) is None
    assert next_turn(0, 5.0, 4.0) is None
    assert next_turn(0, float("nan"), float("nan")) is None
    assert next_turn(5, -0.1, 0.1) == (0, 0)
    assert next_turn(0, 3.9 * UNIT, 4.1 * UNIT) == (LEFT, 1)
    assert next_turn(0, -12 * UNIT, -10.5 * UNIT) == (RIGHT, 2)


def test_maps_have_their_walls() -> None:
    assert walls("my_way_home").shape == (76, 2, 2)
    assert len(walls("deadly_corridor", opaque=True)) < len(walls("deadly_corridor")) == 32


def test_a_player_glides_on() -> None:
    me = Player(x=0, y=0, speed_x=1, speed_y=-2, angle=350, ready=True)
    assert me.after(0).tolist() == [0, 0]
    assert me.after(2).tolist() == [1.90625, -3.8125]
    assert me.to_turn(10) == 20
    assert me.angle_to((0, 5)) == 100
