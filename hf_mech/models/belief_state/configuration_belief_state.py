"""Configuration of the Belief State Transformer."""

from __future__ import annotations

from typing import Any

from transformers import CONFIG_MAPPING
from transformers.configuration_utils import PreTrainedConfig

from .belief_state_errors import BeliefStateError
from .configs import strict_config


@strict_config(
    BeliefStateError,
    vocab_size=(2, 100_000_000),
    n_positions=(1, 100_000_000),
    n_embd=(1, 1_000_000),
    n_layer=(1, 1_000),
    n_head=(1, 100_000),
    n_inner=(1, 10_000_000),
    head_width=(1, 1_000_000),
    head_layers=(2, 100),
    least_gap=(1, 2),
    block_size=(1, 100_000_000),
)
class BeliefStateConfig(PreTrainedConfig):
    r"""Sizes of the two encoders and of the text head.

    Args:
        encoder_config (`dict`, *optional*): the configuration of both encoders, of any decoder-only model that
            `AutoModel` makes, with its `model_type`. Without it, they are GPT-2's blocks, as in the paper, from the
            arguments below.
        vocab_size (`int`, *optional*, defaults to 50257), n_positions (`int`, *optional*, defaults to 1024), n_embd
            (`int`, *optional*, defaults to 768), n_layer (`int`, *optional*, defaults to 6), n_head (`int`, *optional*,
            defaults to 8), n_inner (`int`, *optional*): as in GPT-2. The paper has `n_inner = n_embd` on star graphs.
        head_width (`int`, *optional*, defaults to 512), head_layers (`int`, *optional*, defaults to 3): the text head,
            an MLP with ReLU (Appendix D.1).
        predict_previous (`bool`, *optional*, defaults to `True`): the previous token, T_p. Without
            it: "Belief w/o Prev".
        use_backward (`bool`, *optional*, defaults to `True`): the backward encoder. Without it: "Belief w/o Backward".
        least_gap (`int`, *optional*, defaults to 2): the least distance of a suffix's first token from the last
            token of the prefix. 2 is the paper's; with 1, prefix and suffix may meet, and both heads then say
            the end token.
        block_size (`int`, *optional*, defaults to 16384): the most pairs whose logits are in memory at once.
        eos_token_id (`int`, *optional*, defaults to 50256): the end token. It is the empty suffix, so there
            must be one.

    Raises:
        BeliefStateError: invalid sizes, an unknown encoder, or no end token.
    """

    model_type = "belief_state"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package
    attribute_map = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    keys_to_ignore_at_inference = ["past_key_values"]

    encoder_config: dict[str, Any] | None = None
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 6
    n_head: int = 8
    n_inner: int | None = None
    head_width: int = 512
    head_layers: int = 3
    predict_previous: bool = True
    use_backward: bool = True
    least_gap: int = 2
    block_size: int = 16384
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    pad_token_id: int | None = None
    use_cache: bool = True
    initializer_range: float = 0.02
    tie_word_embeddings: bool = False

    def __post_init__(self, **kwargs):
        if self.encoder_config is None:
            self.encoder_config = {
                "model_type": "gpt2",
                "n_positions": self.n_positions,
                "n_embd": self.n_embd,
                "n_layer": self.n_layer,
                "n_head": self.n_head,
                "n_inner": self.n_inner,
                "vocab_size": self.vocab_size,
                "bos_token_id": self.bos_token_id,
                "eos_token_id": self.eos_token_id,
                "pad_token_id": self.pad_token_id,
            }
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuses invalid values before any work starts."""
        if not isinstance(self.eos_token_id, int):
            raise BeliefStateError(
                f"eos_token_id must be one token, the empty suffix, got {self.eos_token_id!r}; name the token that "
                "ends a text."
            )
        kind = (self.encoder_config or {}).get("model_type")
        if kind not in CONFIG_MAPPING:
            raise BeliefStateError(
                f"encoder_config must be the configuration of a decoder-only model with its model_type, got {kind!r}; "
                "for example GPT2Config(...).to_dict()."
            )

    @property
    def end_token(self) -> int:
        """The id of the end token, the empty suffix."""
        assert isinstance(self.eos_token_id, int)  # validate_architecture
        return self.eos_token_id

    @property
    def encoder(self) -> PreTrainedConfig:
        """The configuration of both encoders."""
        found = {key: value for key, value in (self.encoder_config or {}).items() if key != "model_type"}
        return CONFIG_MAPPING[(self.encoder_config or {})["model_type"]](**found)


__all__ = ["BeliefStateConfig"]
