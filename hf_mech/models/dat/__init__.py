"""Discrete-Attention-only Transformer: programs of the Production System Language compiled into attention weights."""

import lazy_loader

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
    pipelines={
        "template-completion": (
            "hf_mech.models.dat.dat_completion:TemplateCompletionPipeline",
            "AutoModelForCausalLM",
        )
    },
)
register(
    SemiFormalConfig,
    {
        "AutoModel": "hf_mech.models.dat.modeling_semi_formal:SemiFormalModel",
        "AutoModelForSequenceClassification": (
            "hf_mech.models.dat.modeling_semi_formal:SemiFormalForSequenceClassification"
        ),
    },
    lora_targets=["attend"],  # queries, keys and values of the unbiased heads
)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
