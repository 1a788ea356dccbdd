"""M-SAT: a Decision Transformer for multi-discrete actions, with a token for each component and its state."""

from typing import TYPE_CHECKING, Any

import lazy_loader
import wrapt

from ...registration import register
from .configuration_msat import MSATDecisionTransformerConfig

register(
    MSATDecisionTransformerConfig,
    {"AutoModel": "hf_mech.models.msat.modeling_msat:MSATDecisionTransformer"},
)


@wrapt.when_imported("transformers.models.auto.image_processing_auto")
def _register_processor(auto: Any) -> None:
    """The image processor, as soon as transformers' Auto class of image processors is imported."""
    processor = wrapt.lazy_import("hf_mech.models.msat.image_processing_msat", "MSATImageProcessor", interface=type)
    auto.IMAGE_PROCESSOR_MAPPING.register(MSATDecisionTransformerConfig, {"pil": processor}, exist_ok=True)


@wrapt.when_imported("peft.utils.constants")
def _declare_targets(constants: Any) -> None:
    """Default targets for `get_peft_model`, as soon as peft is imported."""
    from .msat_lora import declare_targets

    declare_targets(constants, MSATDecisionTransformerConfig.model_type)


__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "image_processing_msat": ["MSATImageProcessor"],
        "modeling_msat": ["MSATDecisionTransformer", "MSATOutput"],
        "msat_context": ["ActingContext"],
        "msat_errors": [
            "ActionError",
            "CheckpointError",
            "ConfigurationError",
            "ContextError",
            "FrameError",
            "LengthError",
            "MSATError",
            "ReturnError",
            "SpaceError",
            "StateError",
            "TimestepError",
        ],
    },
)

__all__ += ["MSATDecisionTransformerConfig"]

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .configuration_msat import MSATDecisionTransformerConfig as MSATDecisionTransformerConfig
    from .image_processing_msat import MSATImageProcessor as MSATImageProcessor
    from .modeling_msat import MSATDecisionTransformer as MSATDecisionTransformer
    from .modeling_msat import MSATOutput as MSATOutput
    from .msat_context import ActingContext as ActingContext
    from .msat_errors import ActionError as ActionError
    from .msat_errors import CheckpointError as CheckpointError
    from .msat_errors import ConfigurationError as ConfigurationError
    from .msat_errors import ContextError as ContextError
    from .msat_errors import FrameError as FrameError
    from .msat_errors import LengthError as LengthError
    from .msat_errors import MSATError as MSATError
    from .msat_errors import ReturnError as ReturnError
    from .msat_errors import SpaceError as SpaceError
    from .msat_errors import StateError as StateError
    from .msat_errors import TimestepError as TimestepError
