"""Bad input is refused before work starts, by an error that says what was expected, what came, and what to do."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from hf_mech.models.msat import (
    MSATError,
)
from hf_mech.models.msat.modeling_msat import logger

from .contract import inputs
from .models import FEATURES, model, steps

FRAMES = {"state_shape": [3, 36, 36]}


def refused(match: str, changes: dict[str, Any]) -> None:
    """Every changed input, in forward."""
    with pytest.raises(MSATError, match=match):
        model()(**{**steps(2, 4), **changes})


def test_another_number_of_components():
    refused(
        r"must have 3 components.*\[2, 4, 3\], got \[2, 4, 2\]",
        {"actions": steps(2, 4)["actions"][..., :2]},
    )
    refused(r"labels must have 3 components", {"labels": torch.zeros(2, 4, 1, dtype=torch.long)})


@pytest.mark.parametrize("shape", [(4, 2, 3), (1, 8, 3), (8, 3), ()], ids=str)
def test_labels_of_other_steps(shape: tuple[int, ...]):
    """Of as many numbers, too: they would be compared with the logits of other steps."""
    refused(r"labels must have .*\[2, 4, 3\], got", {"labels": torch.zeros(shape, dtype=torch.long)})


@pytest.mark.parametrize("name", ["actions", "labels"])
def test_a_value_that_a_component_does_not_have(name: str):
    for value in (2, -1):
        actions = steps(2, 4)["actions"]
        actions[1, 3, 1] = value
        said = rf"{name} hold {value} for component 1 at row 1, step 3; expected 0 to 1"
        refused(said, {name: actions})


def test_actions_that_are_no_integers():
    refused("must be integers.*float64", {"actions": steps(2, 4)["actions"].double()})


def test_frames_of_another_size_or_kind():
    batch = {name: tensor for name, tensor in inputs(2, 4, 0).items() if name != "labels"}
    frames = batch.pop("states")
    read = model(**FRAMES).float()
    for wrong, said in (
        (frames[..., :35], r"\[batch, steps, 3, 36, 36\], got \[2, 4, 3, 36, 35\].*image processor resizes"),
        (frames.movedim(2, -1), "channels last; the image processor puts them first"),
        (frames.float() / 255, "integers from 0 to 255, got torch.float32: the model scales them itself"),
        (frames.int() * 2, "values from 0 to"),
        (frames[:, 0], r"got \[2, 3, 36, 36\]"),
    ):
        with pytest.raises(MSATError, match=said):
            read(wrong, **batch)
    assert read(frames.long(), **batch).logits.equal(read(frames, **batch).logits)


def test_vectors_of_another_size():
    refused(r"\[batch, steps, 5\], got \[2, 4, 4\]", {"states": torch.zeros(2, 4, 4)})


def test_vectors_for_a_model_of_frames():
    batch = {name: tensor for name, tensor in inputs(2, 4, 0).items() if name not in ("states", "labels")}
    with pytest.raises(MSATError, match=r"These are vectors: make the model with state_shape=\[7\]"):
        model(**FRAMES)(torch.zeros(2, 4, 7), **batch)


def test_attentions_that_nobody_keeps_are_warned_of(monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    monkeypatch.setattr(logger, "warning_once", said.append)
    for kind, warnings in (("eager", 0), ("sdpa", 1)):
        asked = model()
        asked.set_attn_implementation(kind)
        assert len(asked(**steps(2, 4), output_attentions=True).attentions) == (1 - warnings) * asked.config.n_layer
        assert len(said) == warnings
    assert "set_attn_implementation('eager')" in said[0]


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_states_that_are_not_finite(value: float):
    states = steps(2, 4)["states"]
    states[1, 2, 3] = value
    refused(rf"finite, got {value} at \[1, 2, 3\]", {"states": states})


def test_more_steps_than_a_context():
    with pytest.raises(MSATError, match=r"7 steps.*context_length = 6"):
        model()(**steps(1, 7))
    refused(r"\[batch, steps\] = \[2, 4\], got \[2, 12\]", {"attention_mask": torch.ones(2, 12)})


def test_a_batch_of_no_rows():
    with pytest.raises(MSATError, match="batch is empty"):
        model()(**steps(0, 4))


def test_timesteps_beyond_the_last():
    said = r"from 38 to 41; .*max_timestep = 40"
    refused(said, {"timesteps": steps(2, 4)["timesteps"] + 38})
    refused("from -1 to 2", {"timesteps": steps(2, 4)["timesteps"] - 1})
    refused("give timesteps", {"timesteps": None})
    refused("integers, one for each step", {"timesteps": torch.zeros(2, 4)})
    free = model(positional_encoding=False)
    batch = steps(2, 4)
    far = {**batch, "timesteps": batch["timesteps"] + 10**6}
    assert torch.equal(free(**far).logits, free(**{**batch, "timesteps": None}).logits)


def test_an_episode_longer_than_max_timestep_in_play():
    acting = model(max_timestep=2)
    context = acting.start_context()
    for _ in range(3):
        acting.act(torch.zeros(1, FEATURES), context, 1.0)
    with pytest.raises(MSATError, match="max_timestep = 2"):
        acting.act(torch.zeros(1, FEATURES), context, 1.0)
    acting.act(torch.zeros(1, FEATURES), context, 1.0, begins=[True])
    assert context.timesteps.tolist() == [1]


def test_returns_that_do_not_fit():
    refused(r"one number for each step, \[2, 4\], got \[2, 1\]", {"returns_to_go": torch.ones(2, 1)})
    refused("not finite", {"returns_to_go": torch.full((2, 4), torch.inf)})
    for kind in (torch.bool, torch.complex64):
        refused(f"real numbers, got {kind}", {"returns_to_go": torch.ones(2, 4, dtype=kind)})


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        (r"\[rows, 5\], got \[2, 4\]", {"states": torch.zeros(2, 4)}),
        (r"finite, got nan at \[0, 0\]", {"states": torch.full((2, FEATURES), torch.nan)}),
        ("one for each of the 2 rows", {"states": torch.zeros(3, FEATURES)}),
        ("begins must be one for each", {"begins": [True]}),
        (r"begins must be a list or a tensor", {"begins": [None, True]}),
        ("different numbers from 0 to 1", {"rows": [0, 2]}),
        ("numbers of the rows that decide, got", {"rows": [True, False]}),
        ("numbers of the rows that decide, got", {"rows": [0.0, 1.0]}),
        ("rows must be a list of numbers", {"rows": torch.tensor([[0, 1]])}),
        ("different numbers from 0 to 1", {"rows": [0, 0]}),
        ("temperature must be above 0", {"do_sample": True, "temperature": 0.0}),
        ("temperature=0.5 needs do_sample=True", {"temperature": 0.5}),
        ("temperature must be above 0", {"do_sample": True, "temperature": 1e-45}),
        ("not finite", {"returns_to_go": float("nan")}),
        ("must be a real number, .*; got 'best'", {"returns_to_go": "best"}),
        ("must be a real number, .*; got None", {"returns_to_go": None}),
        (r"got \[5\]\. One state alone is a batch of one: \[1, 5\]", {"states": torch.zeros(FEATURES)}),
        ("must be finite", {"states": torch.full((2, FEATURES), float("nan"))}),
        ("max_timestep", {"timesteps": [0, 41]}),
        ("3 components", {"actions": torch.zeros(2, 2, dtype=torch.long)}),
        ("hold 4 for component 2 at row 1;", {"actions": torch.tensor([[0, 0, 0], [0, 0, 4]])}),
    ],
)
def test_a_refused_decision_changes_nothing(said: str, changes: dict[str, Any]):
    acting = model()
    context = acting.start_context(2)
    acting.act(torch.zeros(2, FEATURES), context, 1.0)
    before = context.tokens.clone()
    plain = {"states": torch.zeros(2, FEATURES), "returns_to_go": 1.0, "begins": [True, True]}
    with pytest.raises(MSATError, match=said):
        acting.act(context=context, **{**plain, **changes})
    assert context.steps.tolist() == context.timesteps.tolist() == [1, 1]
    assert torch.equal(context.tokens, before)


def test_a_context_that_cannot_be():
    acting = model()
    with pytest.raises(MSATError, match=r"stride must be from 1 to context_length = 6, got 7"):
        acting.start_context(stride=7)
    with pytest.raises(MSATError, match="at least 1, got 0"):
        acting.start_context(0)
    for number in (1.5, True):
        with pytest.raises(MSATError, match=f"at least 1, got {number}"):
            acting.start_context(number)  # type: ignore[arg-type]
        with pytest.raises(MSATError, match=f"stride must be .* got {number}"):
            acting.start_context(stride=number)  # type: ignore[arg-type]
    assert acting.start_context(np.int64(3), stride=np.int32(2)).steps.tolist() == [0, 0, 0]
    with pytest.raises(MSATError, match="at least 1, got '2'"):
        acting.start_context("2")
    with pytest.raises(MSATError, match=r"what model\.start_context\(batch_size\) returns, got int"):
        acting.act(torch.zeros(1, FEATURES), 1, 1.0)
    for other in ({"context_length": 5}, {"n_layer": 1}, {"n_head": 4}):
        with pytest.raises(MSATError, match="another model"):
            acting.act(torch.zeros(1, FEATURES), model(**other).start_context(), 1.0)
    with pytest.raises(MSATError, match=r"the model torch\.float32"):
        model().float().act(torch.zeros(1, FEATURES), acting.start_context(), 1.0)


def test_a_checkpoint_of_another_scenario():
    config = model(action_sizes=[3, 3], **FRAMES).config
    config.check_action_sizes([3, 3])
    config.check_action_sizes(np.array([3, 3]))
    with pytest.raises(MSATError, match=r"sizes \[3, 3, 3, 2\], the model's \[3, 3\]: .*another scenario"):
        config.check_action_sizes((3, 3, 3, 2))
    with pytest.raises(MSATError, match=r"\[72, 128, 3\], the model's \[36, 36, 3\]"):
        config.check_state_shape((72, 128, 3))


def test_the_spaces_of_an_environment():
    frames = gymnasium.spaces.Box(0, 255, (36, 36, 3), np.uint8)
    config = model(action_sizes=[3, 3], **FRAMES).config
    config.check_spaces(frames, gymnasium.spaces.MultiDiscrete([3, 3]))
    model(action_sizes=[4]).config.check_spaces(gymnasium.spaces.Box(-1, 1, (5,)), gymnasium.spaces.Discrete(4))
    for observations, actions in (
        (frames, gymnasium.spaces.MultiDiscrete([3, 3, 2])),
        (frames, gymnasium.spaces.Box(-1, 1, (2,))),
        (gymnasium.spaces.Box(-1, 1, (5,)), gymnasium.spaces.MultiDiscrete([3, 3])),
    ):
        with pytest.raises(MSATError, match=r"The (environment|model)"):
            config.check_spaces(observations, actions)
