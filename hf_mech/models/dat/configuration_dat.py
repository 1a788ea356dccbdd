"""Configuration of a Discrete-Attention-only Transformer: its program, sizes and backend."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any, Literal

from transformers.configuration_utils import PreTrainedConfig

from .checkpoints import strict_config
from .dat_embedding import MARGIN, coherence, narrowest, weakest_match
from .dat_program import (
    END_OF_PROMPT,
    MALFORMED,
    NIL,
    DATError,
    DATProgram,
    Layer,
    ValueSpace,
    constants_of,
    most_heads,
    read_program,
)

#: A function of the program is a table of all values, and so is a register of the vector backends.
MOST_VALUES = 1_000_000
MOST_DIMENSIONS = 16_384  # of dense vectors of values, which are the rows of a square matrix


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
    DATError,
    max_position_embeddings=(1, MOST_VALUES),
    num_open_values=(0, MOST_VALUES),
    num_attention_heads=(1, MOST_VALUES),
    filler_dim=(4, MOST_DIMENSIONS),
    embedding_seed=(0, 2**31 - 1),
)
class DATConfig(PreTrainedConfig):
    r"""A program in QKVL, and the sizes and the backend that run it.

    Args:
        qkvl (`dict`, *optional*): the program as the JSON of App. J: registers, constants, system registers, and the
            layers with their query, key and value instructions. `hf_mech.programs.psl.compile_program` makes it.
            Without one, the program is a single layer that copies the symbol.
        max_position_embeddings (`int`, *optional*, defaults to 512): T, the largest position and the largest number, at
            most 1,000,000.
        num_open_values (`int`, *optional*, defaults to 4096): places for words that the program does not name, at most
            1,000,000.
        constants (`list[str]`, *optional*): the program's constants in the order of their indices; read off `qkvl`.
        value_sets (`dict[str, str]`, *optional*): the values that each register can hold, as text. The compiler
            computes them; nothing depends on them.
        backend (`str`, *optional*, defaults to `"gather"`): `"gather"`, registers as integers; `"dense"`, registers as
            one-hot vectors, exactly (70); `"relaxed"`, a soft version of it, for training.
        embedding (`str`, *optional*, defaults to `"local"`): the vectors of registers and values, (66), (69), App. L:
            `"local"`, one-hot; `"semi_local"`, dense vectors of values; `"distributed"`, dense vectors of registers,
            too, so that all registers are superposed. The backend `"gather"` computes with integers and gives hidden
            states in this embedding; `"relaxed"` has the local one only.
        filler_dim (`int`, *optional*): the dimension of dense vectors of values, at most 16,384; by default their
            number. With fewer dimensions than values the vectors are not quite orthogonal.
        embedding_seed (`int`, *optional*, defaults to 0): of the dense vectors. They are no weights of a checkpoint.
        relaxation_temperature (`float`, *optional*, defaults to 0.1): of the relaxed backend; at 0 it is the dense one.
        logit_scale (`float`, *optional*, defaults to 50.0): the logit of a value whose neuron in the output register is
            1; the other values have logit 0.
        eos_token_id (`int` or `list[int]`, *optional*): nil, 0: the model says it at the end of a completion.
        num_attention_heads (`int`, *optional*): the most productions of a layer, (90a); read off `qkvl`.
        pad_token_id, eop_token_id (`int`, *optional*): nil, 0, and the end of the prompt, 1; nothing else is accepted.

    Raises:
        DATError: invalid QKVL, sizes or backend, or a value of a wrong type.

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
    embedding: Literal["local", "semi_local", "distributed"] = "local"
    filler_dim: int | None = None
    embedding_seed: int = 0
    relaxation_temperature: float | int = 0.1
    logit_scale: float | int = 50.0
    pad_token_id: int | None = NIL
    eop_token_id: int = END_OF_PROMPT
    eos_token_id: int | list[int] | None = None
    num_attention_heads: int | None = None
    use_cache: bool = True

    def __post_init__(self, **kwargs):
        # config.json sorts its keys, and the order of the weights' rows depends on them: sort them from the beginning.
        self.qkvl = _sorted(_echo() if self.qkvl is None else self.qkvl)
        try:
            if self.constants is None:
                self.constants = constants_of(self.qkvl, self.max_position_embeddings)
            if self.num_attention_heads is None:
                self.num_attention_heads = most_heads(self.qkvl["weights"])
        except MALFORMED as error:
            raise DATError(
                f"qkvl is no QKVL program ({type(error).__name__}: {error}); compile one with hf_mech.programs.psl."
            ) from error
        if self.eos_token_id is None:
            self.eos_token_id = NIL  # the model says nil at the end of a completion, also for a stop word
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuses invalid values before any work starts.

        Raises:
            DATError: names the value, and what it may be.
        """
        if self.relaxation_temperature < 0 or self.logit_scale <= 0:
            raise DATError(
                f"relaxation_temperature must be 0 or more and logit_scale positive, got {self.relaxation_temperature} "
                f"and {self.logit_scale}."
            )
        if self.pad_token_id != NIL or self.eop_token_id != END_OF_PROMPT:
            raise DATError(
                f"pad_token_id is nil, {NIL}, and eop_token_id is {END_OF_PROMPT}, got {self.pad_token_id} and "
                f"{self.eop_token_id}; leave them out."
            )
        program = self.program
        check_heads(program)
        if self.num_attention_heads != (most := max(len(layer.heads) for layer in program.layers)):
            raise DATError(
                f"The largest layer of the program has {most} heads, got num_attention_heads="
                f"{self.num_attention_heads}; leave it out."
            )
        self._check_embedding(program)

    def _check_embedding(self, program: DATProgram) -> None:
        """Refuses vectors of values that a layer could confuse, and those that it would be too much to draw."""
        if self.embedding == "local":
            if self.filler_dim is not None:
                raise DATError(
                    f"filler_dim is the dimension of dense vectors, got {self.filler_dim} with embedding='local'; set "
                    "embedding to 'semi_local' or 'distributed', or leave filler_dim out."
                )
            return
        if self.backend == "relaxed":
            raise DATError(
                f"The backend 'relaxed' softens one-hot vectors, got embedding={self.embedding!r}; set embedding to "
                "'local', or backend to 'dense' or 'gather'."
            )
        width, size = self.filler_width, self.vocab_size
        if width > MOST_DIMENSIONS or width * size > MOST_DIMENSIONS**2:
            raise DATError(
                f"Dense vectors may have {MOST_DIMENSIONS:,} dimensions and {MOST_DIMENSIONS**2:,} numbers, got "
                f"{size:,} vectors of {width:,}; give a smaller filler_dim, max_position_embeddings or num_open_values."
            )
        found, most = coherence(size, width), MARGIN / weakest_match(program)
        if found >= most:
            raise DATError(
                f"{size:,} values in filler_dim={width} dimensions have vectors with products of "
                f"up to {found:.3f}, and this program tells a match from a mismatch below {most:.3f}; the smallest "
                f"filler_dim for it is {narrowest(size, most):,}."
            )

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
    def filler_width(self) -> int:
        """The dimension of the vector of a value."""
        return self.vocab_size if self.filler_dim is None else self.filler_dim

    @property
    def hidden_size(self) -> int:
        """The width of a cell's state vector: registers times dimensions of a value, (66), (69)."""
        return self.num_registers * self.filler_width

    @property
    def num_hidden_layers(self) -> int:
        """One layer for each production, counted once where a block repeats it."""
        return len(self.program.layers)


# ---------------------------------------------------------------------------------------------------------------- heads

Test = tuple[int, frozenset[int], bool]
"""A register of N, the constants it is compared with, and whether they are excluded."""


def reads(production: Layer) -> set[int]:
    """The registers that its query, key and values read, in any cell."""
    operands = [side for match in production.matches for side in (match.query, match.key)]
    operands += [source for _, source in production.writes]
    return {operand.register for operand in operands if operand.register is not None}


def writes(production: Layer) -> set[int]:
    """The registers that it assigns."""
    return {target for target, _ in production.writes}


def conflicting(one: Layer, other: Layer) -> set[int]:
    """The registers that two productions both write; none if they never update the same cell of the same input.

    They do not if both compare a register of N with constants, and no value passes the tests of both.
    """
    shared = writes(one) & writes(other)
    return set() if shared and _apart([*_tests_of_N(one), *_tests_of_N(other)]) else shared


def _tests_of_N(production: Layer) -> list[Test]:
    return [
        (match.query.register, frozenset(match.key.values), match.query.negated or match.key.negated)
        for match in production.matches
        if match.query.register is not None and match.query.function is None and match.key.register is None
    ]


def _apart(tests: Iterable[Test]) -> bool:
    """Whether no cell passes all of them."""
    allowed: dict[int, list[frozenset[int]]] = {}
    excluded: dict[int, frozenset[int]] = {}
    for register, values, negated in tests:
        if negated:
            excluded[register] = excluded.get(register, frozenset()) | values
        else:
            allowed.setdefault(register, []).append(values)
    return any(
        not frozenset.intersection(*sets) - excluded.get(register, frozenset()) for register, sets in allowed.items()
    )


def check_heads(program: DATProgram) -> None:
    """Refuses a layer whose heads conflict.

    Raises:
        DATError: two heads of a layer write the same register, and may do so in the same cell.
    """
    for layer in program.layers:
        for one, other in combinations(layer.heads, 2):
            if shared := conflicting(one, other):
                names = ", ".join(program.registers[register] for register in sorted(shared))
                raise DATError(
                    f"Layer {layer.index} ({layer.comment!r}): the heads {one.comment!r} and {other.comment!r} both "
                    f"write {names}, and no test of constants keeps them apart; put them into different layers."
                )
