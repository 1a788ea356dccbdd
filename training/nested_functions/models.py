"""The untrained GPT-2 of a run, and its optimizer."""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from ..engine.optimizers import chosen_optimizer
from ..engine.weights import begin_orthogonal
from .settings import Run


def make_model(run: Run, tokenizer: PreTrainedTokenizerFast, positions: int) -> GPT2LMHeadModel:
    """GPT-2; its weights come from torch's random numbers.

    Args:
        run: its settings.
        tokenizer: of the words.
        positions: words of the longest prompt with its completion, and their marks.
    """
    orthogonal = run.initialization == "orthogonal"
    # Orthogonal rows are large, and so would be the first logits of an output layer that is tied to them.
    own = {"initializer_range": run.hidden**-0.5, "tie_word_embeddings": False} if orthogonal else {}
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=positions,
        n_layer=run.layers,
        n_embd=run.hidden,
        n_head=run.heads,
        n_inner=run.inner,
        activation_function=run.activation_function,
        loss_type="ForCausalLM",  # the default, named: transformers warns of a config without it
        **dict.fromkeys(("embd_pdrop", "resid_pdrop", "attn_pdrop"), 0.0),
        **{f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")},
        **own,
    )
    model = GPT2LMHeadModel(config)
    if orthogonal:
        begin_orthogonal(model, model.transformer.wpe.weight)
    return model


def make_optimizer(run: Run, model: nn.Module) -> Optimizer:
    """The run's optimizer for a model's parameters."""
    return chosen_optimizer(run, model, betas=(0.9, run.beta2), fused=True)
