"""Configurations of stock decoders with stacks, made on demand: transformers' own with the options of the stack.

The class is made when it is first asked for, by [`stacked_config`] of the stock class or by its name, for LlamaConfig
`from ...configuration_stack_decoder import StackLlamaConfig`. There is no list of models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import transformers
from transformers.configuration_utils import PreTrainedConfig
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from .checkpoints import strict_config
from .configuration_stack import LAYERS, SIZES, WIDTHS, StackError, StackOptions

PREFIX = "Stack"
#: The Auto classes that give stock decoders, each with its table: for a model type, the name of the stock class.
HEADS: dict[str, Mapping[str, Any]] = {
    "AutoModel": modeling_auto.MODEL_MAPPING_NAMES,
    "AutoModelForCausalLM": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "AutoModelForSequenceClassification": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    "AutoModelForTokenClassification": modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
}
_RANGES = {
    "vocab_size": SIZES,
    "max_position_embeddings": SIZES,
    "hidden_size": WIDTHS,
    "intermediate_size": WIDTHS,
    "num_attention_heads": WIDTHS,
    "num_hidden_layers": LAYERS,
}


class StackDecoderConfig(PreTrainedConfig):
    """Reads the config.json of any stock decoder with stacks: its `model_type` is `stack_decoder`, for all of them.

    `decoder_type` is the stock model's type, and decides the class of the configuration.
    """

    model_type = "stack_decoder"
    _auto_class = "AutoConfig"  # a saved checkpoint carries this code and loads without the package

    #: Called with every new class of configurations. In the package this registers its models.
    _announce: ClassVar[Callable[[type[PreTrainedConfig]], None] | None] = None

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """As in transformers, but of the class that `decoder_type` says.

        Raises:
            StackError: `decoder_type` is missing, or not in this version of transformers.
        """
        kind = config_dict.get("decoder_type")
        if kind not in CONFIG_MAPPING:
            raise StackError(
                f"decoder_type must be the model type of one of transformers' decoders, got {kind!r}; is transformers "
                f"{transformers.__version__} older than the checkpoint?"
            )
        return stacked_config(CONFIG_MAPPING[kind]).from_dict(config_dict, **kwargs)


class DecoderOptions(StackOptions):
    """The [`StackOptions`] in the configuration of a stock decoder."""

    def validate_architecture(self: Any) -> None:
        """Refuses wrong options of the stack, and what the stock configuration refuses.

        Raises:
            StackError: names the option, and what it may be.
        """
        super().validate_architecture()
        if self.stack_tolerance and getattr(self, "max_position_embeddings", None) is None:
            raise StackError(
                f"stack_tolerance is for max_position_embeddings positions, which {type(self).__name__} does not "
                "have; set it to 0."
            )
        check = getattr(super(StackOptions, self), "validate_architecture", None)
        if check is not None:
            check()

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """As in transformers."""
        config_dict = {key: value for key, value in config_dict.items() if key not in ("model_type", "decoder_type")}
        return super().from_dict(config_dict, **kwargs)  # type: ignore[misc]  # of the stock configuration

    def to_diff_dict(self: Any) -> dict[str, Any]:
        """The contents of config.json, which [`StackDecoderConfig`] reads."""
        made = super().to_diff_dict()  # type: ignore[misc]  # of the stock configuration
        stock: Any = type(self).__bases__[-1]
        made.update(model_type=StackDecoderConfig.model_type, decoder_type=stock.model_type)
        if "auto_map" in made:
            file = StackDecoderConfig.__module__.rpartition(".")[2]
            made["auto_map"] = {**made["auto_map"], "AutoConfig": f"{file}.{StackDecoderConfig.__name__}"}
        return made


@functools.cache
def stacked_config(stock: type[PreTrainedConfig]) -> type[Any]:
    """The class of configurations of a stock decoder with stacks, from the stock class."""
    other_names = stock.attribute_map
    ranges = {other_names.get(name, name): bounds for name, bounds in _RANGES.items()}
    known = {name: bounds for name, bounds in ranges.items() if name in stock.__dataclass_fields__}
    made: Any = type(
        PREFIX + stock.__name__,
        (DecoderOptions, stock),
        {
            "__module__": __name__,
            "__doc__": f"A [`{stock.__name__}`] with the [`StackOptions`].",
            "model_type": f"{StackDecoderConfig.model_type}_{stock.model_type}",
            "_auto_class": "AutoConfig",
            "keys_to_ignore_at_inference": [
                *getattr(stock, "keys_to_ignore_at_inference", ["past_key_values"]),
                "stack_attentions",
                "stack_actions",
            ],
        },
    )
    made = strict_config(StackError, **known, multi_pop=WIDTHS, stack_tolerance=(0, 1))(made)
    if StackDecoderConfig._announce is not None:
        StackDecoderConfig._announce(made)
    return made


def __getattr__(name: str) -> Any:
    stock = getattr(transformers, name.removeprefix(PREFIX), None) if name.startswith(PREFIX) else None
    if not (isinstance(stock, type) and issubclass(stock, PreTrainedConfig)):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return stacked_config(stock)
