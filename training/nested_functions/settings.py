"""The settings: the compiled program has none; GPT-2 has those of its size and training."""

from __future__ import annotations

from dataclasses import dataclass

from hf_mech.programs.nested_functions.calls import VOCABULARIES

from ..engine import SettingsError, axis, fixed, option
from ..engine.own_data import OwnData
from ..engine.settings import SCHEDULERS

MODELS = ("dat", "gpt2")
"""The program `nested_functions` compiled into attention, and a learned model."""


@dataclass(frozen=True, kw_only=True)
class Run(OwnData):
    """A run: a model, a configuration, a seed, and how GPT-2 is built and trained."""

    PRESETS = {
        "cpu": {  # half an hour of one core
            "steps": 6_000,
            "batch_size": 64,
            "layers": 8,  # with 4, two arguments were not told apart
            "hidden": 96,
            "heads": 3,
            "inner": 96,
            "activation_function": "relu",
            "initialization": "orthogonal",
            "optimizer": "muon",
            "weight_decay": 0.01,
            "beta2": 0.98,
            "warmup_steps": 100,
            "eval_prompts": 200,
        },
        "full": {  # for a GPU
            "steps": 100_000,
            "batch_size": 256,
            "layers": 8,
            "hidden": 512,
            "heads": 8,
            "inner": 2_048,
            "eval_prompts": 0,
        },
    }

    COLUMNS = {"prompt": str, "completion": str}
    GENERATED = ("config", "data_seed", "num_train")

    model: str = axis("the models", MODELS)
    config: str = axis("configurations of hf_mech/nested_functions", VOCABULARIES, default=["small"])
    seed: int = fixed("of the weights, and of the order of the training prompts")
    steps: int = option("training steps of GPT-2", least=1)
    batch_size: int = option("prompts a step", least=1)
    layers: int = option("layers of GPT-2", least=1)
    hidden: int = option("width of embeddings and hidden states", least=1)
    heads: int = option("attention heads", least=1)
    inner: int = option("width of the feed-forward layers", least=1)
    activation_function: str = option("of the feed-forward layers", default="gelu_new", known=("gelu_new", "relu"))
    initialization: str = option(
        "gpt2: transformers' own; orthogonal: of unit gain, token and position rows orthogonal to each other",
        default="gpt2",
        known=("gpt2", "orthogonal"),
    )
    optimizer: str = option(
        "muon: Muon for the blocks' matrices, AdamW for the rest", default="adamw", known=("adamw", "muon")
    )
    learning_rate: float = option("AdamW's learning rate", default=1e-3, least=0)
    muon_learning_rate: float = option("Muon's learning rate", default=9e-3, least=0)
    beta2: float = option("AdamW's second beta; the first is 0.9", default=0.999, least=0, most=1)
    weight_decay: float = option("weight decay of both", default=0.0, least=0)
    scheduler: str = option("the schedule of the learning rate", default="cosine", known=SCHEDULERS)
    warmup_steps: int = option("steps over which the schedule warms up", default=200, least=0)
    max_grad_norm: float = option("gradients are clipped to this norm", default=1.0, least=0)
    eval_prompts: int = option("prompts of each split that are measured, its first ones; 0: all", least=0)
    mixed_precision: str = option("of the arithmetic", default="no", known=("no", "bf16"))
    data_seed: int = option("seed of the data set", default=0, least=0)
    num_train: int | None = option("training prompts; all by default", default=None, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own_data and self.model != "gpt2":
            raise SettingsError("Your data trains gpt2; the compiled program is not trained: --model gpt2.")
