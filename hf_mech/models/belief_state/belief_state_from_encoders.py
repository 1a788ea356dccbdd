"""Belief state models whose encoders come from stock checkpoints."""

from __future__ import annotations

import os
from typing import Any, Self

import torch
from transformers import AutoConfig, AutoModel
from transformers.modeling_utils import PreTrainedModel

from .belief_state_encoders import check_class, check_kind
from .belief_state_errors import EncoderError
from .belief_state_lora import AdaptersTrainNewHeads

#: The parts that a stock checkpoint of the forward encoder alone does not give.
NEW = ("text_head", "backward_encoder")


class LoadsEncoders(AdaptersTrainNewHeads):
    """`from_encoder_pretrained`, for a model with two encoders."""

    @classmethod
    def from_encoder_pretrained(
        cls,
        encoder: str | os.PathLike[str],
        backward: str | os.PathLike[str] | None = None,
        encoder_kwargs: dict[str, Any] | None = None,
        dtype: str | torch.dtype | None = None,
        **config: Any,
    ) -> Self:
        """A model whose forward encoder and token embedding are those of a stock checkpoint.

        The text head is new, so the model needs training. Adapters of peft train and save it whole, too.

        Args:
            encoder: a checkpoint of a decoder-only model, base or with a language modelling head: a folder, or a name
                on the Hub. The head is left out.
            backward: the backward encoder's checkpoint, which may be the same; its own token embedding is left out.
                Without it, the backward encoder is new, with the forward encoder's configuration.
            encoder_kwargs: arguments of `AutoModel.from_pretrained` for both, such as `revision`.
            dtype: that of the whole model, as for `AutoModel.from_pretrained`; defaults to the checkpoint's.
            config: arguments of [`BeliefStateConfig`]; `eos_token_id` if the checkpoint has none or several.

        Raises:
            EncoderError: a checkpoint of a model that cannot be an encoder, or weights that are missing in it.
            BeliefStateError: an invalid configuration.

        Example:

        ```python
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> from hf_mech.models.belief_state import BeliefStateForCausalLM

        >>> sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "vocab_size": 20, "bos_token_id": 0, "eos_token_id": 1}
        >>> GPT2LMHeadModel(GPT2Config(**sizes)).save_pretrained("runs/stock-gpt2")
        >>> model = BeliefStateForCausalLM.from_encoder_pretrained("runs/stock-gpt2")
        >>> model.config.encoder_config.model_type
        'gpt2'

        ```
        """
        options = dict(encoder_kwargs or {}) if dtype is None else {**(encoder_kwargs or {}), "dtype": dtype}
        ahead = _loaded(encoder, "encoder", options)
        back = None if backward is None else _loaded(backward, "backward", options)
        made = cls.config_class(  # type: ignore[attr-defined]
            encoder_config=ahead.config, backward_encoder_config=None if back is None else back.config, **config
        )
        model = cls(made).to(ahead.dtype)  # type: ignore[call-arg, attr-defined]
        base = getattr(model, model.base_model_prefix, model)
        with torch.no_grad():
            base.embed_tokens.weight.copy_(ahead.get_input_embeddings().weight)
        for ours, stock in ((base.forward_encoder, ahead), (base.backward_encoder, back)):
            if ours is not None and stock is not None:
                stock.set_input_embeddings(None)
                ours.load_state_dict(stock.state_dict())
        model.new_parts = ("text_head",) if back is not None or not made.use_backward else NEW
        return model.eval()


def _loaded(checkpoint: str | os.PathLike[str], name: str, options: dict[str, Any]) -> PreTrainedModel:
    reading = {key: value for key, value in options.items() if key not in ("dtype", "device_map")}
    check_kind(AutoConfig.from_pretrained(checkpoint, **reading), name)
    encoder, info = AutoModel.from_pretrained(checkpoint, output_loading_info=True, **options)
    check_class(encoder, name)
    if info["missing_keys"]:
        raise EncoderError(
            f"{checkpoint} lacks the weights {sorted(info['missing_keys'])[:3]}, {len(info['missing_keys'])} in all; "
            "give a checkpoint of the whole model."
        )
    return encoder
