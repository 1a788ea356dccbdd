from .configuration_dat import DATConfig as DATConfig
from .configuration_semi_formal import SemiFormalConfig as SemiFormalConfig
from .dat_generation import DATCache as DATCache
from .dat_program import (
    DATEmbeddingError as DATEmbeddingError,
)
from .dat_program import (
    DATError as DATError,
)
from .dat_program import (
    DATLengthError as DATLengthError,
)
from .dat_program import (
    DATRepeatError as DATRepeatError,
)
from .dat_program import (
    DATVocabularyError as DATVocabularyError,
)
from .dat_states import LayerState as LayerState
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
