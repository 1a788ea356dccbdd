"""The model of a run: GPT-2 or RoBERTa, vanilla, with the stack, or with the gated stack; new or from a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    GPT2LMHeadModel,
    LlamaConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen3Config,
    RobertaForMaskedLM,
)

from hf_mech.languages.corpora import BLOCK
from hf_mech.models.stack import (
    StackGPT2Config,
    StackGPT2ForCausalLM,
    StackRobertaConfig,
    StackRobertaForMaskedLM,
    add_stack,
)
from hf_mech.probing.stacks_between import add_stacks_between

from ..engine import SettingsError

FORMS: dict[str, dict[str, bool]] = {
    "vanilla": {"use_stack": False},
    "stack": {"use_stack": True, "stack_gate": False},
    "gated": {"use_stack": True, "stack_gate": True},
}
"""`vanilla`: the stock model; `stack`: the paper's; `gated`: its stack behind a learned gate that begins at zero."""
DECODERS: dict[str, Any] = {"llama": LlamaConfig, "qwen3": Qwen3Config}
"""Stock decoders besides GPT-2, which get their stacks by `add_stack`."""


@dataclass(frozen=True)
class Family:
    """The classes of an objective: ours, the stock one, and the one that loads either."""

    config: Any
    model: Any
    stock: Any
    auto: Any


FAMILIES = {
    "clm": Family(StackGPT2Config, StackGPT2ForCausalLM, GPT2LMHeadModel, AutoModelForCausalLM),
    "mlm": Family(StackRobertaConfig, StackRobertaForMaskedLM, RobertaForMaskedLM, AutoModelForMaskedLM),
}


def new_model(
    objective: str,
    form: str,
    tokenizer: PreTrainedTokenizerBase,
    *,
    layers: int,
    hidden: int,
    heads: int,
    stock: bool = False,
    decoder: str = "gpt2",
    multi_pop: int = 1,
    stack_actions_from: str = "hidden",
    stack_actions_start: str = "random",
) -> PreTrainedModel:
    """A model with new weights; `stock` makes it of transformers' own class, as a downloaded checkpoint would be."""
    stack = {
        "multi_pop": multi_pop,
        "stack_actions_from": stack_actions_from,
        "stack_actions_start": stack_actions_start,
    }
    family = FAMILIES[objective]
    special = {name: getattr(tokenizer, name) for name in ("bos_token_id", "pad_token_id", "eos_token_id")}
    if decoder != "gpt2":
        config = DECODERS[decoder](
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            intermediate_size=4 * hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            head_dim=hidden // heads,
            max_position_embeddings=BLOCK,
            tie_word_embeddings=True,
            **special,
        )
        model = AutoModelForCausalLM.from_config(config)
        if form == "between":
            return add_stacks_between(model)
        if form == "vanilla":
            return model
        own: dict[str, Any] = {name.removeprefix("stack_"): value for name, value in stack.items()}
        return add_stack(model, gate=form == "gated", bottom="bos_token", **own)
    options: dict[str, Any] = {} if stock else {**FORMS[form], **stack, "stack_bottom": "bos_token"}
    if objective == "clm":
        sizes = {"n_layer": layers, "n_embd": hidden, "n_head": heads, "n_positions": BLOCK}
    else:
        sizes = {
            "num_hidden_layers": layers,
            "hidden_size": hidden,
            "num_attention_heads": heads,
            "intermediate_size": 4 * hidden,
            "max_position_embeddings": BLOCK + tokenizer.pad_token_id + 1,  # RoBERTa counts from the padding's id
            "type_vocab_size": 1,
        }
    model_class = family.stock if stock else family.model
    config_class = model_class.config_class if stock else family.config
    return model_class(config_class(vocab_size=len(tokenizer), **sizes, **special, **options))


def model_from_checkpoint(
    objective: str, form: str, checkpoint: str, tokenizer: PreTrainedTokenizerBase, **stack: Any
) -> PreTrainedModel:
    """A stock or stack checkpoint in the form asked for; only the stack's own weights can be new.

    Args:
        objective, form, checkpoint, tokenizer: of the run.
        stack: `multi_pop`, `stack_actions_from` and `stack_actions_start`.

    Raises:
        SettingsError: if the tokenizer has more tokens than the checkpoint's embedding, or another BOS.
    """
    family = FAMILIES[objective]
    model = family.model.from_pretrained(checkpoint, **FORMS[form], **stack, stack_bottom="bos_token")
    config = model.config
    if len(tokenizer) > config.vocab_size or tokenizer.bos_token_id != config.bos_token_id:
        raise SettingsError(
            f"{checkpoint} has {config.vocab_size} tokens with BOS {config.bos_token_id}; the tokenizer has "
            f"{len(tokenizer)} with BOS {tokenizer.bos_token_id}. Take the checkpoint's own tokenizer."
        )
    return model


def logits_difference(objective: str, model: PreTrainedModel, checkpoint: str, input_ids: Tensor) -> float:
    """The largest difference between the model's logits and those of the checkpoint as it stands.

    Args:
        input_ids: [batch, length], each row beginning with BOS.
    """
    original = FAMILIES[objective].auto.from_pretrained(checkpoint).eval()
    was_training = model.training
    model.eval()
    with torch.no_grad():
        input_ids = input_ids.to(model.device)
        difference = (model(input_ids).logits - original.to(model.device)(input_ids).logits).abs().max()
    model.train(was_training)
    return float(difference)
