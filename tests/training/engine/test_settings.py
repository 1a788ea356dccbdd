"""Settings: presets, departures, names, and values that make no sense."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from training.engine import Settings, SettingsError, axis, fixed, option
from training.engine.settings import By, parse_seeds, seeds_as_text


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    PRESETS = {"paper": {"steps": 100}, "cpu": {"steps": By("task", {"long": 9}, other=5), "rate": 0.5}}
    task: str = axis("the task", ("long", "short"))
    seed: int = fixed("of the weights")
    steps: int = option("steps", least=1)
    rate: float = option("rate", default=0.1, least=0, most=1)
    goal: float = option("goal", default=0.0)
    kind: str = option("kind", default="a", known=("a", "b/c"))


def test_a_preset_gives_the_values_that_nobody_overrides() -> None:
    run = Run.of("cpu", {"rate": None}, task="long", seed=3)
    assert (run.steps, run.rate, run.kind, run.departures) == (9, 0.5, "a", {})
    assert run.name == "long-cpu-seed3"
    assert Run.of("cpu", task="short", seed=0).steps == 5
    assert Run.of("paper", task="short", seed=0).rate == 0.1


def test_a_value_of_a_preset_may_depend_on_two_axes() -> None:
    by_both = By("task", {"long": By("layout", {"alm": 9}, other=7)}, other=5)
    assert [by_both({"task": t, "layout": y}) for t in ("long", "short") for y in ("alm", "mlm")] == [9, 7, 5, 5]
    assert str(by_both) == "by task"


def test_departures_are_in_the_name() -> None:
    run = Run.of("cpu", {"steps": 9, "kind": "b/c", "of_another_class": 1}, task="short", seed=0)
    assert run.departures == {"steps": 9, "kind": "b/c"}
    assert run.name == "short-cpu-steps=9-kind=b_c-seed0"
    assert Run.of("cpu", {"steps": 9}, task="long", seed=0).departures == {}


def test_a_name_that_is_too_long_for_a_folder_ends_in_a_digest() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Long(Settings):
        PRESETS = {"cpu": {}}
        text: str = option("text", default="")

    names = [Long.of("cpu", {"text": "x" * 300 + end}).name for end in "ab"]
    assert names[0] != names[1]
    assert [len(name) for name in names] == [213, 213]


@pytest.mark.parametrize(
    ("preset", "overrides", "says"),
    [
        ("gpu", {}, r"--preset must be of paper, cpu, got gpu"),
        ("cpu", {"steps": 0}, r"--steps must be 1 or more, got 0"),
        ("cpu", {"rate": float("nan")}, r"--rate must be 0 or more, got nan"),
        ("cpu", {"rate": float("inf")}, r"--rate must be 0 or more, got inf"),
        ("cpu", {"goal": float("-inf")}, r"--goal must be a finite number, got -inf"),
        ("cpu", {"rate": 1.5}, r"--rate must be 1 or less, got 1.5"),
        ("cpu", {"kind": "z"}, r"--kind must be of a, b/c, got z"),
    ],
)
def test_values_that_make_no_sense(preset: str, overrides: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        Run.of(preset, overrides, task="long", seed=0)


@pytest.mark.parametrize("asked", ["0-4", "a", "3..1", "", "1.5", "-1"])
def test_seeds_that_are_none(asked: str) -> None:
    with pytest.raises(SettingsError, match="--seeds"):
        parse_seeds([asked])


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2], [5, 3], [4, 5], [0, 2, 3]])
def test_seeds_are_read_as_they_are_written(seeds: list[int]) -> None:
    assert parse_seeds([seeds_as_text(seeds)]) == seeds
