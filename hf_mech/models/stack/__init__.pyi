from .configuration_stack_gpt2 import StackGPT2Config as StackGPT2Config
from .configuration_stack_roberta import StackRobertaConfig as StackRobertaConfig
from .modeling_stack_gpt2 import (
    StackGPT2ForCausalLM as StackGPT2ForCausalLM,
)
from .modeling_stack_gpt2 import (
    StackGPT2ForQuestionAnswering as StackGPT2ForQuestionAnswering,
)
from .modeling_stack_gpt2 import (
    StackGPT2ForSequenceClassification as StackGPT2ForSequenceClassification,
)
from .modeling_stack_gpt2 import (
    StackGPT2ForTokenClassification as StackGPT2ForTokenClassification,
)
from .modeling_stack_gpt2 import (
    StackGPT2Model as StackGPT2Model,
)
from .modeling_stack_roberta import (
    StackRobertaForCausalLM as StackRobertaForCausalLM,
)
from .modeling_stack_roberta import (
    StackRobertaForMaskedLM as StackRobertaForMaskedLM,
)
from .modeling_stack_roberta import (
    StackRobertaForMultipleChoice as StackRobertaForMultipleChoice,
)
from .modeling_stack_roberta import (
    StackRobertaForQuestionAnswering as StackRobertaForQuestionAnswering,
)
from .modeling_stack_roberta import (
    StackRobertaForSequenceClassification as StackRobertaForSequenceClassification,
)
from .modeling_stack_roberta import (
    StackRobertaForTokenClassification as StackRobertaForTokenClassification,
)
from .modeling_stack_roberta import (
    StackRobertaModel as StackRobertaModel,
)
from .stack_attention import (
    read_stack as read_stack,
)
from .stack_attention import (
    stack_attention as stack_attention,
)
from .stack_attention import (
    stack_attention_reference as stack_attention_reference,
)
from .stack_errors import (
    ActionError as ActionError,
)
from .stack_errors import (
    BosError as BosError,
)
from .stack_errors import (
    CheckpointError as CheckpointError,
)
from .stack_errors import (
    EncodingError as EncodingError,
)
from .stack_errors import (
    LengthError as LengthError,
)
from .stack_errors import (
    PackingError as PackingError,
)
from .stack_errors import (
    StackCacheError as StackCacheError,
)
from .stack_errors import (
    StackError as StackError,
)
from .stack_losses import balance_loss as balance_loss
from .stack_losses import push_loss as push_loss
from .stack_operations import (
    most_probable_operations as most_probable_operations,
)
from .stack_operations import (
    operations_as_text as operations_as_text,
)
from .stack_operations import (
    stack_attention_from_operations as stack_attention_from_operations,
)
from .stack_operations import (
    stacks_of as stacks_of,
)
from .stack_values import recurrent_values as recurrent_values
from .stack_values import recurrent_values_reference as recurrent_values_reference
