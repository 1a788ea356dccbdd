"""Runs and models so small that they take a second or less."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerFast

from training.templatic.models import make_model
from training.templatic.settings import Run

MODELS = ("transformer", "nano_gpt", "nano_gpt_attn_only", "cnn", "lstm_attn", "mamba")
"""Those of Table 3, in its order."""
ENCODER_DECODERS = ("transformer", "cnn", "lstm_attn")
SMALL: dict[str, Any] = {
    **{"steps": 12, "batch_size": 4, "layers": 1, "hidden": 16, "filter": 16, "state": 4, "warmup_steps": 2},
    **{"eval_prompts": 3, "num_train": 200, "num_eval": 8},
}


def run_of(model: str = "nano_gpt", *, preset: str = "cpu", seed: int = 0, **overrides: Any) -> Run:
    """A run on the paper's task, of the preset's size."""
    return Run.of(preset, overrides, task="1_shot_rlw", model=model, seed=seed)


def small(model: str = "nano_gpt", **overrides: Any) -> Run:
    return run_of(model, **SMALL | overrides)


def made(tokenizer: PreTrainedTokenizerFast, model: str, **overrides: Any) -> nn.Module:
    """An untrained model of two layers, in evaluation mode."""
    torch.manual_seed(0)
    return make_model(small(model, **{"layers": 2, "initializer_range": 0.5} | overrides), tokenizer).eval()
