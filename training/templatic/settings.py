"""The settings of the learned baselines of Table 3: the paper's, and reduced ones for one core and an hour."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_mech.programs.templatic.batches import Kind
from hf_mech.programs.templatic.tasks import TASKS

from ..engine import SettingsError, axis, fixed, option
from ..engine.own_data import OwnData
from ..engine.paper import Paper
from ..engine.settings import SCHEDULERS, By

PAPER = Paper(Path(__file__).with_name("paper.json"))
PAPERS_TASK = "1_shot_rlw"
MODELS = tuple(PAPER.values("model"))
"""The six models of Table 3, in its order and by its names."""
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("transformer", "cnn", "lstm_attn"), "encoder_decoder"),
    **dict.fromkeys(("nano_gpt", "nano_gpt_attn_only"), "decoder"),
    "mamba": "decoder_unpadded",
}
"""How the texts are laid out for each model."""


def _by_model(*values: int) -> Any:
    return By("model", dict(zip(MODELS, values, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Run(OwnData):
    """A run: a task, a model, a seed, and how the model is built, trained and measured (App. M, Tables 11 and 12)."""

    PRESETS = {
        "paper": {  # Tables 11 and 12 to the letter
            "steps": 120_000,
            "batch_size": _by_model(128, 256, 256, 128, 128, 256),
            "layers": _by_model(3, 6, 6, 3, 3, 18),
            "hidden": 512,
            "filter": 512,
            "initializer_range": 0.02,
            "learning_rate": 1e-4,
            "scheduler": "constant_with_warmup",
            "warmup_steps": 0,
            "eval_prompts": 0,
        },
        "cpu": {  # reduced in width, depth, batch, steps and prompts measured
            # A model takes some minutes of one core; Mamba's steps, without kernels, cost most.
            "steps": _by_model(4_000, 5_000, 5_000, 2_500, 3_000, 500),
            "batch_size": 32,
            "layers": _by_model(2, 3, 3, 2, 1, 3),
            "hidden": 64,
            "filter": 64,
            "initializer_range": 0.1,
            "learning_rate": 2e-3,
            "scheduler": "cosine",
            "warmup_steps": 200,
            "eval_prompts": 200,
        },
    }

    COLUMNS = {"prompt": str, "completion": str}
    GENERATED = ("task", "data_seed", "num_train", "num_eval")

    task: str = axis("configurations of hf_mech/templatic_generation", TASKS, default=[PAPERS_TASK])
    model: str = axis("the models of Table 3", MODELS)
    seed: int = fixed("of the weights, of the dropout, and of the order of the training prompts")
    steps: int = option("training steps", least=1)
    batch_size: int = option("prompts a step", least=1)
    layers: int = option("layers; of encoder and decoder each, where there are two", least=1)
    hidden: int = option("width of embeddings and hidden states", least=1)
    filter: int = option("width of the feed-forward layers, and Mamba's inner width", least=1)
    heads: int = option("heads of the transformers", default=1, least=1)
    state: int = option("size of Mamba's state", default=16, least=1)
    # The paper is silent; this is the published ConvS2S's usual one.
    kernel: int = option("width of the CNN's convolutions", default=3, least=1)
    # The paper is silent; GPT-2's is 0.02.
    initializer_range: float = option(
        "standard deviation of the new weights of the transformers and of all embeddings but Mamba's", least=0
    )
    learning_rate: float = option("AdamW's learning rate", least=0)
    weight_decay: float = option("AdamW's weight decay; 0: Adam", default=0.0, least=0)
    scheduler: str = option("the schedule of the learning rate; the paper names none", known=SCHEDULERS)
    warmup_steps: int = option("steps over which the schedule warms up", least=0)
    max_grad_norm: float = option("gradients are clipped to this norm; the paper is silent", default=1.0, least=0)
    dropout: float = option("dropout of the hidden states", default=0.0, least=0, most=1)
    eval_prompts: int = option("prompts of each split that are measured, drawn with --eval_seed; 0: all", least=0)
    eval_seed: int = option("seed of their choice, the same for every model", default=0, least=0)
    mixed_precision: str = option("of the arithmetic", default="no", known=("no", "bf16"))
    max_minutes: float = option("end the training after this time; 0: after --steps", default=0.0, least=0)
    data_seed: int = option("seed of the data set", default=0, least=0)
    num_train: int | None = option("training prompts; all by default", default=None, least=1)
    num_eval: int | None = option("prompts of every other split; all by default", default=None, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model == "mamba" and self.filter % self.hidden:
            raise SettingsError(
                f"Mamba's --filter must be a multiple of {self.hidden}, its --hidden, got {self.filter}."
            )
        if self.model == "cnn" and self.kernel % 2 == 0:
            raise SettingsError(f"--kernel must be odd, so that both sides are seen alike, got {self.kernel}.")

    @property
    def data(self) -> dict[str, int]:
        """The arguments of the data set's builder, besides the task."""
        given = {"seed": self.data_seed, "num_train": self.num_train, "num_eval": self.num_eval}
        return {name: value for name, value in given.items() if value}
