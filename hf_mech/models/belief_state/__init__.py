"""The Belief State Transformer: forward and backward encoders, trained on all pairs of a prefix and a suffix."""

import lazy_loader

from hf_mech.models.registration import register

from .configuration_belief_state import BeliefStateConfig

register(
    BeliefStateConfig,
    {
        "AutoModel": "hf_mech.models.belief_state.modeling_belief_state:BeliefStateModel",
        "AutoModelForCausalLM": "hf_mech.models.belief_state.modeling_belief_state:BeliefStateForCausalLM",
    },
    adapters_as="gpt2",
    pipelines={
        "infilling": (
            "hf_mech.models.belief_state.belief_state_infilling:InfillingPipeline",
            "AutoModelForCausalLM",
        )
    },
)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
