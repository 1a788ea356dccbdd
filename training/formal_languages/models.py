"""The model of a run: the stack transformer, the same without its stack, or a recurrent baseline."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save_model as save_weights
from torch import nn
from transformers import PreTrainedModel

from hf_mech.hub.checkpoint import load_checkpoint
from hf_mech.languages import formal_language_tokenizer
from hf_mech.models.stack import StackRobertaConfig, StackRobertaForCausalLM, StackRobertaForMaskedLM
from hf_mech.probing.baselines import FormalRNN

from .settings import TRANSFORMERS, Run

_POSITIONS = 512
"""More than the longest text of the score has: 100 symbols, their answer, and the special tokens. Models without
learned positions read longer ones, too."""


def make_model(run: Run) -> nn.Module:
    """The untrained model; its weights come from torch's random numbers.

    The paper's transformer (§4.2, App. B.1): d 64, 8 heads, feed-forward 256 with ReLU, layer norm after each
    sub-layer, embedding and output layer apart. `mlm` sees the whole text, `alm` the past alone.
    """
    vocabulary = len(formal_language_tokenizer(run.task))
    if run.model not in TRANSFORMERS:
        return FormalRNN(vocabulary, use_stack=run.model == "stack_rnn")
    causal = run.layout == "alm"
    config = StackRobertaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        num_hidden_layers=run.num_hidden_layers,
        num_attention_heads=8,
        intermediate_size=256,
        hidden_act="relu",
        hidden_dropout_prob=run.dropout,
        attention_probs_dropout_prob=run.attention_dropout,
        initializer_range=run.initializer_range,
        max_position_embeddings=_POSITIONS,
        type_vocab_size=1,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=None,
        tie_word_embeddings=False,
        is_decoder=causal,
        use_cache=False,  # nothing is generated while training
        use_stack=run.model != "vanilla",
        stack_values="recurrent" if run.model == "recurrent_stack" else "hidden",
        multi_pop=run.multi_pop,
        stack_gate=run.stack_gate,
        stack_actions_from=run.stack_actions_from,
        position_embedding_type=run.encoding,
        stack_bottom="bos_token",  # as in the paper
    )
    return (StackRobertaForCausalLM if causal else StackRobertaForMaskedLM)(config)


def save_model(model: nn.Module, run: Run, folder: Path) -> None:
    """Saves a trained model: a transformer with its tokenizer, of a recurrent baseline the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    model.eval()
    if isinstance(model, PreTrainedModel):
        model.config.use_cache = run.layout == "alm"
        model.save_pretrained(folder)
        formal_language_tokenizer(run.task).save_pretrained(folder)
    else:
        save_weights(model, str(folder / "model.safetensors"))


def load_model(folder: Path) -> PreTrainedModel:
    """The transformer that [`save_model`] saved, in evaluation mode."""
    return load_checkpoint(folder).eval()
