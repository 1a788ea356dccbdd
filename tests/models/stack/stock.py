"""Stock models, checkpoints and tokenizers of the sizes of the stack models in the contract suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.models.stack import StackGPT2Config, StackRobertaConfig, StackRobertaForCausalLM
from tests.stock import TEXTS, gpt2_tokenizer

from .contract import CASES, StackLlamaForCausalLM, gpt2, llama, roberta

#: For every head, the model of transformers that it extends, and inputs with labels.
STOCK = {case.model_class: (case.stock, case.inputs) for case in CASES if case.has("loss")}

#: The tiny configuration of each class.
CONFIGS: dict[Any, Any] = {
    StackGPT2Config: gpt2,
    StackRobertaConfig: roberta,
    StackLlamaForCausalLM.config_class: llama,
}

heads = pytest.mark.parametrize("ours", STOCK, ids=lambda head: head.__name__)
#: Of these, every second one in the quick suite.
every_second = pytest.mark.parametrize(
    "ours",
    [pytest.param(head, marks=pytest.mark.slow if number % 2 else []) for number, head in enumerate(STOCK)],
    ids=lambda head: head.__name__,
)


def config(ours: Any, **options: Any) -> Any:
    if ours is StackRobertaForCausalLM:
        options["is_decoder"] = True
    return CONFIGS[ours.config_class](**options)


def new(ours: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return ours(config(ours, **options)).eval()


def stock_model(ours: Any, **options: Any) -> Any:
    """A stock model with the sizes of our configuration."""
    stock_config = ours.config_class.__bases__[-1]
    made = config(ours, **options).to_dict()
    known = {key: value for key, value in made.items() if hasattr(stock_config(), key) and key != "model_type"}
    torch.manual_seed(0)
    return STOCK[ours][0](stock_config(**{**known, **options})).eval()


def logits_of(outputs: Any) -> list[torch.Tensor]:
    return [outputs[name] for name in ("logits", "start_logits", "end_logits") if name in outputs]


TEXT = [*TEXTS[:3]]


def with_tokenizer(ours: Any, stock_tokenizers: dict[str, Any], folder: Path, **options: Any) -> tuple[Any, Any]:
    """A stack model from a stock checkpoint of the tokenizer's size, and the tokenizer; both from their folder."""
    tokenizer = stock_tokenizers["GPT2Tokenizer" if "GPT2" in ours.__name__ else "RobertaTokenizer"]
    stock_config = ours.config_class.__bases__[-1]
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 64}
    tokens = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    torch.manual_seed(0)
    STOCK[ours][0](stock_config(vocab_size=len(tokenizer), **sizes, **tokens, **options)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return ours.from_pretrained(folder), tokenizer


def stock_folder(folder: Path, *, n_positions: int = 64) -> Path:
    """A stock GPT-2 with new weights and its tokenizer, as they lie on the Hub: no BOS before a text, no padding."""
    tokenizer = gpt2_tokenizer()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": n_positions}
    special = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id")}
    # So large that the most probable token depends on the text.
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), initializer_range=0.2, **sizes, **special)).save_pretrained(
        folder
    )
    return folder
