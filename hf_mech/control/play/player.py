"""The model's part in an episode: its states, its decisions, and the return that it is told to reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hf_mech.control.data_errors import EpisodeWithoutEndError, TrajectorySettingsError


class Player(Protocol):
    """A model that decides in a batch of environments and remembers their episodes, such as `MSATDecisionTransformer`.

    Attributes:
        config: its `check_spaces` refuses environments of other observations or actions.
    """

    config: Any

    def start_context(self, batch_size: int = 1) -> Any:
        """Empty memories, a row for each environment."""

    def act(
        self,
        states: Tensor,  # [rows, *state_shape]
        context: Any,
        returns_to_go: Sequence[float],  # [rows]
        *,
        begins: Sequence[bool],  # [rows]
        rows: Sequence[int],
        do_sample: bool,
        temperature: float,
        generator: torch.Generator | None,
    ) -> Tensor:
        """The actions, [rows, components]; the other rows of the context wait."""


@dataclass
class Running:
    """The episode of one environment."""

    number: int  # among those that are played
    seed: int
    wanted: float
    generator: torch.Generator | None
    total_return: float = 0.0
    length: int = 0


def check_play(model: Any, target_return: Any) -> None:
    """Raises TrajectorySettingsError for what cannot decide, or for a return that cannot be reached."""
    if not hasattr(model, "start_context") or not hasattr(model, "act"):
        raise TrajectorySettingsError(
            "A player is a model with start_context and act, such as MSATDecisionTransformer, got "
            f"{model if isinstance(model, str) else type(model).__name__!r}. Load one with "
            "AutoModel.from_pretrained(...).eval()."
        )
    try:
        finite = not isinstance(target_return, bool | str) and math.isfinite(target_return)
    except TypeError:
        finite = False
    if not finite:
        raise TrajectorySettingsError(
            "target_return must be a finite number in the environment's units, such as the return of a good training "
            f"episode, got {target_return!r}."
        )


def as_states(observations: NDArray[Any]) -> Tensor:
    """Observations as the model reads them: frames [..., height, width, 3] -> [..., 3, height, width]; vectors as they
    are."""
    frames = observations.dtype == np.uint8 and observations.ndim >= 4
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(observations, -1, -3) if frames else observations))


def generator_of(model: Player, seed: int) -> torch.Generator:
    """The random numbers of an episode, on the model's device."""
    device = next(model.parameters()).device if isinstance(model, torch.nn.Module) else torch.device("cpu")
    return torch.Generator(device).manual_seed(seed)


def decide(
    model: Player,
    context: Any,
    rows: list[int],
    running: Sequence[Running | None],
    observations: NDArray[Any],
    do_sample: bool,
    temperature: float,
) -> NDArray[np.int64]:
    """The actions of these rows, [rows, components]: in one batch, or row by row where each has a generator."""
    states = as_states(observations)
    actions = []
    for group in [[row] for row in rows] if do_sample else [rows]:
        episodes = [one for row in group if (one := running[row]) is not None]
        actions.append(
            model.act(
                states[group],
                context,
                [one.wanted for one in episodes],
                begins=[one.length == 0 for one in episodes],
                rows=group,
                do_sample=do_sample,
                temperature=temperature,
                generator=episodes[0].generator,
            )
        )
    chosen: NDArray[np.int64] = torch.cat(actions).cpu().numpy()
    return chosen


def endless(seed: int, max_steps: int) -> EpisodeWithoutEndError:
    return EpisodeWithoutEndError(
        f"The episode of seed {seed} has no end after {max_steps} steps. Give the environment a limit of time: "
        "max_episode_steps=..., or max_steps more."
    )
