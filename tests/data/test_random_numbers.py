"""The streams never change, and their numbers are even."""

import hashlib
from collections import Counter

import pytest

from hf_mech.data.random_numbers import Dice, Die, Draws


def from_dice(seed):
    return Dice(seed, (1, 2)).below(1000, (100, 100)).reshape(-1).tolist()


def from_die(seed):
    die = Die(seed, (1, 2))
    return [die.below(1000) for _ in range(10_000)]


def from_draws(seed):
    draws = Draws(f"key/{seed}")
    return [draws.below(1000) for _ in range(10_000)]


@pytest.mark.parametrize(
    ("stream", "digest"),
    [(from_dice, "a361a63a5848feef"), (from_die, "329cb3f929b164ac"), (from_draws, "50c2a06bb29772c4")],
)
def test_the_streams_never_change(stream, digest):
    """The same on every machine, and after every change of numpy, Python or the package."""
    assert hashlib.sha256(repr(stream(3)).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("stream", [from_dice, from_die, from_draws])
def test_numbers_are_in_range_and_even(stream):
    counts = Counter(number // 100 for number in stream(0))
    assert set(counts) == set(range(10))
    assert all(abs(count - 1000) < 150 for count in counts.values())  # five standard deviations


@pytest.mark.parametrize("stream", [from_dice, from_die, from_draws])
def test_every_seed_has_its_own_numbers(stream):
    assert stream(0) == stream(0) != stream(1)


def test_a_die_takes_the_words_of_the_dice_in_blocks_each_from_its_end():
    die, words = Die(5, (7,)), Dice(5, (7,)).words((8192,)).tolist()
    assert [die.below(1 << 32) for _ in words] == [*words[:4096][::-1], *words[4096:][::-1]]


def test_a_shuffle_keeps_the_items_and_every_order_comes_up():
    die = Die(0)
    orders = Counter()
    for _ in range(2400):
        items = ["a", "b", "c"]
        die.shuffle(items)
        orders["".join(items)] += 1
    assert set(orders) == {"abc", "acb", "bac", "bca", "cab", "cba"}
    assert all(abs(count - 400) < 92 for count in orders.values())
