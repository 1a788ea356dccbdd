"""STRIPS Transformer: learns a planning domain from action traces and returns it as symbols."""

import lazy_loader

from hf_mech.models.registration import register

from .configuration_strips import StripsTransformerConfig

_MODELS = "hf_mech.models.strips.modeling_strips"

register(
    StripsTransformerConfig,
    {
        "AutoModel": f"{_MODELS}:StripsTransformer",
        "AutoModelForTokenClassification": f"{_MODELS}:StripsTransformerForTokenClassification",
    },
    pipelines={"action-verdicts": ("hf_mech.models.strips.strips_verdicts:ActionVerdictsPipeline", "AutoModel")},
)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
