"""The settings of a language model's training: the paper's, and those that a laptop's processor does in minutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine import Settings, SettingsError, axis, fixed, option
from ..engine.paper import Paper
from ..engine.settings import By

PAPER = Paper(Path(__file__).with_name("paper.json"))
OBJECTIVES = ("mlm", "clm")
STARTS = ("scratch", "pretrained", "checkpoint", "pretraining")
FORMS = ("vanilla", "stack", "gated", "between")
STACK_OPTIONS = ("multi_pop", "stack_actions_from", "stack_actions_start")
DECODERS = ("gpt2", "llama", "qwen3")


def _rate(clm: float, mlm: float, finetuning_share: float) -> Callable[[Mapping[str, Any]], float]:
    """The learning rate of an objective, and for models that begin with trained weights a share of it."""

    def rate(given: Mapping[str, Any]) -> float:
        share = finetuning_share if given["start"] in ("pretrained", "checkpoint") else 1.0
        return {"clm": clm, "mlm": mlm}[given["objective"]] * share

    return rate


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """A run: an objective, a start, a form, a seed, and how the model is made and trained (App. B.2)."""

    PRESETS = {
        "paper": {
            "layers": 12,
            "hidden": 768,
            "heads": 12,
            "learning_rate": _rate(clm=2e-5, mlm=2e-5, finetuning_share=1.0),
            "warmup": 0.0,
            "batch_size": 32,
            "epochs": 100,
        },
        "cpu": {  # reduced in everything
            "layers": 4,
            "hidden": 128,
            "heads": 4,
            # RoBERTa normalizes after its sub-layers and needs a lower learning rate than GPT-2.
            "learning_rate": _rate(clm=2e-3, mlm=6e-4, finetuning_share=0.25),
            "warmup": 0.1,
            "batch_size": 4,
            "epochs": 3,
        },
        "nested": {  # documents of hf_mech/nested_text; a minute of one core a run
            "layers": 2,
            "hidden": 64,
            "heads": 4,
            "decoder": By("objective", {"clm": "llama"}, other="gpt2"),
            "learning_rate": _rate(clm=4e-3, mlm=6e-4, finetuning_share=0.25),
            "warmup": 0.1,
            "batch_size": 16,
            "epochs": 1,
        },
    }

    objective: str = axis("mlm: RoBERTa; clm: GPT-2", OBJECTIVES, default=OBJECTIVES)
    start: str = fixed(
        "scratch; pretraining: a stock vanilla model on the corpus's pretraining part; pretrained: from its weights; "
        "checkpoint: from any stock or stack checkpoint"
    )
    form: str = fixed(
        "vanilla, stack, gated: a stack behind a learned gate, or between: stacks of another kind between the layers"
    )
    seed: int = fixed("of weights, order, masks and dropout")
    data: str = fixed("digest of the prepared data")
    checkpoint: str | None = fixed(
        "for `pretrained` the name of the pretraining run, for `checkpoint` a path or a name", default=None
    )
    layers: int = option("layers of the model", least=1)
    hidden: int = option("width of the model; the feed-forward layers have four times as much", least=1)
    heads: int = option("attention heads", least=1)
    learning_rate: float = option(
        "AdamW's learning rate after --warmup; it falls linearly to zero; lower for mlm and for trained weights",
        least=0,
    )
    warmup: float = option("share of the steps over which the learning rate rises", least=0, most=1)
    batch_size: int = option("blocks a step", least=1)
    epochs: int = option("epochs at most", least=1)
    patience: int = option("stop after so many epochs without a better validation loss", default=5, least=1)
    multi_pop: int = option("pops in one step at most; 1: the paper", default=1, least=1)
    stack_actions_from: str = option(
        "what the stack's actions depend on; hidden: the paper", known=("hidden", "layer_input"), default="hidden"
    )
    stack_actions_start: str = option(
        "how the stack's actions begin; random: the paper", known=("random", "even"), default="random"
    )
    decoder: str = option("family of the causal models; gpt2: the paper", known=DECODERS, default="gpt2")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decoder != "gpt2" and (self.objective != "clm" or self.start != "scratch"):
            raise SettingsError(
                f"--decoder {self.decoder} makes new causal models: it needs --objective clm, without --pretrain and "
                f"--model_name_or_path, got {self.objective}, {self.start}."
            )
        if self.form == "between" and self.decoder == "gpt2":
            raise SettingsError("--use_stack between needs --decoder llama or qwen3; the preset `nested` has it.")

    @property
    def stack(self) -> dict[str, Any]:
        """The options of the stack besides its form."""
        return {name: getattr(self, name) for name in STACK_OPTIONS}

    @property
    def labels(self) -> list[str]:
        return [self.objective, self.start, self.form]

    @property
    def name(self) -> str:
        return f"{self.data}/{super().name}"


@dataclass(frozen=True, kw_only=True)
class Data(Settings):
    """How a corpus is prepared; all runs of a command share it."""

    PRESETS = {
        "paper": {"vocabulary": 50_265},
        "cpu": {
            "vocabulary": 2_048,
            "max_train_characters": 600_000,
            "max_pretraining_characters": 2_000_000,
            "max_evaluation_blocks": 256,
        },
        "nested": {"vocabulary": None, "max_evaluation_blocks": 400},
    }

    vocabulary: int | None = option(
        "size of the tokenizer that is trained where no checkpoint brings one; none: the words between spaces are the "
        "tokens, and every document is a row",
        least=5,
    )
    max_train_characters: int | None = option("characters of the training text, or all", default=None, least=1)
    max_pretraining_characters: int | None = option("characters of the pretraining text, or all", default=None, least=1)
    max_evaluation_blocks: int | None = option("blocks of validation and of test, or all", default=None, least=1)
