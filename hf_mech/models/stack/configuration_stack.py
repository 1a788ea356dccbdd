"""Configurations of StackGPT2 and StackRoberta: the stock model's, with the options of the stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from transformers.models.gpt2.configuration_gpt2 import GPT2Config
from transformers.models.roberta.configuration_roberta import RobertaConfig

from .checkpoints import strict_config


class StackError(ValueError):
    """Options, inputs, checkpoints or caches that do not fit a model with stacks; the text says what to do."""


#: The place of the encoding: added to the embeddings ("none" adds nothing), or inside every self-attention.
EMBEDDED = ("learned", "none", "sinusoidal")
ATTENDED = ("relative", "rotary", "alibi")

#: The least and the largest of the sizes that a configuration may have: of tables, of vectors, and the layers.
SIZES, WIDTHS, LAYERS = (1, 100_000_000), (1, 1_000_000), (1, 1_000)


class StackOptions:
    """The options of the stack, in all configurations.

    Args:
        use_stack (`bool`, *optional*, defaults to `True`): add the stack sub-layer to the layers (Eq. 26). Without
            it the model equals the stock model bit for bit: the vanilla baseline.
        stack_layers (`list[int]`, *optional*): the layers that get a stack, from 0; all, if not given.
        multi_pop (`int`, *optional*, defaults to 1): K, the most elements that one step can pop. 1 is the paper's.
        stack_gate (`bool`, *optional*, defaults to `False`): multiply the stack's output by a learned scalar, initially
            zero, so that a stock checkpoint begins with its own logits. The paper has no gate.
        stack_actions_from (`str`, *optional*, defaults to `"hidden"`): the input of the actions (Eq. 24). `"hidden"`,
            the paper's: the sub-layer's input. `"layer_input"`: the layer's input, in the first layer the token alone.
        stack_actions_start (`str`, *optional*, defaults to `"random"`): the new weights of the actions (Eq. 24).
            `"random"`, as those of every other linear layer; `"even"`: zero, so that every position begins with the
            same probability of each action, and no token is drawn to an action before it has had a gradient.
        stack_bottom (`str`, *optional*, defaults to `"first_token"`): position 0, the empty stack (Eq. 19), is the
            first real token of a sequence, whatever it is. `"bos_token"`, the paper's setting: it must be
            `bos_token_id`, and any other token is refused.
        stack_values (`str`, *optional*, defaults to `"hidden"`): the values on the stack. `"hidden"`, the paper's: the
            sub-layer's input. `"recurrent"`: values that depend on the popped ones, so that one layer reduces any
            nesting (not in the paper; see `stack_values.py`).
        stack_values_noise (`float`, *optional*, defaults to 0): in training, the standard deviation of the noise on the
            recurrent values that are read, in units of their layer norm.
        stack_tolerance (`float`, *optional*, defaults to 0): with a cache that grows, leave out the deepest levels of
            the stack, so that the error of a row of stack attention (the sum of absolute differences) stays below this
            over `max_position_embeddings` positions; 0: nothing but rounding. See `stack_levels.py`.
        output_stack_attentions (`bool`, *optional*, defaults to `False`): return the stack attention of every layer.
    """

    use_stack: bool = True
    stack_layers: list[int] | None = None
    multi_pop: int = 1
    stack_gate: bool = False
    stack_actions_from: Literal["hidden", "layer_input"] = "hidden"
    stack_actions_start: Literal["random", "even"] = "random"
    stack_bottom: Literal["first_token", "bos_token"] = "first_token"
    stack_values: Literal["hidden", "recurrent"] = "hidden"
    stack_values_noise: float | int = 0.0
    stack_tolerance: float | int = 0.0
    output_stack_attentions: bool = False

    def validate_architecture(self: Any) -> None:
        """Refuses options that do not exist, do not fit the sizes, or contradict each other.

        Raises:
            StackError: names the option, and what it may be.
        """
        layers, count = self.stack_layers, self.num_hidden_layers
        if layers is not None and (layers != sorted({*layers}) or not all(0 <= layer < count for layer in layers)):
            raise StackError(
                f"stack_layers must be different layers in their order, from 0 to {count - 1}, or None for all; got "
                f"{layers}."
            )
        if self.stack_values == "recurrent" and self.multi_pop != 1:
            raise StackError(
                f"stack_values='recurrent' pops one value a step: multi_pop must be 1, got {self.multi_pop}."
            )
        if self.stack_values_noise < 0 or (self.stack_values_noise and self.stack_values != "recurrent"):
            raise StackError(
                f"stack_values_noise is 0 or more, and of stack_values='recurrent'; got {self.stack_values_noise} and "
                f"{self.stack_values!r}."
            )
        if self.use_stack and self.stack_bottom == "bos_token" and self.bos_token_id is None:
            raise StackError(
                "stack_bottom='bos_token' asks for bos_token_id at the bottom of every stack, but bos_token_id is "
                "None. Set it to the id of the token that begins every sequence (Section 3.2), or set "
                "stack_bottom='first_token', which takes any token."
            )


class EncodedStackOptions(StackOptions):
    """The [`StackOptions`], and the encoding of positions.

    Args:
        position_embedding_type (`str`, *optional*, defaults to `"learned"`): `"learned"` (the stock model's own),
            `"none"`, `"sinusoidal"`, `"relative"` (Transformer-XL), `"rotary"` or `"alibi"` (Appendix C).
    """

    position_embedding_type: str = "learned"

    def validate_architecture(self: Any) -> None:
        """Refuses an encoding that does not exist or fit the sizes, too.

        Raises:
            StackError: names the option, and what it may be.
        """
        encoding, size, heads = self.position_embedding_type, self.hidden_size, self.num_attention_heads
        if encoding not in EMBEDDED + ATTENDED:
            raise StackError(
                f"position_embedding_type must be one of {', '.join(EMBEDDED + ATTENDED)}, got {encoding!r}."
            )
        if size % heads:
            raise StackError(f"hidden_size must be a multiple of num_attention_heads, got {size} and {heads}.")
        if encoding in ATTENDED and getattr(self, "reorder_and_upcast_attn", False):
            raise StackError(
                f"position_embedding_type={encoding!r} has no attention that is reordered and upcast; set "
                "reorder_and_upcast_attn=False."
            )
        if encoding == "sinusoidal" and size % 2:
            raise StackError(f"Sinusoidal positions need an even hidden_size, got {size}.")
        if encoding == "rotary" and size // heads % 2:
            raise StackError(f"Rotary positions need heads of an even size, got {size} / {heads} = {size // heads}.")
        super().validate_architecture()


# Not as a decorator: type checkers would take its constructor for that of the configurations below.
dataclass(kw_only=True)(StackOptions)
dataclass(kw_only=True)(EncodedStackOptions)


@strict_config(
    StackError,
    vocab_size=SIZES,
    n_positions=SIZES,
    n_embd=WIDTHS,
    n_layer=LAYERS,
    n_head=WIDTHS,
    n_inner=WIDTHS,
    multi_pop=WIDTHS,
    stack_tolerance=(0, 1),
)
class StackGPT2Config(EncodedStackOptions, GPT2Config):
    r"""A [`GPT2Config`] with the [`EncodedStackOptions`].

    Raises:
        StackError: options of a wrong type, outside their range or invalid.

    Example:

    ```python
    >>> from hf_mech.models.stack import StackGPT2Config, StackGPT2ForCausalLM

    >>> config = StackGPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=50, bos_token_id=0, eos_token_id=1)
    >>> StackGPT2ForCausalLM(config).transformer.h[0].stack.action
    Actions(in_features=32, out_features=3, bias=True)

    ```
    """

    model_type = "stack_gpt2"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package
    keys_to_ignore_at_inference = ["past_key_values", "stack_attentions", "stack_actions"]


@strict_config(
    StackError,
    vocab_size=SIZES,
    max_position_embeddings=SIZES,
    type_vocab_size=SIZES,
    hidden_size=WIDTHS,
    intermediate_size=WIDTHS,
    num_attention_heads=WIDTHS,
    num_hidden_layers=LAYERS,
    multi_pop=WIDTHS,
    stack_tolerance=(0, 1),
)
class StackRobertaConfig(EncodedStackOptions, RobertaConfig):
    r"""A [`RobertaConfig`] with the [`EncodedStackOptions`].

    Raises:
        StackError: options of a wrong type, outside their range or invalid.

    Example:

    ```python
    >>> from hf_mech.models.stack import StackRobertaConfig, StackRobertaForMaskedLM

    >>> config = StackRobertaConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=50)
    >>> StackRobertaForMaskedLM(config).roberta.encoder.layer[0].stack.action
    Actions(in_features=32, out_features=3, bias=True)

    ```
    """

    model_type = "stack_roberta"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package
    keys_to_ignore_at_inference = ["past_key_values", "stack_attentions", "stack_actions"]

    def validate_architecture(self) -> None:
        """As of [`EncodedStackOptions`]; RoBERTa's padding must be a token, too.

        Raises:
            StackError: names the option, and what it may be.
        """
        super().validate_architecture()
        if self.pad_token_id is not None and not 0 <= self.pad_token_id < self.vocab_size:
            raise StackError(f"pad_token_id must be one of the {self.vocab_size} tokens, got {self.pad_token_id}.")
