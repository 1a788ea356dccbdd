"""Windows of decoded frames are the windows of the data set."""

from __future__ import annotations

from pathlib import Path

import datasets
import numpy as np
import pytest
import torch

from hf_mech.control.errors import ControlError
from hf_mech.control.recording import record
from hf_mech.control.windows import ContextWindows, DecodedWindows
from tests.control.squares import ID


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> datasets.Dataset:
    return record(ID, "noisy", 5, cache_dir=str(tmp_path_factory.mktemp("recorded")))


@pytest.mark.parametrize("length", [1, 3, 50])
def test_the_same_windows(recorded: datasets.Dataset, length: int) -> None:
    plain, decoded = ContextWindows(recorded, length), DecodedWindows(recorded, length)
    assert len(decoded) == len(plain)
    for index in range(len(plain)):
        own, other = decoded[index], plain[index]
        assert own.keys() == other.keys()
        for name, tensor in other.items():
            assert own[name].dtype == tensor.dtype
            assert torch.equal(own[name], tensor), name


def test_vectors(tmp_path: Path) -> None:
    data = record("CartPole-v1", "random", 3, cache_dir=str(tmp_path))
    plain, decoded = ContextWindows(data, 4), DecodedWindows(data, 4)
    for own, other in zip([decoded[i] for i in range(len(plain))], [plain[i] for i in range(len(plain))], strict=True):
        assert all(torch.equal(own[name], other[name]) for name in other)


def test_decoded_once_and_a_selection_by_itself(recorded: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    DecodedWindows(recorded, 3)
    first = int(np.argmax(np.array(recorded["episode"]) == 1))
    some = DecodedWindows(recorded.select(range(first)), 3)
    assert len(some) == len(ContextWindows(recorded.select(range(first)), 3))
    monkeypatch.setattr("hf_mech.control.windows._write", lambda *_: pytest.fail("decoded again"))
    assert torch.equal(DecodedWindows(recorded, 3)[0]["states"], some[0]["states"])


def test_in_memory(recorded: datasets.Dataset) -> None:
    in_memory = datasets.Dataset.from_dict(recorded.with_format("arrow")[:].to_pydict(), features=recorded.features)
    assert not in_memory.cache_files
    assert torch.equal(DecodedWindows(in_memory, 3)[1]["states"], ContextWindows(recorded, 3)[1]["states"])


def test_what_is_refused(recorded: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ControlError, match="must have 4 components"):
        DecodedWindows(recorded, 3, action_sizes=[3, 3, 3, 2])
    with pytest.raises(ControlError, match="no rows"):
        DecodedWindows(recorded.select([]), 3)
    rows = {**recorded.select(range(8)).with_format("arrow")[:].to_pydict(), "action": [[0]] * 8}
    two_sizes = datasets.Dataset.from_dict({**rows, "observation": [[0.0, 1.0]] * 4 + [[0.0]] * 4})
    monkeypatch.setattr("hf_mech.control.rows.ROWS_AT_A_TIME", 4)  # each part is of one size, as far as it knows
    with pytest.raises(ControlError, match=r"one size, got \[2\] and \[1\]"):
        DecodedWindows(two_sizes, 3)
