from .belief_state_errors import (
    BeliefStateError as BeliefStateError,
)
from .belief_state_errors import (
    CheckpointError as CheckpointError,
)
from .belief_state_errors import (
    EncoderError as EncoderError,
)
from .belief_state_errors import (
    LengthError as LengthError,
)
from .belief_state_errors import (
    PackingError as PackingError,
)
from .belief_state_errors import (
    PairError as PairError,
)
from .belief_state_errors import (
    PrefixError as PrefixError,
)
from .belief_state_errors import (
    SuffixError as SuffixError,
)
from .belief_state_errors import (
    VocabularyError as VocabularyError,
)
from .belief_state_head import TextHead as TextHead
from .belief_state_objective import (
    belief_state_loss as belief_state_loss,
)
from .belief_state_objective import (
    belief_state_loss_reference as belief_state_loss_reference,
)
from .belief_state_outputs import (
    BeliefStateCausalLMOutput as BeliefStateCausalLMOutput,
)
from .belief_state_outputs import (
    BeliefStateModelOutput as BeliefStateModelOutput,
)
from .belief_state_pairs import Sequences as Sequences
from .configuration_belief_state import BeliefStateConfig as BeliefStateConfig
from .modeling_belief_state import (
    BeliefStateForCausalLM as BeliefStateForCausalLM,
)
from .modeling_belief_state import (
    BeliefStateModel as BeliefStateModel,
)
from .modeling_belief_state import (
    BeliefStatePreTrainedModel as BeliefStatePreTrainedModel,
)
