"""Configuration of the Belief State Transformer."""

from __future__ import annotations

from typing import Any

from transformers import CONFIG_MAPPING, AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from .belief_state_errors import BeliefStateError
from .configs import strict_config

#: The plain arguments' names in any encoder's configuration, and the paper's values (Appendix C).
SIZES = {
    "vocab_size": ("vocab_size", 50257),
    "n_positions": ("max_position_embeddings", 1024),
    "n_embd": ("hidden_size", 768),
    "n_layer": ("num_hidden_layers", 6),
    "n_head": ("num_attention_heads", 8),
}


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
        encoder_config (`PreTrainedConfig` or `dict`, *optional*): the configuration of the forward encoder: any
            decoder-only model of `AutoModel`; a `dict` needs its `model_type`. Without it, the encoder has GPT-2's
            blocks, as in the paper, from the arguments below.
        backward_encoder_config (`PreTrainedConfig` or `dict`, *optional*): that of the backward encoder, of the same
            hidden size and vocabulary. Defaults to `encoder_config`.
        vocab_size (`int`, *optional*, defaults to 50257), n_positions (`int`, *optional*, defaults to 1024), n_embd
            (`int`, *optional*, defaults to 768), n_layer (`int`, *optional*, defaults to 6), n_head (`int`, *optional*,
            defaults to 8): as in GPT-2. With `encoder_config`, they are the encoder's.
        n_inner (`int`, *optional*), activation_function (`str`, *optional*): as in GPT-2. The paper has
            `n_inner = n_embd` on star graphs.
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
        BeliefStateError: invalid sizes, an unknown encoder, encoders that do not fit, or no end token.
    """

    model_type = "belief_state"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package
    sub_configs = {"encoder_config": AutoConfig, "backward_encoder_config": AutoConfig}
    attribute_map = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    keys_to_ignore_at_inference = ["past_key_values"]

    encoder_config: dict[str, Any] | PreTrainedConfig | None = None
    backward_encoder_config: dict[str, Any] | PreTrainedConfig | None = None
    vocab_size: int | None = None
    n_positions: int | None = None
    n_embd: int | None = None
    n_layer: int | None = None
    n_head: int | None = None
    n_inner: int | None = None
    activation_function: str | None = None
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
            sizes = {name: self._given(name, value) for name, (_, value) in SIZES.items()}
            special = {name: getattr(self, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
            block = {"n_inner": self.n_inner, "activation_function": self.activation_function or "gelu_new"}
            start = {"initializer_range": self.initializer_range}
            self.encoder_config = {"model_type": "gpt2", **sizes, **special, **block, **start}
        encoder = self.encoder_config = _made("encoder_config", self.encoder_config)
        backward = encoder.to_dict() if self.backward_encoder_config is None else self.backward_encoder_config
        self.backward_encoder_config = _made("backward_encoder_config", backward)
        for name, (standard, _) in SIZES.items():
            found = getattr(encoder, standard, None)
            if self._given(name, found) != found:
                raise BeliefStateError(
                    f"{name} is {getattr(self, name)}, but encoder_config has {standard}={found}; give one of them."
                )
            setattr(self, name, found)
        super().__post_init__(**kwargs)

    def _given(self, name: str, otherwise: Any) -> Any:
        value = getattr(self, name)
        return otherwise if value is None else value

    def validate_architecture(self):
        """Refuses invalid values before any work starts."""
        if not isinstance(self.eos_token_id, int):
            raise BeliefStateError(
                f"eos_token_id must be one token, the empty suffix, got {self.eos_token_id!r}; name the token that "
                "ends a text."
            )
        for name in ("hidden_size", "vocab_size"):
            ahead, back = (getattr(part, name) for part in (self.encoder_config, self.backward_encoder_config))
            if ahead != back:
                raise BeliefStateError(
                    f"The encoders must have the same {name}, got {ahead} and, backward, {back}; they share the token "
                    "embedding."
                )

    @property
    def end_token(self) -> int:
        """The id of the end token, the empty suffix."""
        assert isinstance(self.eos_token_id, int)  # validate_architecture
        return self.eos_token_id


def _made(name: str, given: Any) -> PreTrainedConfig:
    if isinstance(given, PreTrainedConfig):
        return given
    kind = given.get("model_type")
    if kind not in CONFIG_MAPPING:
        raise BeliefStateError(
            f"{name} must be the configuration of a decoder-only model with its model_type, got {kind!r}; for example "
            "GPT2Config(...)."
        )
    return CONFIG_MAPPING[kind](**{key: value for key, value in given.items() if key != "model_type"})


__all__ = ["BeliefStateConfig"]
