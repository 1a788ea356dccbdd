"""The windows of a run, and the batch of each step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import datasets
import numpy as np
from torch import Tensor
from torch.utils.data import Dataset

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.control import make_environment
from hf_mech.control.policies import make_policy
from hf_mech.control.recording import Recording, environment_features
from hf_mech.control.windows import DecodedWindows, WindowCollator
from hf_mech.data.local_datasets import code_hash

from .settings import Run


@dataclass(frozen=True)
class RunData:
    """The data of a run.

    Attributes:
        windows: of all training episodes.
        rows: steps in them.
        returns: of each episode.
        success: whether each episode was solved.
    """

    windows: DecodedWindows
    rows: int
    returns: list[float]
    success: list[bool]


def load_data(run: Run, processes: int = 0) -> RunData:
    """Generates the training episodes, or takes them from the cache of `datasets`, and decodes them once.

    Args:
        run: of the data; its model does not matter.
        processes: that generate ViZDoom's episodes, 0 for this one; the data is the same.
    """
    rows = _built(run, processes) if run.place.builder else _recorded(run)
    first = np.flatnonzero(np.array(rows["timestep"]) == 0)
    last = np.append(first[1:], len(rows)) - 1
    return RunData(
        windows=DecodedWindows(rows, run.context),
        rows=len(rows),
        returns=np.array(rows["return_to_go"])[first].tolist(),
        success=np.array(rows["success"])[last].tolist(),
    )


def _built(run: Run, processes: int) -> datasets.Dataset:
    taken = {"expert": (), "noisy": ("noise", "hold"), "random": ("hold",)}[run.policy]
    return datasets.load_dataset(
        "hf_mech/vizdoom_trajectories",
        f"{run.place.builder}-{run.policy}",
        split="train",
        seed=run.seed,
        num_train=run.episodes,
        num_test=1,
        num_proc=processes or None,
        **{name: getattr(run, name) for name in taken},
        **run.environment_options,
    )


def _recorded(run: Run) -> datasets.Dataset:
    """Episodes of an environment that has no builder; the arguments and the code are the cache's key."""
    features = environment_features(run.place.environment, run.environment_options)
    with closing(make_environment(run.place.environment, **run.environment_options)) as opened:
        code = " ".join(map(code_hash, ("hf_mech.control.recording", type(opened.unwrapped).__module__)))
    given = {name: getattr(run, name) for name in ("policy", "noise", "hold", "episodes", "seed")}
    given |= {"environment": run.place.environment, "options": run.environment_options, "code": code}
    return datasets.Dataset.from_generator(_rows, features=features, gen_kwargs=given, split="train")


def _rows(
    environment: str,
    options: dict[str, Any],
    policy: Any,
    noise: float,
    hold: int,
    episodes: int,
    seed: int,
    code: str,  # not read: an edit makes a new cache
) -> Iterator[dict[str, Any]]:
    schema = environment_features(environment, options).arrow_schema
    recording = Recording(environment, options, make_policy(policy, noise, hold), seed, "train", schema)
    for table in recording.tables(range(episodes)):
        yield from table.to_pylist()


class WindowBatches(Dataset[dict[str, Tensor]]):
    """Item `step` is the batch of that step: windows in a new order each epoch, arguments of the model's forward.

    Args:
        windows: of the training episodes.
        batch_size: windows of a batch.
        seed: of the order.
    """

    def __init__(self, windows: DecodedWindows, batch_size: int, seed: int) -> None:
        self.windows, self.batch_size, self.seed = windows, batch_size, seed
        self.collate = WindowCollator(windows.context_length)
        self._epoch, self._order = -1, np.zeros(0, np.int64)

    @property
    def epoch(self) -> float:
        """The steps of an epoch."""
        return len(self.windows) / self.batch_size

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        places = range(step * self.batch_size, (step + 1) * self.batch_size)
        return self.collate([self.windows[self._number(place)] for place in places])

    def _number(self, place: int) -> int:
        epoch, within = divmod(place, len(self.windows))
        if epoch != self._epoch:
            order = np.random.default_rng((self.seed, epoch)).permutation(len(self.windows))
            self._epoch, self._order = epoch, order
        return int(self._order[within])
