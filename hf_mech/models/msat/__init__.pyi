from .configuration_msat import MSATDecisionTransformerConfig as MSATDecisionTransformerConfig
from .configuration_msat import MSATError as MSATError
from .image_processing_msat import MSATImageProcessor as MSATImageProcessor
from .modeling_msat import MSATDecisionTransformer as MSATDecisionTransformer
from .modeling_msat import MSATOutput as MSATOutput
from .msat_acting import ActingContext as ActingContext
