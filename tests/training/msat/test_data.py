"""The batches of a run."""

from __future__ import annotations

import pytest
import torch

from tests.training.msat.small import small_run
from training.msat.data import RunData, WindowBatches, load_data
from training.msat.run import played_at


@pytest.fixture(scope="module")
def data() -> RunData:
    return load_data(small_run())


def test_the_training_episodes(data: RunData) -> None:
    assert len(data.returns) == len(data.success) == 6
    assert all(data.success)  # the expert's
    assert all(0.7 < value < 1.0 for value in data.returns)
    again = load_data(small_run())
    assert again.rows == data.rows
    assert again.returns == data.returns
    assert load_data(small_run(seed=4)).returns != data.returns


def test_an_edit_of_the_environment_makes_new_episodes(data: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    load_data(small_run())
    monkeypatch.setattr("training.msat.data.Recording", lambda *_: pytest.fail("recorded again"))
    load_data(small_run())
    monkeypatch.setattr("training.msat.data.code_hash", lambda module: f"edited {module}")
    with pytest.raises(pytest.fail.Exception, match="recorded again"):
        load_data(small_run())


def test_noise_comes_from_the_settings(data: RunData) -> None:
    noisy = load_data(small_run(policy="noisy", noise=0.5))
    assert noisy.rows > data.rows


def test_a_batch_is_a_function_of_the_step(data: RunData) -> None:
    first, again = WindowBatches(data.windows, 8, 3), WindowBatches(data.windows, 8, 3)
    last = round(2.5 * first.epoch)
    expected = {step: first[step] for step in (0, 1, last)}
    for step in (last, 1, 0):
        for name, value in again[step].items():
            assert torch.equal(value, expected[step][name]), (step, name)
    other = WindowBatches(data.windows, 8, 4)[0]
    assert not torch.equal(other["timesteps"], expected[0]["timesteps"])


def test_an_epoch_has_every_window_once(data: RunData) -> None:
    batches = WindowBatches(data.windows, 1, 3)
    count = len(data.windows)
    epochs = [[batches._number(count * epoch + place) for place in range(count)] for epoch in (0, 1)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(count))] * 2
    assert epochs[0] != epochs[1]


def test_a_batch_has_the_arguments_of_the_model(data: RunData) -> None:
    batch = WindowBatches(data.windows, 8, 3)[0]
    shapes = {name: list(value.shape) for name, value in batch.items()}
    assert shapes["states"] == [8, 6, 3, 36, 48]
    assert shapes["actions"] == shapes["labels"] == [8, 6, 2]
    assert shapes["returns_to_go"] == shapes["timesteps"] == shapes["attention_mask"] == [8, 6]
    assert batch["returns_to_go"].is_floating_point()


def test_played_after_each_epoch_or_every_so_many_steps() -> None:
    assert played_at(small_run(eval_steps=20), 50, 7.5) == {20, 40}
    assert played_at(small_run(eval_steps=0), 23, 7.5) == {8, 15, 22}
    assert played_at(small_run(eval_steps=0), 37, 7.4) == {7, 15, 22, 30, 37}
    assert played_at(small_run(eval_steps=100), 40, 7.5) == set()
