"""Discrete-Attention-only Transformer: programs of the Production System Language compiled into attention weights."""

from typing import TYPE_CHECKING, Any

import lazy_loader
import wrapt

from ...registration import register
from .configuration_dat import DATConfig
from .configuration_semi_formal import SemiFormalConfig

register(
    DATConfig,
    {
        "AutoModel": "hf_mech.models.dat.modeling_dat:DATModel",
        "AutoModelForCausalLM": "hf_mech.models.dat.modeling_dat:DATForCausalLM",
    },
    tokenizer="hf_mech.models.dat.tokenization_dat:DATTokenizer",
)
register(
    SemiFormalConfig,
    {
        "AutoModel": "hf_mech.models.dat.modeling_semi_formal:SemiFormalModel",
        "AutoModelForSequenceClassification": (
            "hf_mech.models.dat.modeling_semi_formal:SemiFormalForSequenceClassification"
        ),
    },
)


@wrapt.when_imported("peft.utils.constants")
def _declare_targets(constants: Any) -> None:
    """Default targets for `get_peft_model`, as soon as peft is imported."""
    from .dat_lora import declare_targets

    declare_targets(constants, SemiFormalConfig.model_type)


__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dat_cache": ["DATCache"],
        "dat_errors": [
            "DATBackendError",
            "DATCheckpointError",
            "DATConfigError",
            "DATEmbeddingError",
            "DATError",
            "DATInputError",
            "DATLengthError",
            "DATRepeatError",
            "DATVocabularyError",
        ],
        "dat_trace": ["LayerState"],
        "modeling_dat": ["DATForCausalLM", "DATModel", "DATModelOutput"],
        "modeling_semi_formal": [
            "SemiFormalForSequenceClassification",
            "SemiFormalModel",
            "SemiFormalModelOutput",
        ],
        "tokenization_dat": ["DATTokenizer"],
    },
)

__all__ += ["DATConfig", "SemiFormalConfig"]

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .configuration_dat import DATConfig as DATConfig
    from .configuration_semi_formal import SemiFormalConfig as SemiFormalConfig
    from .dat_cache import DATCache as DATCache
    from .dat_errors import DATBackendError as DATBackendError
    from .dat_errors import DATCheckpointError as DATCheckpointError
    from .dat_errors import DATConfigError as DATConfigError
    from .dat_errors import DATEmbeddingError as DATEmbeddingError
    from .dat_errors import DATError as DATError
    from .dat_errors import DATInputError as DATInputError
    from .dat_errors import DATLengthError as DATLengthError
    from .dat_errors import DATRepeatError as DATRepeatError
    from .dat_errors import DATVocabularyError as DATVocabularyError
    from .dat_trace import LayerState as LayerState
    from .modeling_dat import DATForCausalLM as DATForCausalLM
    from .modeling_dat import DATModel as DATModel
    from .modeling_dat import DATModelOutput as DATModelOutput
    from .modeling_semi_formal import SemiFormalForSequenceClassification as SemiFormalForSequenceClassification
    from .modeling_semi_formal import SemiFormalModel as SemiFormalModel
    from .modeling_semi_formal import SemiFormalModelOutput as SemiFormalModelOutput
    from .tokenization_dat import DATTokenizer as DATTokenizer
