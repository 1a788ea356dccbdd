"""Activation checkpointing under the two names that it has had in transformers 5."""

from transformers.modeling_utils import PreTrainedModel


def enable_checkpointing(model: PreTrainedModel) -> None:
    """Recomputes activations in the backward pass from now on."""
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable()
    else:
        model.gradient_checkpointing_enable()
