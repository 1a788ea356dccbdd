"""STRIPS Transformer: learns a planning domain from action traces and returns it as symbols."""

from typing import TYPE_CHECKING

import lazy_loader

from ...registration import register
from .configuration_strips import StripsTransformerConfig

_MODELS = "hf_mech.models.strips.modeling_strips"

register(
    StripsTransformerConfig,
    {
        "AutoModel": f"{_MODELS}:StripsTransformer",
        "AutoModelForTokenClassification": f"{_MODELS}:StripsTransformerForTokenClassification",
    },
)

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "modeling_strips": [
            "StripsTransformer",
            "StripsTransformerForTokenClassification",
            "StripsTransformerOutput",
        ],
        "strips_attention": ["strips_attention", "strips_attention_linear", "strips_attention_reference"],
        "strips_domain": ["StripsAction", "StripsDomain"],
        "strips_errors": ["CheckpointError", "DomainError", "StripsError", "TraceError"],
        "strips_loss": ["strips_focal_loss"],
        "tokenization_strips": ["strips_tokenizer"],
    },
)

__all__ += ["StripsTransformerConfig"]

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .configuration_strips import StripsTransformerConfig as StripsTransformerConfig
    from .modeling_strips import StripsTransformer as StripsTransformer
    from .modeling_strips import StripsTransformerForTokenClassification as StripsTransformerForTokenClassification
    from .modeling_strips import StripsTransformerOutput as StripsTransformerOutput
    from .strips_attention import strips_attention as strips_attention
    from .strips_attention import strips_attention_linear as strips_attention_linear
    from .strips_attention import strips_attention_reference as strips_attention_reference
    from .strips_domain import StripsAction as StripsAction
    from .strips_domain import StripsDomain as StripsDomain
    from .strips_errors import CheckpointError as CheckpointError
    from .strips_errors import DomainError as DomainError
    from .strips_errors import StripsError as StripsError
    from .strips_errors import TraceError as TraceError
    from .strips_loss import strips_focal_loss as strips_focal_loss
    from .tokenization_strips import strips_tokenizer as strips_tokenizer
