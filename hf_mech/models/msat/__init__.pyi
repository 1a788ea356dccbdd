from .configuration_msat import MSATDecisionTransformerConfig as MSATDecisionTransformerConfig
from .image_processing_msat import MSATImageProcessor as MSATImageProcessor
from .modeling_msat import MSATDecisionTransformer as MSATDecisionTransformer
from .modeling_msat import MSATOutput as MSATOutput
from .msat_context import ActingContext as ActingContext
from .msat_errors import MSATError as MSATError
