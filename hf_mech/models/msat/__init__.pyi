from .configuration_msat import MSATDecisionTransformerConfig as MSATDecisionTransformerConfig
from .image_processing_msat import MSATImageProcessor as MSATImageProcessor
from .modeling_msat import MSATDecisionTransformer as MSATDecisionTransformer
from .modeling_msat import MSATOutput as MSATOutput
from .msat_context import ActingContext as ActingContext
from .msat_errors import (
    ActionError as ActionError,
)
from .msat_errors import (
    CheckpointError as CheckpointError,
)
from .msat_errors import (
    ConfigurationError as ConfigurationError,
)
from .msat_errors import (
    ContextError as ContextError,
)
from .msat_errors import (
    FrameError as FrameError,
)
from .msat_errors import (
    LengthError as LengthError,
)
from .msat_errors import (
    MSATError as MSATError,
)
from .msat_errors import (
    ReturnError as ReturnError,
)
from .msat_errors import (
    SpaceError as SpaceError,
)
from .msat_errors import (
    StateError as StateError,
)
from .msat_errors import (
    TimestepError as TimestepError,
)
