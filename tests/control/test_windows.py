"""Context windows: every one of them once, padded on the right, read from disk or from a stream."""

import hashlib
from collections import Counter

import numpy as np
import pytest
import torch
from datasets import DatasetDict, IterableDatasetDict
from torch import nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments

from hf_mech.control.errors import (
    ControlError,
)
from hf_mech.control.windows import ContextWindows, ContextWindowStream, WindowCollator
from tests.control.test_episodes import episode, rows_of

LENGTHS = (12, 1, 5, 6, 30, 4)
CONTEXT = 5


@pytest.fixture(scope="module")
def episodes():
    return [episode(length, seed=seed) for seed, length in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def rows(episodes):
    return rows_of(*episodes)


def expected(episodes, context=CONTEXT):
    """All windows, one after the other, by the definition."""
    for one in episodes:
        for start in range(max(len(one) - context, 0) + 1):
            steps = slice(start, min(start + context, len(one)))
            yield {
                "states": torch.from_numpy(one.observations[steps].transpose(0, 3, 1, 2).copy()),
                "actions": torch.from_numpy(one.actions[steps]),
                "returns_to_go": torch.from_numpy(one.returns_to_go[steps].copy()),
                "timesteps": torch.arange(start, min(start + context, len(one))),
            }


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert tensor.dtype == other[name].dtype
        assert torch.equal(tensor, other[name]), name


def key(window) -> bytes:
    return b"".join(window[name].numpy().tobytes() for name in sorted(window))


def digest(windows) -> str:
    """One for the same windows in the same order."""
    return hashlib.sha256(b"".join(map(key, windows))).hexdigest()


@pytest.mark.parametrize("context", [1, CONTEXT, 100])
def test_every_window_by_the_definition(episodes, rows, context):
    windows = ContextWindows(rows, context, (3, 3))
    wanted = list(expected(episodes, context))
    assert len(windows) == len(wanted)
    for one, other in zip((windows[i] for i in range(len(windows))), wanted, strict=True):
        assert_equal(one, other)
    assert_equal(windows[-1], wanted[-1])
    with pytest.raises(IndexError):
        windows[len(windows)]


def test_vectors(tmp_path):
    one = episode(9, frames=False)
    windows = ContextWindows(rows_of(one, features=5), 4)
    assert windows[2]["states"].dtype == torch.float32
    assert torch.equal(windows[2]["states"], torch.from_numpy(one.observations[2:6]))


def test_a_data_set_with_chosen_episodes(episodes, rows):
    """`select` of whole episodes, as for a smaller training set, keeps an index of rows."""
    chosen = rows.filter(lambda number: number in (0, 4), input_columns="episode")
    assert [key(w) for w in (ContextWindows(chosen, CONTEXT)[i] for i in range(8 + 26))] == [
        key(w) for w in expected([episodes[0], episodes[4]])
    ]


@pytest.mark.parametrize("buffer_size", [0, 7, 1_000])
def test_a_stream_has_the_same_windows(episodes, rows, buffer_size):
    stream = ContextWindowStream(rows.to_iterable_dataset(), CONTEXT, (3, 3), buffer_size)
    wanted = [key(window) for window in expected(episodes)]
    first, again = ([key(window) for window in stream] for _ in range(2))
    assert Counter(first) == Counter(wanted)
    assert first == again
    assert (first == wanted) == (buffer_size == 0)
    stream.set_epoch(1)
    assert ([key(window) for window in stream] == first) == (buffer_size == 0)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:This DataLoader will create 3:UserWarning")  # more than this machine has cores
def test_workers_share_a_stream(episodes, rows, workers):
    """Two shards, cut in the midst of the third episode, and workers without any."""
    data = rows.to_iterable_dataset(num_shards=2)
    stream = ContextWindowStream(data, 1)
    found = Counter(key(window) for window in DataLoader(stream, None, num_workers=workers))
    assert found == Counter(key(window) for window in expected(episodes, 1))


def test_the_batch_is_padded_on_the_right(episodes, rows):
    windows = ContextWindows(rows, CONTEXT)
    chosen = [windows[0], windows[8], windows[-1]]  # 5 steps, 1 and 4
    batch = WindowCollator(action_sizes=(3, 3))(chosen)
    assert {name: (tuple(t.shape), t.dtype) for name, t in batch.items()} == {
        "states": ((3, 5, 3, 9, 16), torch.uint8),
        "actions": ((3, 5, 2), torch.int64),
        "returns_to_go": ((3, 5), torch.float32),
        "timesteps": ((3, 5), torch.int64),
        "attention_mask": ((3, 5), torch.int64),
        "labels": ((3, 5, 2), torch.int64),
    }
    assert batch["attention_mask"].tolist() == [[1] * 5, [1, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
    for row, window in enumerate(chosen):
        steps = len(window["actions"])
        for name, tensor in window.items():
            assert torch.equal(batch[name][row, :steps], tensor)
            assert not batch[name][row, steps:].any()
        assert torch.equal(batch["labels"][row, :steps], window["actions"])
        assert (batch["labels"][row, steps:] == -100).all()
    longer = WindowCollator(context_length=8)(chosen)
    assert longer["states"].shape == (3, 8, 3, 9, 16)
    for name in batch:
        assert torch.equal(longer[name][:, :5], batch[name])


class Policy(nn.Module):
    """The smallest model of such batches."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 6)

    def forward(self, states, actions, returns_to_go, timesteps, attention_mask, labels=None):
        logits = self.head(states.float().mean((-2, -1)) / 255).unflatten(-1, (2, 3))
        return {"loss": nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten()), "logits": logits}


@pytest.mark.parametrize("streaming", [False, True])
def test_a_stock_trainer_takes_them(rows, streaming, tmp_path):
    data = rows.to_iterable_dataset() if streaming else rows
    windows = (ContextWindowStream if streaming else ContextWindows)(data, CONTEXT, (3, 3))
    arguments = TrainingArguments(
        str(tmp_path), max_steps=12, per_device_train_batch_size=4, report_to=[], use_cpu=True, save_strategy="no"
    )
    trainer = Trainer(Policy(), arguments, WindowCollator(CONTEXT, (3, 3)), windows, ContextWindows(rows, CONTEXT))
    assert 0.5 < trainer.train().training_loss < 2
    assert 0.5 < trainer.evaluate()["eval_loss"] < 2  # log 3 = 1.1


def test_wrong_arguments_are_refused_before_work_starts(rows):
    for length in (0, -3, 2.5, True):
        for make in (ContextWindows, ContextWindowStream):
            with pytest.raises(ControlError, match="1 or more"):
                make(rows, length)
    with pytest.raises(ControlError, match="context_length must be"):
        WindowCollator(0)
    with pytest.raises(ControlError, match=r"must have 4 components, of sizes .* have 2"):
        ContextWindows(rows, CONTEXT, (3, 3, 3, 2))
    with pytest.raises(ControlError, match="'return_to_go'"):
        ContextWindows(rows.remove_columns("return_to_go"), CONTEXT)
    with pytest.raises(ControlError, match="'return_to_go'"):
        next(iter(ContextWindowStream(rows.remove_columns("return_to_go").to_iterable_dataset(), CONTEXT)))
    with pytest.raises(ControlError, match="must be neighbours"):
        ContextWindows(rows.shuffle(seed=0), CONTEXT)
    with pytest.raises(ControlError, match="no rows"):
        ContextWindows(rows.select([]), CONTEXT)


def test_other_data_sets_are_refused(rows):
    for given, said in (
        (DatasetDict(train=rows), "take one of its splits, 'train'"),
        (rows.to_iterable_dataset(), "take ContextWindowStream"),
        (rows.to_list(), "got a list"),
    ):
        with pytest.raises(ControlError, match=said):
            ContextWindows(given, CONTEXT)
    with pytest.raises(ControlError, match="take one of its splits, 'train'"):
        ContextWindowStream(IterableDatasetDict(train=rows.to_iterable_dataset()), CONTEXT)
    with pytest.raises(ControlError, match=r"without states, actions, .*ContextWindows\(dataset"):
        WindowCollator()([rows[0], rows[1]])


def test_windows_that_do_not_fit_are_refused(rows):
    windows = ContextWindows(rows, CONTEXT)
    with pytest.raises(ControlError, match=r"5 steps is longer than the context of 4.*context_length=4"):
        WindowCollator(4)([windows[0]])
    with pytest.raises(ControlError, match="Component 1 of an action must be from 0 to 1, is 2"):
        WindowCollator(action_sizes=(3, 2))([windows[i] for i in range(len(windows))])
    with pytest.raises(ControlError, match="Component 1 of an action"):
        list(ContextWindowStream(rows.to_iterable_dataset(), CONTEXT, (3, 2)))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("actions", lambda actions: actions[:, :1]),  # torch would broadcast it
        ("states", lambda states: states[..., :3]),
        ("states", lambda states: states / 255),  # torch would round it
        ("returns_to_go", lambda returns: returns[:2]),
    ],
)
def test_windows_of_two_environments_make_no_batch(rows, name, change):
    one, other = (ContextWindows(rows, CONTEXT)[number] for number in (0, 1))
    with pytest.raises(ControlError, match=f"one environment: {name} are .* in window 1"):
        WindowCollator()([one, {**other, name: change(other[name])}])
    with pytest.raises(ControlError, match="at least one window"):
        WindowCollator()([])


def test_windows_own_their_memory(rows):
    """A batch that is changed in place, as augmentations do, leaves the data alone."""
    windows = ContextWindows(rows, CONTEXT)
    before = key(windows[0])
    for tensor in windows[0].values():
        tensor.zero_()
    assert key(windows[0]) == before
    assert np.array(rows[0]["observation"]).any()
