from .belief_state_inputs import (
    BeliefStateCausalLMOutput as BeliefStateCausalLMOutput,
)
from .belief_state_inputs import (
    BeliefStateModelOutput as BeliefStateModelOutput,
)
from .belief_state_objective import TextHead as TextHead
from .belief_state_objective import (
    belief_state_loss as belief_state_loss,
)
from .belief_state_objective import (
    belief_state_loss_reference as belief_state_loss_reference,
)
from .belief_state_pairs import Sequences as Sequences
from .configuration_belief_state import BeliefStateConfig as BeliefStateConfig
from .configuration_belief_state import BeliefStateError as BeliefStateError
from .modeling_belief_state import (
    BeliefStateForCausalLM as BeliefStateForCausalLM,
)
from .modeling_belief_state import (
    BeliefStateModel as BeliefStateModel,
)
from .modeling_belief_state import (
    BeliefStatePreTrainedModel as BeliefStatePreTrainedModel,
)
