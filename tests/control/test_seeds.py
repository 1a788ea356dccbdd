"""Seeds of episodes: splits never meet, and no episode comes twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mech.control.episodes import MOST_EPISODES, SPLITS, Split, episode_seed
from hf_mech.control.errors import ControlError


def test_no_episode_comes_twice() -> None:
    seeds = [episode_seed(7, split, index) for split in SPLITS for index in range(1500)]
    assert len(set(seeds)) == len(seeds)


@given(st.integers(0, 2**70), st.integers(0, 2**70), st.integers(0, MOST_EPISODES - 1), st.integers(0, 5000))
def test_splits_never_meet_whatever_their_seeds(first: int, second: int, index: int, other: int) -> None:
    train, test = episode_seed(first, "train", index), episode_seed(second, "test", other)
    play = episode_seed(first, "play", index)
    assert len({train, test, play}) == 3
    assert all(0 <= seed < 2**32 for seed in (train, test, play))


def test_the_order_depends_on_the_seed() -> None:
    orders = [[episode_seed(seed, "train", index) for index in range(20)] for seed in (0, 1)]
    assert not set(orders[0]) & set(orders[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, "train", 0), "seed must be a whole number, 0 or more, got -1"),
        ((True, "train", 0), "seed must be a whole number, 0 or more, got True"),
        ((0, "validation", 0), "split must be one of train, test, play, got 'validation'"),
        ((0, "train", MOST_EPISODES), "index must be a whole number, 0 to 1073741823, got 1073741824"),
        ((0, "train", 1.5), "index must be a whole number"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, Split, Any], message: str) -> None:
    with pytest.raises(ControlError, match=message):
        episode_seed(*arguments)
