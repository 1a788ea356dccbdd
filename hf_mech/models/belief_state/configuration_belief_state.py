"""Configuration of the Belief State Transformer."""

from __future__ import annotations

import copy
from typing import Any, Literal

from transformers import CONFIG_MAPPING, AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from .checkpoints import strict_config


class BeliefStateError(ValueError):
    """What the family refuses: a configuration, an encoder, a checkpoint, a batch, or a search that cannot be meant."""


#: The plain arguments: their names in any encoder's configuration, and the paper's values (Appendix C).
PLAIN: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocab_size", 50257),
    "n_positions": ("max_position_embeddings", 1024),
    "n_embd": ("hidden_size", 768),
    "n_layer": ("num_hidden_layers", 6),
    "n_head": ("num_attention_heads", 8),
    "n_inner": ("n_inner", None),
    "activation_function": ("activation_function", "gelu_new"),
    "resid_pdrop": ("resid_pdrop", 0.0),
    "embd_pdrop": ("embd_pdrop", 0.0),
    "attn_pdrop": ("attn_pdrop", 0.0),
    "initializer_range": ("initializer_range", 0.02),
}
SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id")
#: Set in the encoders' configurations too; both have the same.
FOLLOWED = {*SPECIAL, "dtype"}
SHARED = {"vocab_size", "n_embd", *FOLLOWED}
RANGES = {
    "vocab_size": (2, 100_000_000),
    "n_positions": (1, 100_000_000),
    "n_embd": (1, 1_000_000),
    "n_layer": (1, 1_000),
    "n_head": (1, 100_000),
    "n_inner": (1, 10_000_000),
}


@strict_config(
    BeliefStateError,
    **RANGES,
    head_width=(1, 1_000_000),
    head_layers=(2, 100),
    least_gap=(1, 2),
    block_size=(1, 100_000_000),
    pairs_per_sequence=(1, 100_000_000),
    resid_pdrop=(0, 1),
    embd_pdrop=(0, 1),
    attn_pdrop=(0, 1),
)
class BeliefStateConfig(PreTrainedConfig):
    r"""Sizes of the two encoders and of the text head.

    Args:
        encoder_config (`PreTrainedConfig` or `dict`, *optional*): the configuration of the forward encoder: any
            decoder-only model of `AutoModel`; a `dict` needs its `model_type`. A copy is kept. Without it, the encoder
            has GPT-2's blocks, as in the paper, from the arguments below.
        backward_encoder_config (`PreTrainedConfig` or `dict`, *optional*): that of the backward encoder, of the same
            hidden size and vocabulary. Defaults to `encoder_config`.
        vocab_size (`int`, *optional*, defaults to 50257), n_positions (`int`, *optional*, defaults to 1024), n_embd
            (`int`, *optional*, defaults to 768), n_layer (`int`, *optional*, defaults to 6), n_head (`int`, *optional*,
            defaults to 8): as in GPT-2. With `encoder_config`, they are the encoder's; an attribute that is set later
            is set in both encoders' configurations.
        n_inner (`int`, *optional*), activation_function (`str`, *optional*, defaults to `"gelu_new"`),
            initializer_range (`float`, *optional*, defaults to 0.02): as in GPT-2. The paper has `n_inner = n_embd` on
            star graphs.
        resid_pdrop (`float`, *optional*, defaults to 0.0), embd_pdrop (`float`, *optional*, defaults to 0.0),
            attn_pdrop (`float`, *optional*, defaults to 0.0): dropout, as in GPT-2. The paper names none.
        head_width (`int`, *optional*, defaults to 512), head_layers (`int`, *optional*, defaults to 3): the text head,
            an MLP with ReLU (Appendix D.1).
        predict_previous (`bool`, *optional*, defaults to `True`): the previous token, T_p. Without
            it: "Belief w/o Prev".
        use_backward (`bool`, *optional*, defaults to `True`): the backward encoder. Without it: "Belief w/o Backward".
        least_gap (`int`, *optional*, defaults to 2): the least distance of a suffix's first token from the last
            token of the prefix. 2 is the paper's; with 1, prefix and suffix may meet, and both heads then say
            the end token.
        pair_weights (`str`, *optional*): how pairs weigh in the loss. `"sequence"`: the mean over the pairs of each
            sequence, and then the mean over the sequences, in which each weighs as its trained tokens; for sequences
            of one length it is the paper's loss. `"gap"`: a weight that depends on nothing but the prefix and the
            suffix, for texts of different lengths: with `"sequence"` the model would learn the conditionals of a
            distribution with more short texts. Without it: `"gap"` if `least_gap` is 1, else `"sequence"`. `None` is
            kept, so it follows a `least_gap` that is set later. The family's README has both formulas.
        pairs_per_sequence (`int`, *optional*): in training, the loss of this many random pairs of each sequence stands
            for that of all; its expectation is the same. Evaluation takes all pairs. Without it: all pairs.
        block_size (`int`, *optional*, defaults to 16384): the most pairs whose logits are in memory at once.
        eos_token_id (`int`, *optional*): the end token. It is the empty suffix, so there must be one, in the
            vocabulary. Defaults to the encoder's; GPT-2's is 50256.
        bos_token_id (`int`, *optional*), pad_token_id (`int`, *optional*): default to the encoder's.

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

    vocab_size: int | None = None
    n_positions: int | None = None
    n_embd: int | None = None
    n_layer: int | None = None
    n_head: int | None = None
    n_inner: int | None = None
    activation_function: str | None = None
    resid_pdrop: float | int | None = None
    embd_pdrop: float | int | None = None
    attn_pdrop: float | int | None = None
    initializer_range: float | int | None = None
    head_width: int = 512
    head_layers: int = 3
    predict_previous: bool = True
    use_backward: bool = True
    least_gap: int = 2
    pair_weights: Literal["sequence", "gap"] | None = None
    pairs_per_sequence: int | None = None
    block_size: int = 16384
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    pad_token_id: int | None = None
    use_cache: bool = True
    tie_word_embeddings: bool = False
    encoder_config: dict[str, Any] | PreTrainedConfig | None = None  # the last fields: see __setattr__
    backward_encoder_config: dict[str, Any] | PreTrainedConfig | None = None

    def __post_init__(self, **kwargs):
        given = {name: getattr(self, name) for name in (*PLAIN, *SPECIAL)}
        encoder, backward = self.encoder_config, self.backward_encoder_config
        if encoder is None:
            sizes = {name: default if given[name] is None else given[name] for name, (_, default) in PLAIN.items()}
            special = {name: given[name] for name in SPECIAL if given[name] is not None}
            if given["bos_token_id"] is None and sizes["vocab_size"] <= 50256:  # GPT-2's is not in the vocabulary
                special["bos_token_id"] = None
            encoder = {"model_type": "gpt2", **sizes, **special}
        encoder = _made("encoder_config", encoder)
        backward = copy.deepcopy(encoder) if backward is None else _made("backward_encoder_config", backward)
        for name in ("hidden_size", "vocab_size"):
            ahead, back = (getattr(part, name, None) for part in (encoder, backward))
            if ahead != back or ahead is None:
                raise BeliefStateError(
                    f"The encoders must have the same {name}, got {ahead} and, backward, {back}; they share the token "
                    "embedding."
                )
        self.encoder_config, self.backward_encoder_config = encoder, backward  # copies, which __setattr__ may change
        for name, (standard, _) in PLAIN.items():
            found = getattr(encoder, standard, None)
            if given[name] not in (None, found):
                raise BeliefStateError(
                    f"{name} is {given[name]}, but encoder_config has {standard}={found}; give one of them."
                )
            setattr(self, name, found)
        for name in SPECIAL:
            setattr(self, name, getattr(encoder, name, None) if given[name] is None else given[name])
        super().__post_init__(**kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets what the encoders' configurations hold too in them, so that no file says two things."""
        name = self.attribute_map.get(name, name)
        before = self.__dict__.get(name)
        super().__setattr__(name, value)
        if name not in PLAIN and name not in FOLLOWED:
            return
        standard = PLAIN[name][0] if name in PLAIN else name
        for key in ("encoder_config", "backward_encoder_config"):
            part = self.__dict__.get(key)
            if not isinstance(part, PreTrainedConfig) or getattr(part, standard, None) == value:
                continue
            if name in SHARED or key == "encoder_config" or getattr(part, standard, None) == before:
                setattr(part, standard, value)

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> PreTrainedConfig:
        """The forward encoder's configuration: `generate()` reads there the cache that each layer needs."""
        found = self.encoder_config
        return found if isinstance(found, PreTrainedConfig) else self

    def validate_architecture(self):
        """Refuses invalid values before any work starts.

        Raises:
            BeliefStateError: names the value, and what it may be.
        """
        if not isinstance(self.eos_token_id, int):
            raise BeliefStateError(
                f"eos_token_id must be one token, the empty suffix, got {self.eos_token_id!r}; name the token that "
                "ends a text."
            )
        assert self.vocab_size is not None
        if not 0 <= self.eos_token_id < self.vocab_size:
            raise BeliefStateError(
                f"eos_token_id is {self.eos_token_id}, outside the vocabulary of {self.vocab_size} tokens. It is the "
                "empty suffix; name the token that ends a text, or add one to the vocabulary."
            )
        if self.tie_word_embeddings:
            raise BeliefStateError("tie_word_embeddings must be False: the text head has a width of its own.")

    @property
    def end_token(self) -> int:
        """The id of the end token, the empty suffix."""
        assert isinstance(self.eos_token_id, int)  # validate_architecture
        return self.eos_token_id

    @property
    def weights_of_pairs(self) -> Literal["sequence", "gap"]:
        """`pair_weights`, or its default."""
        return self.pair_weights or ("gap" if self.least_gap == 1 else "sequence")


def _made(name: str, given: Any) -> PreTrainedConfig:
    kind = type(given) if isinstance(given, PreTrainedConfig) else _kind(given.get("model_type"))
    if kind is None:
        raise BeliefStateError(
            f"{name} must be the configuration of a decoder-only model with its model_type, got "
            f"{given.get('model_type')!r}; for example GPT2Config(...)."
        )
    if kind.sub_configs:  # each could hold others, and so on
        raise BeliefStateError(
            f"{name} must be the configuration of one decoder-only model, got {kind.__name__}, which holds several."
        )
    if isinstance(given, PreTrainedConfig):
        return copy.deepcopy(given)
    for size, (least, most) in (RANGES | {"num_labels": (0, 100_000)}).items():
        standard = PLAIN[size][0] if size in PLAIN else size
        for key in {standard, kind.attribute_map.get(standard, size)} & given.keys():
            if isinstance(given[key], int) and not least <= given[key] <= most:  # before lists of this length are made
                raise BeliefStateError(f"{name}: {key} must be from {least} to {most}, got {given[key]}.")
    return kind(**{key: value for key, value in given.items() if key != "model_type"})


def _kind(model_type: Any) -> type[PreTrainedConfig] | None:
    return CONFIG_MAPPING[model_type] if isinstance(model_type, str) and model_type in CONFIG_MAPPING else None
