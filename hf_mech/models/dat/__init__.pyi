from .configuration_dat import DATConfig as DATConfig
from .configuration_semi_formal import SemiFormalConfig as SemiFormalConfig
from .dat_cache import DATCache as DATCache
from .dat_errors import (
    DATBackendError as DATBackendError,
)
from .dat_errors import (
    DATCheckpointError as DATCheckpointError,
)
from .dat_errors import (
    DATConfigError as DATConfigError,
)
from .dat_errors import (
    DATEmbeddingError as DATEmbeddingError,
)
from .dat_errors import (
    DATError as DATError,
)
from .dat_errors import (
    DATInputError as DATInputError,
)
from .dat_errors import (
    DATLengthError as DATLengthError,
)
from .dat_errors import (
    DATRepeatError as DATRepeatError,
)
from .dat_errors import (
    DATVocabularyError as DATVocabularyError,
)
from .dat_trace import LayerState as LayerState
from .modeling_dat import DATForCausalLM as DATForCausalLM
from .modeling_dat import DATModel as DATModel
from .modeling_dat import DATModelOutput as DATModelOutput
from .modeling_semi_formal import (
    SemiFormalForSequenceClassification as SemiFormalForSequenceClassification,
)
from .modeling_semi_formal import (
    SemiFormalModel as SemiFormalModel,
)
from .modeling_semi_formal import (
    SemiFormalModelOutput as SemiFormalModelOutput,
)
from .tokenization_dat import DATTokenizer as DATTokenizer
