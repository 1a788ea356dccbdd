"""M-SAT: a Decision Transformer for multi-discrete actions, with a token for each component and its state."""

from typing import Any

import lazy_loader
import wrapt

from hf_mech.models.registration import register

from .configuration_msat import MSATDecisionTransformerConfig

register(
    MSATDecisionTransformerConfig,
    {"AutoModel": "hf_mech.models.msat.modeling_msat:MSATDecisionTransformer"},
    adapters_as="gpt2",
)


@wrapt.when_imported("transformers.models.auto.image_processing_auto")
def _register_processor(auto: Any) -> None:
    """The image processor, as soon as transformers' Auto class of image processors is imported."""
    processor = wrapt.lazy_import("hf_mech.models.msat.image_processing_msat", "MSATImageProcessor", interface=type)
    auto.IMAGE_PROCESSOR_MAPPING.register(MSATDecisionTransformerConfig, {"pil": processor}, exist_ok=True)


__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
