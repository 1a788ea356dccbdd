"""The Belief State Transformer: forward and backward encoders, trained on all pairs of a prefix and a suffix."""

from typing import TYPE_CHECKING

import lazy_loader
import wrapt

from ...registration import register
from .configuration_belief_state import BeliefStateConfig

register(
    BeliefStateConfig,
    {
        "AutoModel": "hf_mech.models.belief_state.modeling_belief_state:BeliefStateModel",
        "AutoModelForCausalLM": "hf_mech.models.belief_state.modeling_belief_state:BeliefStateForCausalLM",
    },
)


@wrapt.when_imported("peft.utils.constants")
def _declare_targets(constants: object) -> None:
    """Default targets for `get_peft_model`, as soon as peft is imported."""
    from .belief_state_lora import declare_targets

    declare_targets()


__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "belief_state_errors": [
            "BeliefStateError",
            "CheckpointError",
            "EncoderError",
            "LengthError",
            "PackingError",
            "PairError",
            "PrefixError",
            "SuffixError",
            "VocabularyError",
        ],
        "belief_state_head": ["TextHead"],
        "belief_state_objective": ["belief_state_loss", "belief_state_loss_reference"],
        "belief_state_outputs": ["BeliefStateCausalLMOutput", "BeliefStateModelOutput"],
        "belief_state_pairs": ["Sequences"],
        "modeling_belief_state": ["BeliefStateForCausalLM", "BeliefStateModel", "BeliefStatePreTrainedModel"],
    },
)

__all__ += ["BeliefStateConfig"]

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .belief_state_errors import BeliefStateError as BeliefStateError
    from .belief_state_errors import CheckpointError as CheckpointError
    from .belief_state_errors import EncoderError as EncoderError
    from .belief_state_errors import LengthError as LengthError
    from .belief_state_errors import PackingError as PackingError
    from .belief_state_errors import PairError as PairError
    from .belief_state_errors import PrefixError as PrefixError
    from .belief_state_errors import SuffixError as SuffixError
    from .belief_state_errors import VocabularyError as VocabularyError
    from .belief_state_head import TextHead as TextHead
    from .belief_state_objective import belief_state_loss as belief_state_loss
    from .belief_state_objective import belief_state_loss_reference as belief_state_loss_reference
    from .belief_state_outputs import BeliefStateCausalLMOutput as BeliefStateCausalLMOutput
    from .belief_state_outputs import BeliefStateModelOutput as BeliefStateModelOutput
    from .belief_state_pairs import Sequences as Sequences
    from .configuration_belief_state import BeliefStateConfig as BeliefStateConfig
    from .modeling_belief_state import BeliefStateForCausalLM as BeliefStateForCausalLM
    from .modeling_belief_state import BeliefStateModel as BeliefStateModel
    from .modeling_belief_state import BeliefStatePreTrainedModel as BeliefStatePreTrainedModel
