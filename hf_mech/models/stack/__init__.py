"""Stack attention: a differentiable stack as the third sub-layer of a transformer's layers."""

from typing import Any

import lazy_loader
from transformers import AutoConfig

from hf_mech.models.registration import register

from .configuration_stack import StackGPT2Config, StackRobertaConfig
from .configuration_stack_decoder import HEADS, PREFIX, StackDecoderConfig

register(
    StackGPT2Config,
    {
        "AutoModel": "hf_mech.models.stack.modeling_stack_gpt2:StackGPT2Model",
        "AutoModelForCausalLM": "hf_mech.models.stack.modeling_stack_gpt2:StackGPT2ForCausalLM",
        "AutoModelForSequenceClassification": (
            "hf_mech.models.stack.modeling_stack_gpt2:StackGPT2ForSequenceClassification"
        ),
        "AutoModelForTokenClassification": "hf_mech.models.stack.modeling_stack_gpt2:StackGPT2ForTokenClassification",
        "AutoModelForQuestionAnswering": "hf_mech.models.stack.modeling_stack_gpt2:StackGPT2ForQuestionAnswering",
    },
    adapters_as="gpt2",
)
register(
    StackRobertaConfig,
    {
        "AutoModel": "hf_mech.models.stack.modeling_stack_roberta:StackRobertaModel",
        "AutoModelForMaskedLM": "hf_mech.models.stack.modeling_stack_roberta:StackRobertaForMaskedLM",
        "AutoModelForCausalLM": "hf_mech.models.stack.modeling_stack_roberta:StackRobertaForCausalLM",
        "AutoModelForSequenceClassification": (
            "hf_mech.models.stack.modeling_stack_roberta:StackRobertaForSequenceClassification"
        ),
        "AutoModelForTokenClassification": (
            "hf_mech.models.stack.modeling_stack_roberta:StackRobertaForTokenClassification"
        ),
        "AutoModelForQuestionAnswering": "hf_mech.models.stack.modeling_stack_roberta:StackRobertaForQuestionAnswering",
        "AutoModelForMultipleChoice": "hf_mech.models.stack.modeling_stack_roberta:StackRobertaForMultipleChoice",
    },
    adapters_as="roberta",
)


def _register_decoder(config_class: Any) -> None:
    """Registers a stock decoder with stacks, when the class of its configuration is made."""
    stock = config_class.__bases__[-1].model_type
    file = "hf_mech.models.stack.modeling_stack_decoder"
    names = {head: table[stock] for head, table in HEADS.items() if isinstance(table.get(stock), str)}
    register(config_class, {head: f"{file}:{PREFIX}{name}" for head, name in names.items()}, adapters_as=stock)


AutoConfig.register(StackDecoderConfig.model_type, StackDecoderConfig, exist_ok=True)
StackDecoderConfig._announce = staticmethod(_register_decoder)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
