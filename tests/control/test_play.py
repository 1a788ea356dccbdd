"""Playing held-out episodes: scores do not depend on the other environments, and nothing stays open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hf_mech.control import make_environment
from hf_mech.control.environments import MultiDiscreteEnvironment
from hf_mech.control.episodes import episode_seed
from hf_mech.control.errors import ControlError
from hf_mech.control.play import Score, play, watch
from hf_mech.models.msat.configuration_msat import MSATDecisionTransformerConfig, MSATError
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer
from tests.control.squares import ID

SMALL = {"n_layer": 1, "n_head": 2, "n_embd": 16, "context_length": 4, "max_timestep": 40}
TARGET = 0.9
ROOMS = {"environment": "hf_mech/Rooms-v0", "target_return": TARGET, "max_episode_steps": 8, "frame_size": (36, 40)}


def small(**more: Any) -> MSATDecisionTransformer:
    settings = {"action_sizes": [3, 3], "state_shape": [3, 36, 40], **SMALL, **more}
    model = MSATDecisionTransformer(MSATDecisionTransformerConfig(**settings)).eval()
    with torch.no_grad():
        for head in model.heads:  # decisions that differ from state to state
            head.weight.normal_(std=0.5)
    return model


@pytest.fixture(scope="module")
def model() -> MSATDecisionTransformer:
    torch.manual_seed(0)
    return small()


@pytest.mark.parametrize("do_sample", [False, True])
def test_scores_do_not_depend_on_the_number_of_environments(model: MSATDecisionTransformer, do_sample: bool) -> None:
    scores = [play(model, episodes=range(5), num_envs=n, do_sample=do_sample, **ROOMS) for n in (1, 3, 8)]
    assert [[(one.seed, one.length, one.success) for one in own] for own in scores] == [
        [(one.seed, one.length, one.success) for one in scores[0]]
    ] * 3
    for own in scores[1:]:
        assert [one.total_return for one in own] == pytest.approx([one.total_return for one in scores[0]])
    assert [one.seed for one in scores[0]] == [episode_seed(0, "play", i) for i in range(5)]


def test_an_episode_is_the_same_among_others_and_alone(model: MSATDecisionTransformer) -> None:
    several = play(model, episodes=[3, 7, 1], num_envs=2, seed=2, do_sample=True, **ROOMS)
    for number, score in zip([3, 7, 1], several, strict=True):
        assert play(model, episodes=[number], seed=2, do_sample=True, **ROOMS) == [score]
        watched = watch(model, episode=number, seed=2, do_sample=True, **ROOMS)
        assert watched.score == score
        assert len(watched.episode) == score.length


def test_samples_differ_from_the_most_likely_actions(model: MSATDecisionTransformer) -> None:
    chosen = [
        watch(model, episode=0, **sampling, **ROOMS).episode.actions
        for sampling in ({}, {"do_sample": True, "temperature": 5.0})
    ]
    assert not np.array_equal(*chosen)


class Teller:
    """Notes the returns that it is told to reach, and walks right."""

    def __init__(self) -> None:
        self.told: list[list[float]] = []
        self.begun: list[list[bool]] = []
        self.config = self

    def check_spaces(self, *spaces: Any) -> None:
        pass

    def start_context(self, batch_size: int = 1) -> None:
        return None

    def act(self, states: torch.Tensor, context: None, returns_to_go: Any, *, begins: Any, **rest: Any) -> torch.Tensor:
        self.told.append(list(returns_to_go))
        self.begun.append(list(begins))
        return torch.tensor([[2, 0]] * len(states))


def test_the_return_still_wanted_falls_by_the_rewards_and_is_no_integer() -> None:
    teller = Teller()
    watched = watch(teller, ID, 0, target_return=1.8, max_steps=50, width=6, height=8)
    rewards = watched.episode.rewards
    expected = 1.8 - np.concatenate(([0.0], np.cumsum(rewards.astype(np.float64))[:-1]))
    assert [told for (told,) in teller.told] == pytest.approx(expected.tolist(), abs=1e-6)
    assert watched.returns_to_go.tolist() == pytest.approx(expected.tolist(), abs=1e-6)
    assert [begun for (begun,) in teller.begun] == [True] + [False] * (len(rewards) - 1)
    assert watched.pictures.size == 0  # this environment renders nothing


def test_a_window_of_a_watched_episode_gives_the_decisions_again(model: MSATDecisionTransformer) -> None:
    watched = watch(model, episode=0, **ROOMS, render_mode="rgb_array")
    steps = model.config.context_length
    assert len(watched.pictures) == len(watched.episode) + 1
    for first in (0, len(watched.episode) - steps):
        with torch.no_grad():
            logits = model(**watched.window(first, steps)).logits
        # The last step sees the whole window, as it did in play; earlier ones saw steps before the window.
        assert logits[0, -1].argmax(-1).tolist() == watched.episode.actions[first + steps - 1].tolist()


def test_environments_are_closed_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    closed: list[Any] = []
    init, close = MultiDiscreteEnvironment.__init__, MultiDiscreteEnvironment.close
    monkeypatch.setattr(MultiDiscreteEnvironment, "__init__", lambda s, e: (opened.append(s), init(s, e))[1])
    monkeypatch.setattr(MultiDiscreteEnvironment, "close", lambda s: (closed.append(s), close(s))[1])

    class Fails(Teller):
        def act(self, *args: Any, **rest: Any) -> torch.Tensor:
            if len(self.told) == 2:
                raise KeyboardInterrupt
            return super().act(*args, **rest)

    with pytest.raises(KeyboardInterrupt):
        play(Fails(), ID, range(6), target_return=1.0, num_envs=3)
    assert len(opened) == 3
    assert set(opened) == set(closed)


def test_a_model_of_another_scenario_is_refused(model: MSATDecisionTransformer) -> None:
    with pytest.raises(MSATError, match="another scenario"):
        play(model, ID, range(2), target_return=1.0, width=40, height=36)
    with pytest.raises(MSATError, match=r"\[36, 64, 3\]"):
        play(model, "hf_mech/Rooms-v0", range(2), target_return=1.0)


def test_wrong_settings_are_refused(model: MSATDecisionTransformer) -> None:
    with pytest.raises(ControlError, match="num_envs must be a whole number, 1 or more, got 0"):
        play(model, episodes=range(2), num_envs=0, **ROOMS)
    with pytest.raises(ControlError, match=r"such as range\(50\), got 50"):
        play(model, episodes=50, **ROOMS)
    for target in ("best", float("inf"), None, [1.0]):
        with pytest.raises(ControlError, match="target_return must be a finite number"):
            play(model, episodes=range(2), **ROOMS | {"target_return": target})
    with pytest.raises(ControlError, match="config names no environment; give its id"):
        play(model, target_return=1.0)
    with pytest.raises(ControlError, match=r"target_return must be a finite number .* got None"):
        play(model, ID)
    with pytest.raises(ControlError, match=r"got 'runs/model'. Load one with AutoModel"):
        watch("runs/model", episode=0, **ROOMS)
    with pytest.raises(ControlError, match="no episodes"):
        play(model, episodes=[], **ROOMS)
    with pytest.raises(ControlError, match="after 7 steps"):
        play(Teller(), ID, range(2), target_return=1.0, endless=True, max_steps=7)


def test_vectors_and_discrete_actions() -> None:
    vectors = small(action_sizes=[2], state_shape=[4], max_timestep=600)
    scores = play(vectors, "CartPole-v1", range(3), target_return=20.0, num_envs=2)
    assert all(isinstance(score, Score) and score.total_return == score.length for score in scores)
    with make_environment("CartPole-v1") as environment:
        assert environment.action_space.nvec.tolist() == [2]
