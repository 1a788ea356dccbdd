"""Discrete-Attention-only Transformer: programs of the Production System Language compiled into attention weights."""

from typing import Any

import lazy_loader
import wrapt

from hf_mech.models.registration import register

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
    from .configuration_semi_formal import declare_targets

    declare_targets(constants, SemiFormalConfig.model_type)


__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
