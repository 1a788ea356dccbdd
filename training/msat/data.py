"""The windows of a run, and the batch of each step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import datasets
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.control import make_environment
from hf_mech.control.policies import make_policy
from hf_mech.control.recording import Recording, environment_features
from hf_mech.control.rows import actions_of
from hf_mech.control.windows import DecodedWindows, WindowCollator, check_actions
from hf_mech.data.local_datasets import code_hash

from ..engine import SettingsError
from .settings import Run


@dataclass(frozen=True)
class Own:
    """What is known of the user's episodes.

    Attributes:
        held_out: windows of the test episodes.
        state_shape: as the model's configuration has it.
        action_sizes: the number of choices of each component: the environment's, or those that occur.
        longest: steps of the longest episode.
        best_return: of the training episodes.
    """

    held_out: DecodedWindows
    state_shape: list[int]
    action_sizes: list[int]
    longest: int
    best_return: float


@dataclass(frozen=True)
class RunData:
    """The data of a run.

    Attributes:
        windows: of all training episodes.
        rows: steps in them.
        returns: of each episode.
        success: whether each episode was solved; empty for the user's.
        own: of the user's episodes.
    """

    windows: DecodedWindows
    rows: int
    returns: list[float]
    success: list[bool]
    own: Own | None = None


def load_data(run: Run, processes: int = 0) -> RunData:
    """Generates the training episodes, or takes them from the cache of `datasets`, and decodes them once.

    Args:
        run: of the data; its model does not matter.
        processes: that generate ViZDoom's episodes, 0 for this one; the data is the same.
    """
    if run.own_data:
        return _own(run)
    rows = _built(run, processes) if run.place.builder else _recorded(run)
    first = np.flatnonzero(np.array(rows["timestep"]) == 0)
    last = np.append(first[1:], len(rows)) - 1
    return RunData(
        windows=DecodedWindows(rows, run.context),
        rows=len(rows),
        returns=np.array(rows["return_to_go"])[first].tolist(),
        success=np.array(rows["success"])[last].tolist(),
    )


def _own(run: Run) -> RunData:
    """The user's episodes."""
    splits = {split: with_returns(rows, f"{run.own_data}, split {split}") for split, rows in run.own_splits().items()}
    windows = {split: DecodedWindows(rows, run.context) for split, rows in splits.items()}
    actions = [actions_of(rows.data.column("action")) for rows in splits.values()]
    if len({part.shape[1] for part in actions}) > 1 or min(part.min() for part in actions) < 0:
        raise SettingsError(f"{run.own_data}: the actions of all rows must have as many components, from 0 on.")
    shape, sizes = list(windows["train"][0]["states"].shape[1:]), (np.concatenate(actions).max(0) + 1).tolist()
    if run.environment:
        found, (expected, sizes) = shape, spaces_of(run)
        if found != expected:
            raise SettingsError(f"{run.environment} has observations of the shape {expected}, your data {found}.")
        for part in actions:
            check_actions(torch.from_numpy(part), sizes)
    train = np.array(splits["train"]["timestep"]) == 0
    returns = np.array(splits["train"]["return_to_go"])[train].tolist()
    own = Own(
        held_out=windows["test"],
        state_shape=shape,
        action_sizes=sizes,
        longest=1 + max(max(rows["timestep"]) for rows in splits.values()),
        best_return=max(returns),
    )
    return RunData(windows["train"], len(splits["train"]), returns, [], own)


def spaces_of(run: Run) -> tuple[list[int], list[int]]:
    """The shape of an observation as the model has it, and the choices of each component, in the run's environment."""
    with closing(make_environment(run.place.environment, **run.environment_options)) as environment:
        shape, sizes = environment.observation_space.shape or (), environment.action_space.nvec.tolist()  # type: ignore[attr-defined]
    return ([shape[2], *shape[:2]] if len(shape) == 3 else list(shape)), sizes


def with_returns(rows: datasets.Dataset, called: str) -> datasets.Dataset:
    """The rows with `timestep` and `return_to_go`, which follow from the episodes and their rewards.

    Args:
        rows: with `episode`, of any type, and `reward`.
        called: in messages.

    Raises:
        SettingsError: the rows of an episode are not neighbours, or a reward is no number.
    """
    numbers, rewards = np.array(rows["episode"]), np.array(rows["reward"], np.float64)
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    if len(np.unique(numbers)) < len(first):
        raise SettingsError(f"{called}: the rows of an episode must be neighbours, in the order of its steps.")
    if not np.isfinite(rewards).all():
        raise SettingsError(f"{called}, row {int(np.isfinite(rewards).argmin())}: the reward must be a number.")
    parts = np.split(rewards, first[1:])
    columns = {
        "episode": np.repeat(np.arange(len(parts)), list(map(len, parts))),
        "timestep": np.concatenate([np.arange(len(part)) for part in parts]),
        "return_to_go": np.concatenate([part[::-1].cumsum()[::-1] for part in parts]).astype(np.float32),
    }
    rows = rows.remove_columns(["episode", "reward"])
    for name, column in columns.items():
        rows = rows.add_column(name, column)
    return rows


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
