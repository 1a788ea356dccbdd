"""Configuration of StackRoberta."""

from __future__ import annotations

from typing import Literal

from transformers.models.roberta.configuration_roberta import RobertaConfig

from .checkpoints import strict_config
from .stack_errors import StackError
from .stack_options import LAYERS, SIZES, WIDTHS, check_options


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
    stack_inner_size=WIDTHS,
    num_stack_loops=SIZES,
    stack_tolerance=(0, 1),
)
class StackRobertaConfig(RobertaConfig):
    r"""A [`RobertaConfig`] with the stack's options; every other argument is RoBERTa's.

    Args:
        use_stack (`bool`, *optional*, defaults to `True`): add the stack sub-layer to every layer (Eq. 26). Without
            it the model equals RoBERTa bit for bit: the vanilla baseline.
        multi_pop (`int`, *optional*, defaults to 1): K, the most elements that one step can pop. 1 is the paper's.
        stack_gate (`bool`, *optional*, defaults to `False`): multiply the stack's output by a learned scalar, initially
            zero, so that a stock checkpoint begins with its own logits. The paper has no gate.
        stack_actions_from (`str`, *optional*, defaults to `"hidden"`): what the actions depend on (Eq. 24). `"hidden"`,
            the paper's: the sub-layer's input. `"layer_input"`: the layer's input, in the first layer the token alone.
        position_embedding_type (`str`, *optional*, defaults to `"learned"`): `"learned"` (RoBERTa's own), `"none"`,
            `"sinusoidal"`, `"relative"` (Transformer-XL), `"rotary"` or `"alibi"` (Appendix C).
        stack_bottom (`str`, *optional*, defaults to `"first_token"`): position 0, the empty stack (Eq. 19), is the
            first real token of a sequence, whatever it is. `"bos_token"`, the paper's setting: it must be
            `bos_token_id`, and any other token is refused.
        stack_values (`str`, *optional*, defaults to `"hidden"`): what the stack holds. `"hidden"`, the paper's: the
            sub-layer's input. `"recurrent"`: values that depend on what was popped, so that one layer reduces any
            nesting (not in the paper; see `stack_values.py`).
        stack_inner_size (`int`, *optional*): of the recurrent values' inner layer; `None`: four times the hidden size.
        num_stack_loops (`int`, *optional*): compute recurrent values by so many passes over all positions at once,
            exact if no longer chain of values leads to a position; `None`: one position after another. With a cache,
            tokens that come one by one have exact values either way.
        stack_tolerance (`float`, *optional*, defaults to 0): with a cache, keep only the large entries of a row of
            stack attention, so that its error (the sum of absolute differences) stays below this for nearly certain
            stacks over `max_position_embeddings` positions; 0: keep all. For long texts, see `stack_sparse.py`.
        output_stack_attentions (`bool`, *optional*, defaults to `False`): return the stack attention of every layer.

    Raises:
        StackError: options of a wrong type, outside their range or invalid; see its subclasses.

    Example:

    ```python
    >>> from hf_mech.models.stack import StackRobertaConfig, StackRobertaForMaskedLM

    >>> config = StackRobertaConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=50)
    >>> StackRobertaForMaskedLM(config).roberta.encoder.layer[0].stack.action
    Linear(in_features=32, out_features=3, bias=True)

    ```
    """

    model_type = "stack_roberta"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package
    keys_to_ignore_at_inference = ["past_key_values", "stack_attentions", "stack_actions"]

    use_stack: bool = True
    multi_pop: int = 1
    stack_gate: bool = False
    stack_actions_from: Literal["hidden", "layer_input"] = "hidden"
    position_embedding_type: str = "learned"
    stack_bottom: Literal["first_token", "bos_token"] = "first_token"
    stack_values: Literal["hidden", "recurrent"] = "hidden"
    stack_inner_size: int | None = None
    num_stack_loops: int | None = None
    stack_tolerance: float | int = 0.0
    output_stack_attentions: bool = False

    def validate_architecture(self):
        """Refuses invalid options before any work starts."""
        check_options(self)
        if self.pad_token_id is not None and not 0 <= self.pad_token_id < self.vocab_size:
            raise StackError(f"pad_token_id must be one of the {self.vocab_size} tokens, got {self.pad_token_id}.")
