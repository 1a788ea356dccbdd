"""Configuration of a Semi-formal Transformer: the program of its biased heads, and the sizes of its unbiased part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers.configuration_utils import PreTrainedConfig

from .checkpoints import strict_config
from .configuration_dat import MOST_VALUES, DATConfig
from .dat_program import NIL, DATError, DATProgram, Heads, ValueSpace, read_program

_MOST = 1_000_000


@strict_config(
    DATError,
    max_position_embeddings=(1, MOST_VALUES),
    num_open_values=(0, MOST_VALUES),
    hidden_size=(1, _MOST),
    num_hidden_layers=(1, 10_000),
    num_attention_heads=(1, _MOST),
    intermediate_size=(1, _MOST),
    reading_size=(1, _MOST),
    steering_size=(1, _MOST),
)
class SemiFormalConfig(PreTrainedConfig):
    r"""A program in QKVL for the biased heads, and an ordinary transformer beside it, (92).

    Args:
        qkvl (`dict`, *optional*): the program of the biased heads as the JSON of App. J, see [`DATConfig`]. Without one
            it copies the symbol.
        max_position_embeddings (`int`, *optional*, defaults to 128): T, the largest position.
        num_open_values (`int`, *optional*, defaults to 64): places for words that the program does not name.
        constants (`list[str]`, *optional*): the program's constants in the order of their indices; read off `qkvl`.
        estimates (`dict[str, list[str]]`, *optional*): constants of the program whose value a biased head estimates
            from V_u, (92c): where a production assigns such a constant, it writes a distribution over these values.
        label_values (`list[str]`, *optional*): for every class the value of the output register that stands for it.
        hidden_size (`int`, *optional*, defaults to 64): the width of V_u.
        num_hidden_layers (`int`, *optional*, defaults to 2): unbiased layers. They come before the program's layers.
        num_attention_heads (`int`, *optional*, defaults to 4): unbiased heads of a layer.
        intermediate_size (`int`, *optional*, defaults to 128): the width of the MLPs.
        reading_size (`int`, *optional*, defaults to 16): the rank of the unbiased heads' view of V_b.
        steering_size (`int`, *optional*, defaults to 8): the width of the biased heads' queries and keys in V_u.
        relaxation_temperature (`float`, *optional*, defaults to 1.0): of the biased heads; at 1 registers are
            distributions and matches have probabilities, at 0 they are DATmax and DATnorm.
        train_program (`bool`, *optional*, defaults to `False`): whether the biased heads' own weights, those compiled
            from the program, have gradients. What they read off V_u is always learned.
        attention_entropy_weight (`float`, *optional*, defaults to 0.01): the weight of (92e) in the loss.
        layer_norm_eps (`float`, *optional*, defaults to 1e-5): of LayerNorm, which sees V_u alone.
        initializer_range (`float`, *optional*, defaults to 0.05): standard deviation of the new weights of V_u.
        pad_token_id (`int`, *optional*): nil, 0; nothing else is accepted.

    Raises:
        DATError: invalid QKVL or sizes, or a value of a wrong type.

    Example:

    ```python
    >>> from hf_mech.models.dat import SemiFormalConfig

    >>> config = SemiFormalConfig(max_position_embeddings=9, num_open_values=20)
    >>> config.program.registers, config.vocab_size, config.biased_size, config.hidden_size
    (('p', 's'), 32, 64, 64)

    ```
    """

    model_type = "semi_formal"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package

    qkvl: dict[str, Any] | None = None
    max_position_embeddings: int = 128
    num_open_values: int = 64
    constants: list[str] | None = None
    estimates: dict[str, list[str]] | None = None
    label_values: list[str] | None = None
    hidden_size: int = 64
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    intermediate_size: int = 128
    reading_size: int = 16
    steering_size: int = 8
    relaxation_temperature: float | int = 1.0
    train_program: bool = False
    attention_entropy_weight: float | int = 0.01
    layer_norm_eps: float | int = 1e-5
    initializer_range: float | int = 0.05
    pad_token_id: int | None = NIL

    def __post_init__(self, **kwargs):
        biased = DATConfig(  # sorts the program, finds its constants, refuses what is no program
            qkvl=self.qkvl,
            max_position_embeddings=self.max_position_embeddings,
            num_open_values=self.num_open_values,
            constants=self.constants,
        )
        self.qkvl, self.constants = biased.qkvl, biased.constants
        if self.estimates is None:
            self.estimates = {}
        if self.label_values is None:
            self.label_values = ["0", "1"]
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuses invalid values before any work starts.

        Raises:
            DATError: names the value, and what it may be.
        """
        if self.hidden_size % self.num_attention_heads:
            raise DATError(
                f"hidden_size must be a multiple of num_attention_heads, got {self.hidden_size} and "
                f"{self.num_attention_heads}."
            )
        for name in ("relaxation_temperature", "attention_entropy_weight", "initializer_range"):
            if getattr(self, name) < 0:
                raise DATError(f"{name} must be 0 or more, got {getattr(self, name)}.")
        if self.layer_norm_eps <= 0:
            raise DATError(f"layer_norm_eps must be positive, got {self.layer_norm_eps}.")
        if self.pad_token_id != NIL:
            raise DATError(f"pad_token_id is nil, {NIL}, got {self.pad_token_id}; leave it out.")
        if any(isinstance(layer, Heads) for layer in self.program.layers):
            raise DATError("A biased head is one production, got layers of several; compile without heads.")
        _ = self.estimated, self.label_indices

    @property
    def values(self) -> ValueSpace:
        """The index of every value."""
        return ValueSpace(self.max_position_embeddings, self.constants or (), self.num_open_values)

    @property
    def program(self) -> DATProgram:
        """The program with every name resolved."""
        return read_program(self.qkvl or {}, self.values)

    @property
    def vocab_size(self) -> int:
        """d, the number of values; the tokens are these values."""
        return len(self.values)

    @property
    def biased_size(self) -> int:
        """The width of V_b: a distribution over the values for every register."""
        return len((self.qkvl or {}).get("register_map", ())) * self.vocab_size

    @property
    def estimated(self) -> Mapping[int, tuple[int, ...]]:
        """`estimates` by index."""
        return {
            self._index(name, "estimates"): tuple(self._index(value, "estimates") for value in values)
            for name, values in (self.estimates or {}).items()
        }

    @property
    def label_indices(self) -> list[int]:
        """The value of every class by index."""
        return [self._index(value, "label_values") for value in self.label_values or ()]

    def _index(self, value: str, where: str) -> int:
        index = self.values.index(value)
        if index is None or index == NIL:
            raise DATError(
                f"{where} must name values of the program, of {list(self.constants or ())} or the numbers 0 to "
                f"{self.max_position_embeddings}, got {value!r}."
            )
        return index
