"""Stack attention: GPT-2 and RoBERTa with a differentiable stack as the third sub-layer of every layer."""

from typing import TYPE_CHECKING

import lazy_loader
import wrapt

from ...registration import register
from .configuration_stack_gpt2 import StackGPT2Config
from .configuration_stack_roberta import StackRobertaConfig

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
)


@wrapt.when_imported("peft.utils.constants")
def _declare_targets(constants: object) -> None:
    """Default targets for `get_peft_model`, as soon as peft is imported."""
    from .stack_lora import declare_targets

    declare_targets("stack_gpt2", "gpt2")
    declare_targets("stack_roberta", "roberta")


__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "modeling_stack_gpt2": [
            "StackGPT2ForCausalLM",
            "StackGPT2ForQuestionAnswering",
            "StackGPT2ForSequenceClassification",
            "StackGPT2ForTokenClassification",
            "StackGPT2Model",
        ],
        "modeling_stack_roberta": [
            "StackRobertaForCausalLM",
            "StackRobertaForMaskedLM",
            "StackRobertaForMultipleChoice",
            "StackRobertaForQuestionAnswering",
            "StackRobertaForSequenceClassification",
            "StackRobertaForTokenClassification",
            "StackRobertaModel",
        ],
        "stack_attention": ["read_stack", "stack_attention", "stack_attention_reference"],
        "stack_errors": [
            "ActionError",
            "BosError",
            "CheckpointError",
            "EncodingError",
            "LengthError",
            "PackingError",
            "StackCacheError",
            "StackError",
        ],
        "stack_losses": ["balance_loss", "push_loss"],
        "stack_operations": [
            "most_probable_operations",
            "operations_as_text",
            "stack_attention_from_operations",
            "stacks_of",
        ],
        "stack_values": ["recurrent_values", "recurrent_values_reference"],
    },
)

__all__ += ["StackGPT2Config", "StackRobertaConfig"]

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .configuration_stack_gpt2 import StackGPT2Config as StackGPT2Config
    from .configuration_stack_roberta import StackRobertaConfig as StackRobertaConfig
    from .modeling_stack_gpt2 import StackGPT2ForCausalLM as StackGPT2ForCausalLM
    from .modeling_stack_gpt2 import StackGPT2ForQuestionAnswering as StackGPT2ForQuestionAnswering
    from .modeling_stack_gpt2 import StackGPT2ForSequenceClassification as StackGPT2ForSequenceClassification
    from .modeling_stack_gpt2 import StackGPT2ForTokenClassification as StackGPT2ForTokenClassification
    from .modeling_stack_gpt2 import StackGPT2Model as StackGPT2Model
    from .modeling_stack_roberta import StackRobertaForCausalLM as StackRobertaForCausalLM
    from .modeling_stack_roberta import StackRobertaForMaskedLM as StackRobertaForMaskedLM
    from .modeling_stack_roberta import StackRobertaForMultipleChoice as StackRobertaForMultipleChoice
    from .modeling_stack_roberta import StackRobertaForQuestionAnswering as StackRobertaForQuestionAnswering
    from .modeling_stack_roberta import StackRobertaForSequenceClassification as StackRobertaForSequenceClassification
    from .modeling_stack_roberta import StackRobertaForTokenClassification as StackRobertaForTokenClassification
    from .modeling_stack_roberta import StackRobertaModel as StackRobertaModel
    from .stack_attention import read_stack as read_stack
    from .stack_attention import stack_attention as stack_attention
    from .stack_attention import stack_attention_reference as stack_attention_reference
    from .stack_errors import ActionError as ActionError
    from .stack_errors import BosError as BosError
    from .stack_errors import CheckpointError as CheckpointError
    from .stack_errors import EncodingError as EncodingError
    from .stack_errors import LengthError as LengthError
    from .stack_errors import PackingError as PackingError
    from .stack_errors import StackCacheError as StackCacheError
    from .stack_errors import StackError as StackError
    from .stack_losses import balance_loss as balance_loss
    from .stack_losses import push_loss as push_loss
    from .stack_operations import most_probable_operations as most_probable_operations
    from .stack_operations import operations_as_text as operations_as_text
    from .stack_operations import stack_attention_from_operations as stack_attention_from_operations
    from .stack_operations import stacks_of as stacks_of
    from .stack_values import recurrent_values as recurrent_values
    from .stack_values import recurrent_values_reference as recurrent_values_reference
