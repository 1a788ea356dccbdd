"""The Belief State Transformer: forward and backward encoders, trained on all pairs of a prefix and a suffix."""

import lazy_loader
import wrapt

from hf_mech.models.registration import register

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


__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
