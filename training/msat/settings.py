"""The settings of M-SAT: the paper's (Tables 4 and 5), and reduced ones for a GPU and for two cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import datasets
import numpy as np
from PIL.Image import Image

from ..engine import SettingsError, axis, fixed, option
from ..engine.own_data import TEST_SHARE, OwnData
from ..engine.settings import SCHEDULERS, By


@dataclass(frozen=True)
class Scenario:
    """An environment of the experiment.

    Attributes:
        environment: the id for `make_environment`.
        title: the name in tables and figures.
        builder: the name of its data set in `hf_mech/vizdoom_trajectories`; None: episodes are recorded.
        frames: whether observations are frames, so that their size can be chosen.
        expert_return: what the scripted expert gets, about, in the environment's units.
        options: of `make_environment`, besides the size of frames.
    """

    environment: str
    title: str
    builder: str | None
    frames: bool
    expert_return: float
    options: Mapping[str, Any] = field(default_factory=dict)


SCENARIOS = {
    "my_way_home": Scenario("hf_mech/MyWayHome-v0", "My Way Home", "my_way_home", True, 0.975),
    "deadly_corridor": Scenario("hf_mech/DeadlyCorridor-v0", "Deadly Corridor", "deadly_corridor", True, 22.7),
    "rooms": Scenario("hf_mech/Rooms-v0", "Rooms", None, True, 0.97),
    "doorway": Scenario("hf_mech/Doorway-v0", "Doorway", None, False, 1.0),
    "go_to_local": Scenario("hf_mech/BabyAI-v0", "GoToLocal", None, False, 0.92, {"level": "GoToLocal"}),
    "unlock_pickup": Scenario("hf_mech/BabyAI-v0", "UnlockPickup", None, False, 0.75, {"level": "UnlockPickup"}),
}
"""By the name on the command line. The first two need ViZDoom's engine, the last two the package MiniGrid."""

Tokenization = Literal["single", "multi", "multi_state"]

MODELS: dict[str, Tokenization] = {"baseline": "single", "mat": "multi", "msat": "multi_state"}
"""The models of Tables 2 and 3, and their tokens of an action."""
PEER = "decision_transformer"
"""transformers' `DecisionTransformerModel`, for vectors: the same settings, data and play."""
POSITIONS = ("on", "off")


def _of(my_way_home: Any, deadly_corridor: Any, **own: Any) -> Any:
    """A preset's value by scenario; those without an engine have My Way Home's, unless they have their own."""
    return By("scenario", {"deadly_corridor": deadly_corridor, **own}, other=my_way_home)


_LARGE: dict[str, Any] = {  # the paper's sizes
    "policy": "expert",
    "height": 72,
    "width": 128,
    "layers": 8,
    "heads": 8,
    "context": _of(30, 60),
    "resid_pdrop": _of(0.01, 0.1),
    "attn_pdrop": _of(0.1, 0.3),
    "batch_size": 128,
    "epochs": 5,
    "mixed_precision": "bf16",
}
_RETURNS: dict[str, Any] = {
    "return_scale": _of(1.0, 0.05),
    # What the experts get; a target that no episode of the data reached asks the model for what it never saw.
    "target_return": _of(0.98, 22.8, doorway=1.0, go_to_local=0.95, unlock_pickup=0.8),
}
_SMALL: dict[str, Any] = {  # what fits two cores
    "height": 36,
    "width": 64,
    "layers": 2,
    "heads": 4,
    "context": 20,
    "resid_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "batch_size": 24,
    "learning_rate": 1e-3,
    "warmup_steps": 100,
    "mixed_precision": "bf16",
    **_RETURNS,
}


@dataclass(frozen=True, kw_only=True)
class Run(OwnData):
    """A run: a scenario, a model with or without positions, and a seed; its data, its training, its play."""

    PRESETS = {
        "paper": _LARGE
        | {
            "episodes": _of(7_250, 7_050),  # 500,000 steps
            "learning_rate": 5e-3,
            # 10,240 and 2,000 labels, as the base counts them: 3 steps of 128 x 30, and a part of one of 128 x 60.
            "warmup_steps": _of(3, 1),
            "return_scale": 1.0,
            "target_return": _of(1.8, 29.0),
        },
        "gpu-10min": _LARGE
        | {  # less data, the base's learning rate, and returns as in the presets for two cores
            "episodes": _of(1_450, 1_400),  # 100,000 steps
            "learning_rate": 6e-4,
            "warmup_steps": 100,
            **_RETURNS,
        },
        "cpu": _SMALL
        | {
            "policy": "expert",
            # 80,000 steps, 50,000, and 20,000 in BabyAI
            "episodes": _of(1_160, 700, rooms=300, doorway=150, go_to_local=4_000, unlock_pickup=1_000),
            "steps": _of(4_000, 4_000, rooms=1_500, doorway=600),
            "eval_steps": 1_000,
        },
        "compare": _SMALL
        | {  # little data, and noisy in My Way Home, so that the methods differ; noise undoes Deadly Corridor
            "policy": _of("noisy", "expert"),
            "noise": _of(0.3, 0.0),
            "episodes": _of(40, 150),
            "steps": 800,
            "eval_steps": 400,
            "curve_episodes": 10,
        },
    }

    COLUMNS = {"episode": (int, str), "observation": (list, Image), "action": list, "reward": (int, float)}
    GENERATED = ("scenario", "policy", "noise", "hold", "episodes", "height", "width", "target_return")
    IN_LABELS = (*OwnData.IN_LABELS, "environment")

    scenario: str = axis("the environment", SCENARIOS, default=("my_way_home",))
    model: str = axis(
        "baseline: one token an action; mat: one a component; msat: one a component and its state; "
        "decision_transformer: transformers' own, for vectors",
        (*MODELS, PEER),
        all=tuple(MODELS),
        default=("msat",),
    )
    positions: str = axis("whether tokens have their timestep", POSITIONS, default=("on",))
    environment: str | None = option(
        "where your own data was played, such as CartPole-v1 or my_module:Mine-v0; it is played there again",
        default=None,
    )
    seed: int = fixed("of the data, the weights, the order of the windows and the held-out episodes")
    policy: str = option("who plays the training episodes", known=("expert", "noisy", "random"))
    noise: float = option("noisy: the share of its decisions that are random", default=0.0, least=0, most=1)
    hold: int = option("noisy, random: steps that a random action is kept for", default=1, least=1)
    episodes: int = option("training episodes", least=1)
    height: int = option("of the frames", least=36)
    width: int = option("of the frames", least=36)
    layers: int = option("blocks of the decoder", least=1)
    heads: int = option("attention heads", least=1)
    hidden: int = option("width; the base's is 128", default=128, least=1)
    context: int = option("steps of a window", least=1)
    embd_pdrop: float = option("dropout of the tokens", default=0.1, least=0, most=1)
    resid_pdrop: float = option("dropout in the residual stream", least=0, most=1)
    attn_pdrop: float = option("dropout of the attention", least=0, most=1)
    component_prediction: str = option(
        "autoregressive: a component of an action sees those before it",
        default="independent",
        known=("independent", "autoregressive"),
    )
    return_scale: float = option("returns-to-go are multiplied by it", least=0)
    batch_size: int = option("windows a step", least=1)
    epochs: float = option("times that all windows are seen; read if --steps is 0", default=0.0, least=0)
    steps: int = option("training steps; 0: so many as --epochs need", default=0, least=0)
    learning_rate: float = option("AdamW's learning rate", least=0)
    weight_decay: float = option("AdamW's weight decay, of matrices alone; the base's", default=0.1, least=0)
    beta2: float = option("AdamW's second beta, the base's; the first is 0.9", default=0.95, least=0, most=1)
    warmup_steps: int = option("steps over which the learning rate rises", least=0)
    scheduler: str = option("the schedule of the learning rate", default="cosine", known=SCHEDULERS)
    max_grad_norm: float = option("gradients are clipped to this norm; the base's", default=1.0, least=0)
    mixed_precision: str = option("of the arithmetic", known=("no", "bf16"))
    target_return: float = option("the return that the model is told to reach, in the environment's units")
    eval_episodes: int = option("held-out episodes that a trained model plays, twice", default=50, least=1)
    curve_episodes: int = option("held-out episodes that it plays while it trains", default=20, least=1)
    eval_steps: int = option("steps between these; 0: after each epoch", default=0, least=0)
    max_minutes: float = option("end the training after this time; 0: after --steps", default=0.0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden % self.heads:
            raise SettingsError(f"--hidden must be a multiple of --heads, got {self.hidden} and {self.heads}.")
        if self.environment and not self.own_data:
            raise SettingsError("--environment goes with --dataset_name or --train_file; generated data: --scenario.")
        if self.model == PEER and (self.place.frames or self.positions == "off" or self.own_data):
            raise SettingsError(
                f"--model {PEER} reads vectors, with positions, of generated data: give --positions on and a "
                f"--scenario of {', '.join(name for name, place in SCENARIOS.items() if not place.frames)}."
            )
        if not self.steps and not self.epochs:
            raise SettingsError("Give --steps or --epochs: both are 0.")
        if self.noise and self.policy != "noisy":
            raise SettingsError(
                f"--noise {self.noise:g} needs --policy noisy: the policy {self.policy!r} has none. Give --noise 0, or "
                "--policy noisy."
            )
        if self.hold != 1 and self.policy == "expert":
            raise SettingsError(
                f"--hold {self.hold} needs --policy noisy or random: the policy 'expert' takes no random actions."
            )
        if self.component_prediction == "autoregressive" and self.model in ("baseline", PEER):
            raise SettingsError(
                "--component_prediction autoregressive needs a token for each component: --model mat or msat."
            )

    def cut(self, rows: datasets.Dataset) -> dict[str, datasets.Dataset]:
        """Whole episodes: a random tenth is for the test."""
        numbers = np.array(rows["episode"])
        episodes = np.unique(numbers)
        if len(episodes) < 2:
            raise SettingsError(f"{self.own_data} needs two episodes at least, for training and test, got 1.")
        chosen = np.random.default_rng(0).permutation(episodes)[: max(1, round(TEST_SHARE * len(episodes)))]
        test = np.isin(numbers, chosen)
        return {"train": rows.select(np.flatnonzero(~test)), "test": rows.select(np.flatnonzero(test))}

    @property
    def place(self) -> Scenario:
        """The environment."""
        if self.environment:
            return Scenario(self.environment, self.environment, None, False, 0.0)
        return SCENARIOS[self.scenario]

    @property
    def environment_options(self) -> dict[str, Any]:
        """Options of `make_environment`."""
        return {**self.place.options, **({"frame_size": (self.height, self.width)} if self.place.frames else {})}
