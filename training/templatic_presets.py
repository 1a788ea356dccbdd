"""The settings of the learned baselines of Table 3: the paper's, and a reduced one for one core and an hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MODELS = ("transformer", "nano_gpt", "nano_gpt_attn_only", "cnn", "lstm_attn", "mamba")
"""The six models of Table 3, in its order and by its names."""

BY_MODEL = ("steps", "batch_size", "layers")
"""What a preset has for each model."""


@dataclass(frozen=True)
class Preset:
    """How a model is built, trained and measured (App. M, Tables 11 and 12).

    Attributes:
        steps, batch_size, layers: by model. Models with an encoder and a decoder have `layers` in each.
        hidden: width of embeddings and hidden states.
        filter: Table 11's: width of the feed-forward layers, and Mamba's inner width.
        heads: of the transformers.
        state: size of Mamba's state.
        kernel: width of the CNN's convolutions. The paper is silent; this is the published ConvS2S's usual one.
        initializer_range: standard deviation of the new weights of the transformers and of all embeddings but Mamba's.
            The paper is silent; GPT-2's is 0.02.
        learning_rate, weight_decay: AdamW's, which without decay is Adam.
        scheduler, warmup_steps: as `transformers.get_scheduler` takes them; the paper names none.
        max_grad_norm: gradients are clipped to this norm. The paper is silent.
        dropout: of the hidden states.
        eval_prompts: prompts of each split that are measured, drawn with `eval_seed`; 0: all.
    """

    steps: Mapping[str, int]
    batch_size: Mapping[str, int]
    layers: Mapping[str, int]
    hidden: int = 512
    filter: int = 512
    heads: int = 1
    state: int = 16
    kernel: int = 3
    initializer_range: float = 0.02
    learning_rate: float = 1e-4
    weight_decay: float = 0.0
    scheduler: str = "constant_with_warmup"
    warmup_steps: int = 0
    max_grad_norm: float = 1.0
    dropout: float = 0.0
    eval_prompts: int = 0

    def of_model(self, model: str) -> dict[str, Any]:
        """What depends on the model, by the names of `BY_MODEL`."""
        return {name: getattr(self, name)[model] for name in BY_MODEL}


def _by_model(*values: int) -> Mapping[str, int]:
    return dict(zip(MODELS, values, strict=True))


PRESETS = {
    "paper": Preset(
        steps=_by_model(*(120_000,) * 6),
        batch_size=_by_model(128, 256, 256, 128, 128, 256),
        layers=_by_model(3, 6, 6, 3, 3, 18),
    ),
    "cpu": Preset(
        steps=_by_model(4_000, 5_000, 5_000, 2_500, 3_000, 500),
        batch_size=_by_model(*(32,) * 6),
        layers=_by_model(2, 3, 3, 2, 1, 3),
        hidden=64,
        filter=64,
        initializer_range=0.1,
        learning_rate=2e-3,
        scheduler="cosine",
        warmup_steps=200,
        eval_prompts=200,
    ),
}
"""`paper`: Tables 11 and 12 to the letter. `cpu`: reduced in width, depth, batch, steps and prompts measured.

The steps of `cpu` are such that a model takes some minutes of one core; Mamba's, without kernels, cost most.
"""
