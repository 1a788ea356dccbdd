"""Configuration of a Discrete-Attention-only Transformer: its program, sizes and backend."""

from __future__ import annotations

from typing import Any, Literal

from transformers.configuration_utils import PreTrainedConfig

from .configs import strict_config
from .dat_errors import DATConfigError
from .dat_program import MALFORMED, DATProgram, constants_of, read_program
from .dat_values import END_OF_PROMPT, NIL, ValueSpace

#: A function of the program is a table of all values, and so is a register of the vector backends.
MOST_VALUES = 1_000_000


def _echo() -> dict[str, Any]:
    """The program of a configuration without one: a layer that copies every symbol onto itself."""
    copy = {"q": {"p": "p"}, "k": {"p": "p"}, "v": {"s": "s"}}
    layer = {"layer_comment": "copy", "causal_attn": False, "right_match": False, "weights": copy}
    return {
        "register_map": {"symbol": "s", "position": "p"},
        "constants_map": {},
        "system_map": {"symbol": "symbol", "position": "position", "output": "symbol"},
        "watch_list": [],
        "weights": [layer],
    }


def _sorted(value: Any) -> Any:
    """JSON with the keys of every object in order."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


@strict_config(
    DATConfigError,
    max_position_embeddings=(1, MOST_VALUES),
    num_open_values=(0, MOST_VALUES),
    num_attention_heads=(1, 1),
)
class DATConfig(PreTrainedConfig):
    r"""A program in QKVL, and the sizes and the backend that run it.

    Args:
        qkvl (`dict`, *optional*): the program as the JSON of App. J: registers, constants, system registers, and the
            layers with their query, key and value instructions. `hf_mech.psl.compile_program` makes it. Without one,
            the program is a single layer that copies the symbol.
        max_position_embeddings (`int`, *optional*, defaults to 512): T, the largest position and the largest number, at
            most 1,000,000.
        num_open_values (`int`, *optional*, defaults to 4096): places for words that the program does not name, at most
            1,000,000.
        constants (`list[str]`, *optional*): the program's constants in the order of their indices; read off `qkvl`.
        value_sets (`dict[str, str]`, *optional*): the values that each register can hold, as text. The compiler
            computes them; nothing depends on them.
        backend (`str`, *optional*, defaults to `"gather"`): `"gather"`, registers as integers; `"dense"`, registers as
            one-hot vectors, exactly (70); `"relaxed"`, a soft version of it, for training.
        relaxation_temperature (`float`, *optional*, defaults to 0.1): of the relaxed backend; at 0 it is the dense one.
        logit_scale (`float`, *optional*, defaults to 50.0): the logit of a value whose neuron in the output register is
            1; the other values have logit 0.
        eos_token_id (`int` or `list[int]`, *optional*): nil, 0: the model says it at the end of a completion.
        pad_token_id, eop_token_id (`int`, *optional*): nil, 0, and the end of the prompt, 1; nothing else is accepted.

    Raises:
        DATConfigError: invalid QKVL, sizes or backend, or a value of a wrong type.

    Example:

    ```python
    >>> from hf_mech.models.dat import DATConfig

    >>> config = DATConfig(max_position_embeddings=9, num_open_values=20)
    >>> config.program.registers, config.vocab_size, config.hidden_size
    (('p', 's'), 32, 64)

    ```
    """

    model_type = "dat"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package

    qkvl: dict[str, Any] | None = None
    max_position_embeddings: int = 512
    num_open_values: int = 4096
    constants: list[str] | None = None
    value_sets: dict[str, str] | None = None
    backend: Literal["gather", "dense", "relaxed"] = "gather"
    relaxation_temperature: float | int = 0.1
    logit_scale: float | int = 50.0
    pad_token_id: int | None = NIL
    eop_token_id: int = END_OF_PROMPT
    eos_token_id: int | list[int] | None = None
    num_attention_heads: int = 1
    use_cache: bool = True

    def __post_init__(self, **kwargs):
        # config.json sorts its keys, and the order of the weights' rows depends on them: sort them from the beginning.
        self.qkvl = _sorted(_echo() if self.qkvl is None else self.qkvl)
        try:
            if self.constants is None:
                self.constants = constants_of(self.qkvl, self.max_position_embeddings)
        except MALFORMED as error:
            raise DATConfigError(
                f"qkvl is no QKVL program ({type(error).__name__}: {error}); compile one with hf_mech.psl."
            ) from error
        if self.eos_token_id is None:
            self.eos_token_id = NIL  # the model says nil at the end of a completion, also for a stop word
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuses invalid values before any work starts."""
        if self.relaxation_temperature < 0 or self.logit_scale <= 0:
            raise DATConfigError(
                f"relaxation_temperature must be 0 or more and logit_scale positive, got {self.relaxation_temperature} "
                f"and {self.logit_scale}."
            )
        if self.pad_token_id != NIL or self.eop_token_id != END_OF_PROMPT:
            raise DATConfigError(
                f"pad_token_id is nil, {NIL}, and eop_token_id is {END_OF_PROMPT}, got {self.pad_token_id} and "
                f"{self.eop_token_id}; leave them out."
            )
        _ = self.program

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
        """d, the number of values that a register can hold; the tokens are these values."""
        return len(self.values)

    @property
    def num_registers(self) -> int:
        """The number of registers in a cell's state; primed registers exist in queries and keys only."""
        return len((self.qkvl or {}).get("register_map", ()))

    @property
    def hidden_size(self) -> int:
        """The width of a cell's state vector: a one-hot vector for every register, (66)."""
        return self.num_registers * self.vocab_size

    @property
    def num_hidden_layers(self) -> int:
        """One layer for each production, counted once where a block repeats it."""
        return len(self.program.layers)


__all__ = ["DATConfig"]
