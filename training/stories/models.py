"""The two models of Section 5, with new weights."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.optim import Optimizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel, PreTrainedTokenizerFast

from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM

from ..engine.optimizers import chosen_optimizer
from ..engine.weights import begin_copying
from .settings import Run

CLASSES: dict[str, type[PreTrainedModel]] = {"bst": BeliefStateForCausalLM, "fim": GPT2LMHeadModel}


def make_model(run: Run, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """A model of the run's size. BST has `least_gap` 1: where prefix and suffix meet, both heads say EOS."""
    copying = run.initialization == "copying"
    special = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    sizes: dict[str, Any] = {"n_layer": run.layers, "n_embd": run.hidden, "n_head": run.heads, "n_inner": run.inner}
    # GPT-2's function in one operation instead of eight, which took a third of a step of a CPU.
    sizes |= {"vocab_size": len(tokenizer), "activation_function": "gelu_pytorch_tanh", **special}
    blocks = sizes | dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), run.dropout)
    model: PreTrainedModel
    if run.model == "fim":
        longest = run.max_tokens + 4  # the sentinels
        # First weights that copy have an output layer of the embeddings on a smaller scale, so it is not tied.
        model = GPT2LMHeadModel(GPT2Config(n_positions=longest, tie_word_embeddings=not copying, **blocks))
        model.loss_type = "ForCausalLM"  # transformers finds it by a class's name, but not for this one
    else:
        encoder = GPT2Config(n_positions=run.max_tokens + 1, **blocks)
        head = {"head_width": run.head_width, "least_gap": 1, "pairs_per_sequence": run.pairs_per_sequence or None}
        config = BeliefStateConfig(encoder_config=encoder, n_positions=run.max_tokens + 1, **sizes, **head)
        model = BeliefStateForCausalLM(config)
    if copying:
        begin_copying(model)
    return model


def make_optimizer(run: Run, model: nn.Module) -> Optimizer:
    """The run's optimizer for a model's parameters."""
    return chosen_optimizer(run, model)
