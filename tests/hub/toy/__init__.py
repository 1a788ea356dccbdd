"""A model family of two heads in three files, laid out as hf_mech's own: what is generic is tested on it."""

from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from .configuration_toy import ToyConfig
from .modeling_toy import ToyForCausalLM, ToyModel

AutoConfig.register("toy", ToyConfig, exist_ok=True)
AutoModel.register(ToyConfig, ToyModel, exist_ok=True)
AutoModelForCausalLM.register(ToyConfig, ToyForCausalLM, exist_ok=True)

__all__ = ["ToyConfig", "ToyForCausalLM", "ToyModel"]
