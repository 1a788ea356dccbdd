"""The toy family's two heads."""

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput
from transformers.modeling_utils import PreTrainedModel

from .configuration_toy import ToyConfig
from .toy_layer import ToyLayer


class ToyPreTrainedModel(PreTrainedModel):
    """What both heads share."""

    config_class = ToyConfig
    base_model_prefix = "model"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        for parameter in module.parameters(recurse=False):
            init.normal_(parameter)


class ToyModel(ToyPreTrainedModel):
    """Embedding and one layer."""

    _auto_class = "AutoModel"

    def __init__(self, config: ToyConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layer = ToyLayer(config.hidden_size)
        self.post_init()

    def forward(self, input_ids: Tensor) -> BaseModelOutput:
        """[batch, length] to [batch, length, hidden]."""
        return BaseModelOutput(last_hidden_state=self.layer(self.embedding(input_ids)))


class ToyForCausalLM(ToyPreTrainedModel):
    """Logits on top."""

    _auto_class = "AutoModelForCausalLM"

    def __init__(self, config: ToyConfig) -> None:
        super().__init__(config)
        self.model = ToyModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    def forward(self, input_ids: Tensor) -> CausalLMOutput:
        """[batch, length] to [batch, length, vocabulary]."""
        return CausalLMOutput(logits=self.lm_head(self.model(input_ids).last_hidden_state))
