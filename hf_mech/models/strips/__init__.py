"""STRIPS Transformer: learns a planning domain from action traces and hands it back as symbols."""

import lazy_loader

from ...registration import register
from .configuration_strips import StripsTransformerConfig

register(StripsTransformerConfig, {"AutoModel": "hf_mech.models.strips.modeling_strips:StripsTransformer"})

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "modeling_strips": ["StripsTransformer", "StripsTransformerOutput"],
        "strips_attention": ["strips_attention", "strips_attention_linear", "strips_attention_reference"],
        "strips_domain": ["StripsAction", "StripsDomain"],
        "strips_errors": ["CheckpointError", "DomainError", "StripsError", "TraceError"],
        "strips_loss": ["strips_focal_loss"],
        "tokenization_strips": ["strips_tokenizer"],
    },
)

__all__ += ["StripsTransformerConfig"]
