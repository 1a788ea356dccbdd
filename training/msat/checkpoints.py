"""The shipped decision transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hf_mech.control.play import play
from hf_mech.models.msat import MSATDecisionTransformer, MSATImageProcessor

from ..engine.recipe import Checkpoints, Measured, Recipe, Shown
from .experiment import EXPERIMENT
from .figures import pictures_of
from .run import RunOutcome
from .settings import Run

SUCCESS, RETURN = "success", "return"


def _player(scenario: str, title: str, bar: float, options: str = "") -> Recipe:
    return Recipe(
        name=f"msat-{scenario.replace('_', '-')}",
        # The preset computes in bfloat16, for which some processors take ten times as long as for float32.
        options=f"--scenario {scenario} --seeds 0 --mixed_precision no{options}",
        task=f"plays {title}, several buttons at a time",
        metric=SUCCESS,
        bar=bar,
        headline="{value} % of 50 episodes solved",
        count=50,
        dtype="float16",
    )


class MSATCheckpoints(Checkpoints[Run, RunOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_msat"
    few = 3  # an episode takes seconds
    recipes = (
        _player("my_way_home", "ViZDoom's My Way Home", 0.9),
        _player("deadly_corridor", "ViZDoom's Deadly Corridor", 0.6),
        _player("doorway", "Doorway, where one of two robots may pass", 1.0, " --component_prediction autoregressive"),
    )

    def load(self, run: Run, outcome: RunOutcome, folder: Path) -> tuple[Any, Any]:
        model = MSATDecisionTransformer.from_pretrained(folder / "model")
        return model, MSATImageProcessor.of_config(model.config) if run.place.frames else None

    def evaluate(self, run: Run, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """Episodes by argmax."""
        scores = play(
            model,
            run.place.environment,
            range(count),
            target_return=run.target_return,
            seed=seed,
            num_envs=min(count, 8),
            **run.environment_options,
        )
        return {
            SUCCESS: Measured(sum(score.success for score in scores) / count, count),
            RETURN: Measured(sum(score.total_return for score in scores) / count, count),
        }

    def batch(self, run: Run, model: Any, processor: Any) -> dict[str, Tensor]:
        """Two contexts of three steps of noise."""
        config, drawn = model.config, torch.Generator().manual_seed(0)
        shape = (2, 3, *config.state_shape)
        states = torch.randint(0, 256, shape, generator=drawn, dtype=torch.uint8)
        actions = [torch.randint(0, size, (2, 3), generator=drawn) for size in config.action_sizes]
        return {
            "states": states if run.place.frames else states.float() / 255,
            "actions": torch.stack(actions, -1),
            "returns_to_go": torch.full((2, 3), float(run.target_return)),
            "timesteps": torch.arange(3).expand(2, 3),
            "labels": torch.stack(actions, -1),
        }

    def show(self, recipe: Recipe, run: Run, outcome: RunOutcome, model: Any, processor: Any) -> Shown:
        model.set_attn_implementation("eager")
        return Shown(
            text={"title": run.place.title, "environment": run.place.environment, "frames": run.place.frames},
            dataset="hf_mech/vizdoom_trajectories" if run.place.builder else run.place.environment,
            config=f"{run.place.builder or run.scenario}-{run.policy}",
            paper="moodley2024msat",
            pipeline="reinforcement-learning",
            tags=["offline-rl", "decision-transformer", "multi-discrete"] + (["vizdoom"] if run.place.builder else []),
            figures=pictures_of(run, model),
        )


CHECKPOINTS = MSATCheckpoints()
