"""Stack attention: GPT-2 and RoBERTa with a differentiable stack as the third sub-layer of every layer."""

import lazy_loader

from hf_mech.models.registration import register

from .configuration_stack import StackGPT2Config, StackRobertaConfig

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

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
