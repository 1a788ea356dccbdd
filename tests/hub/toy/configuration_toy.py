"""The toy family's configuration."""

from huggingface_hub.dataclasses import strict
from transformers.configuration_utils import PreTrainedConfig


@strict
class ToyConfig(PreTrainedConfig):
    """Two sizes."""

    model_type = "toy"
    _auto_class = "AutoConfig"

    vocab_size: int = 11
    hidden_size: int = 4
