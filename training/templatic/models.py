"""The model of a run: one of the six of Table 3. Those of transformers are transformers' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_model as save_weights
from torch import Tensor, nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from hf_mech.probing.baselines import ConvolutionalSeq2Seq, LSTMWithAttention

from .settings import Run

POSITIONS = 1024
"""More than the longest text has, of any task and split."""


class NoMLP(nn.Module):
    """In the place of a block's MLP: adds nothing to the residual stream."""

    def forward(self, hidden_states: Tensor) -> Tensor:  # [batch, length, hidden]
        return torch.zeros_like(hidden_states)


class AttentionOnlyGPT2LMHeadModel(GPT2LMHeadModel):
    """GPT-2 without MLP layers, and without the layer norms before them: `nano_gpt_attn_only` of the paper.

    A checkpoint is loaded by this class's own `from_pretrained`; for transformers' GPT-2 it lacks weights.
    """

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        for block in self.transformer.h:
            block.ln_2, block.mlp = nn.Identity(), NoMLP()


def make_model(run: Run, tokenizer: PreTrainedTokenizerFast) -> nn.Module:
    """The untrained model (Table 11); its weights come from torch's random numbers."""
    ids = {"pad": tokenizer.pad_token_id, "bos": tokenizer.bos_token_id, "eos": tokenizer.eos_token_id}
    shared: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        **{f"{name}_token_id": value for name, value in ids.items()},
    }
    plain = {
        "vocab_size": len(tokenizer),
        "hidden": run.hidden,
        "layers": run.layers,
        "dropout": run.dropout,
        "initializer_range": run.initializer_range,
        **ids,
    }
    if run.model == "cnn":
        return ConvolutionalSeq2Seq(filter=run.filter, kernel=run.kernel, positions=POSITIONS, **plain)
    if run.model == "lstm_attn":
        return LSTMWithAttention(**plain)
    if run.model == "mamba":
        config = MambaConfig(
            hidden_size=run.hidden,
            expand=run.filter // run.hidden,
            num_hidden_layers=run.layers,
            state_size=run.state,
            **shared,
        )
        return MambaForCausalLM(config)
    if run.model == "transformer":
        config = BartConfig(
            d_model=run.hidden,
            encoder_layers=run.layers,
            decoder_layers=run.layers,
            encoder_attention_heads=run.heads,
            decoder_attention_heads=run.heads,
            encoder_ffn_dim=run.filter,
            decoder_ffn_dim=run.filter,
            max_position_embeddings=POSITIONS,
            dropout=run.dropout,
            attention_dropout=run.dropout,
            init_std=run.initializer_range,
            decoder_start_token_id=ids["bos"],
            forced_eos_token_id=None,
            **shared,
        )
        return BartForConditionalGeneration(config)
    config = GPT2Config(
        n_embd=run.hidden,
        n_inner=run.filter,
        n_layer=run.layers,
        n_head=run.heads,
        n_positions=POSITIONS,
        embd_pdrop=run.dropout,
        resid_pdrop=run.dropout,
        attn_pdrop=run.dropout,
        initializer_range=run.initializer_range,
        loss_type="ForCausalLM",  # which transformers finds by the class's name, but not for this one
        **shared,
    )
    return (AttentionOnlyGPT2LMHeadModel if run.model == "nano_gpt_attn_only" else GPT2LMHeadModel)(config)


def save_model(model: nn.Module, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Saves a trained model with its tokenizer: a checkpoint of transformers, or of a plain one the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model, PreTrainedModel):
        model.save_pretrained(folder)
    else:
        save_weights(model, str(folder / "model.safetensors"))
    tokenizer.save_pretrained(folder)


@torch.no_grad()
def answers(model: nn.Module, prompts: dict[str, Tensor], max_new_tokens: int) -> Tensor:
    """What the model says by greedy generation, [batch, at most max_new_tokens], padded behind the end.

    Args:
        prompts: `input_ids` and `attention_mask` [batch, length], padded as the model wants it.
    """
    if not isinstance(model, PreTrainedModel):
        plain: Any = model
        return plain.generate(**prompts, max_new_tokens=max_new_tokens)[:, 1:]
    said = model.generate(**prompts, max_new_tokens=max_new_tokens, do_sample=False, num_beams=1)
    return said[:, 1 if model.config.is_encoder_decoder else prompts["input_ids"].shape[1] :]
