"""One episode with everything that the model saw and that the environment showed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hf_mech.control.environments import Environment, make_environment
from hf_mech.control.episodes import Episode
from hf_mech.control.play.parallel import Score
from hf_mech.control.play.player import Player, Running, as_states, check_play, decide, endless, generator_of
from hf_mech.control.recording import MAX_STEPS
from hf_mech.control.seeds import episode_seed

if TYPE_CHECKING:
    from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer


@dataclass(frozen=True, eq=False)
class Watched:
    """An episode that was played with everything that the model saw.

    Attributes:
        episode: what happened.
        returns_to_go: what the model was told to reach, [steps]. `episode.returns_to_go` is what it did reach.
        pictures: what the environment rendered before each step and after the last one, [steps + 1, height, width, 3]
            uint8; empty if it renders nothing.
        score: its end.
    """

    episode: Episode
    returns_to_go: NDArray[np.float32]
    pictures: NDArray[np.uint8]
    score: Score

    def window(self, first: int, steps: int) -> dict[str, Tensor]:
        """Arguments of the model's `forward`: these steps as a batch of one window."""
        some = slice(first, first + steps)
        return {
            "states": as_states(self.episode.observations[some])[None],
            "actions": torch.from_numpy(self.episode.actions[some])[None],
            "returns_to_go": torch.from_numpy(self.returns_to_go[some])[None],
            "timesteps": torch.arange(len(self.episode))[some][None],
        }

    @torch.no_grad()
    def attention(self, model: MSATDecisionTransformer) -> tuple[NDArray[np.floating], list[str], int]:
        """The weights of all heads in the last window of the episode.

        Args:
            model: that played it, with eager attention.

        Returns:
            The weights, [layers, heads, tokens, tokens], the names of the tokens, and the window's first step.
        """
        steps = min(model.config.context_length, len(self.episode))
        first = len(self.episode) - steps
        output = model(**self.window(first, steps), output_attentions=True)
        weights: NDArray[np.floating] = torch.cat(output.attentions).float().numpy()
        return weights, model.config.token_names(range(first, first + steps)), first


def watch(
    model: Player,
    environment: str,
    episode: int,
    *,
    target_return: float,
    seed: int = 0,
    do_sample: bool = False,
    temperature: float = 1.0,
    max_steps: int = MAX_STEPS,
    **options: Any,
) -> Watched:
    """Plays one held-out episode and keeps everything that the model saw. The arguments are those of [`play`].

    Args:
        episode: its number.
        options: of `make_environment`; with `render_mode="rgb_array"` there are pictures.
    """
    check_play(model, target_return)
    own = episode_seed(seed, "play", episode)
    observations: list[NDArray[Any]] = []
    actions, rewards, success, wanted, pictures = [], [], [], [], []

    def drawn(opened: Environment) -> list[Any]:
        return [] if opened.render_mode is None else [np.array(opened.render())]

    with closing(make_environment(environment, **options)) as opened:
        model.config.check_spaces(opened.observation_space, opened.action_space)
        context = model.start_context(1)
        observation, _ = opened.reset(seed=own)
        pictures += drawn(opened)
        running = Running(0, own, target_return, generator_of(model, own) if do_sample else None)
        terminated = truncated = False
        while not (terminated or truncated):
            if running.length == max_steps:
                raise endless(own, max_steps)
            observations.append(np.array(observation))
            wanted.append(running.wanted)
            (action,) = decide(model, context, [0], [running], observations[-1][None], do_sample, temperature)
            observation, reward, terminated, truncated, info = opened.step(action)
            pictures += drawn(opened)
            actions.append(action)
            rewards.append(reward)
            success.append(info["is_success"])
            running.wanted -= float(reward)
            running.length += 1
    whole = Episode(
        observations=np.stack(observations),
        actions=np.stack(actions),
        rewards=np.array(rewards, np.float32),
        success=np.array(success, bool),
        terminated=terminated,
        truncated=truncated,
        seed=own,
        final_observation=np.array(observation),
    )
    end = Score(own, float(sum(map(float, rewards))), bool(success[-1]), running.length)
    return Watched(whole, np.array(wanted, np.float32), np.array(pictures, np.uint8), end)
