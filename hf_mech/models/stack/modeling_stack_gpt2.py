"""StackGPT2: GPT-2 with a stack in every layer (Section 3.3), on transformers' own GPT-2."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.gpt2.modeling_gpt2 import (
    GPT2Attention,
    GPT2Block,
    GPT2ForQuestionAnswering,
    GPT2ForSequenceClassification,
    GPT2ForTokenClassification,
    GPT2LMHeadModel,
    GPT2Model,
    GPT2PreTrainedModel,
    eager_attention_forward,
)

from .configuration_stack import StackError, StackGPT2Config
from .position_encodings import ENCODINGS, encode, position_embedding
from .stack_inputs import check_length, model_inputs, past_length
from .stack_layer import StackedLayer, stack_of_layer
from .stack_outputs import (
    counts_items,
    ignores_padding,
    returns_stacks,
)
from .stack_pretrained import StackPreTrained, checkpointing_waits


class StackGPT2Attention(GPT2Attention):
    """GPT-2's self-attention with an encoding of relative positions (Appendix C)."""

    def __init__(self, config: StackGPT2Config, layer_idx: int) -> None:
        super().__init__(config, layer_idx=layer_idx)
        self.encoding = ENCODINGS[config.position_embedding_type](config.hidden_size, config.num_attention_heads)

    def forward(
        self,
        hidden_states: Tensor,
        past_key_values: Cache | None = None,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        parts = self.c_attn(hidden_states).split(self.split_size, dim=2)
        query, key, value = (part.unflatten(2, (-1, self.head_dim)).transpose(1, 2) for part in parts)
        if isinstance(past_key_values, EncoderDecoderCache):
            past_key_values = past_key_values.self_attention_cache
        length = query.shape[2] + past_length(past_key_values, self.layer_idx)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        query, key, attention_mask = encode(self, query, key, attention_mask, length)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        dropout = self.attn_dropout.p if self.training else 0.0
        kwargs.update(dropout=dropout, scaling=self.scaling)
        attended, weights = attend(self, query, key, value, attention_mask, **kwargs)
        return self.resid_dropout(self.c_proj(attended.flatten(2).contiguous())), weights


class StackGPT2Block(StackedLayer, GPT2Block):
    """One layer: GPT-2's two sub-layers, then the stack's (Eq. 26)."""

    def __init__(self, config: StackGPT2Config, layer_idx: int) -> None:
        super().__init__(config, layer_idx)
        if config.position_embedding_type in ENCODINGS:
            self.attn = StackGPT2Attention(config, layer_idx)
        self.stack = stack_of_layer(config, layer_idx)


class StackGPT2PreTrainedModel(StackPreTrained, GPT2PreTrainedModel):
    """The base of all StackGPT2 models: configuration, initialisation, loading."""

    config_class = StackGPT2Config
    config: StackGPT2Config
    _no_split_modules = ["StackGPT2Block"]


class StackGPT2Model(StackGPT2PreTrainedModel, GPT2Model):
    r"""GPT-2's layers, each with a stack, without a head on top.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.stack import StackGPT2Config, StackGPT2Model

    >>> config = StackGPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=50, bos_token_id=0, eos_token_id=1)
    >>> outputs = StackGPT2Model(config)(torch.tensor([[0, 7, 8, 9]]), output_stack_attentions=True)
    >>> [tuple(alpha.shape) for alpha in outputs.stack_attentions]
    [(1, 4, 4), (1, 4, 4)]

    ```
    """

    _auto_class = "AutoModel"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: StackGPT2Config) -> None:
        with checkpointing_waits(config):
            super().__init__(config)
        self.h = nn.ModuleList([StackGPT2Block(config, layer_idx=i) for i in range(config.num_hidden_layers)])
        if config.position_embedding_type != "learned":
            self.wpe = position_embedding(config.position_embedding_type, config.hidden_size)
        self.post_init()

    @returns_stacks()
    def forward(
        self,
        input_ids: Tensor | None = None,  # [batch, new]
        past_key_values: Cache | None = None,
        attention_mask: Tensor | None = None,  # [batch, past + new], or [batch, heads, new, past + new]
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,  # [batch, new]
        inputs_embeds: Tensor | None = None,  # [batch, new, hidden]
        **kwargs: Any,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """GPT-2's forward pass, with additional arguments:

        Args:
            stack_operations: given operations instead of learned ones (Section 3.4), the same for all layers,
                [batch, new]: 0 push, k pop k times, `multi_pop` + 1 no-op. All positions are then computed at once.
            output_stack_attentions: return `stack_attentions` and `stack_actions`, one of each a layer.

        Position ids, if not given, count only the tokens that `attention_mask` marks as real; without a stack they
        count all tokens, as in GPT-2. Several sequences in a row are told apart by [`stack_inputs`].

        Raises:
            StackError: operations that do not fit; `stack_bottom="bos_token"`, and a sequence begins with another token
                (Section 3.2); more positions than the model's learned embeddings; it is unknown where the sequences of
                a row begin, or a cache is to hold several; a cache that cannot hold a stack.
        """
        given = input_ids if input_ids is not None else inputs_embeds
        if given is None:
            raise StackError("Give input_ids or inputs_embeds, got neither.")
        told = position_ids is not None
        attention_mask, position_ids = model_inputs(
            self.config,
            given,
            attention_mask,
            position_ids,
            past_key_values,
            kwargs,
            causal=getattr(self.config, "is_causal", True),
            dtype=self.wte.weight.dtype if inputs_embeds is None else inputs_embeds.dtype,
        )
        check_length(self.config, position_ids, told, given.shape[1], past_length(past_key_values))
        return super().forward(
            input_ids,
            past_key_values,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            **kwargs,
        )


class StackGPT2ForCausalLM(StackGPT2PreTrainedModel, GPT2LMHeadModel):
    r"""StackGPT2 with a language modelling head, its weights tied to the embeddings.

    `StackGPT2ForCausalLM.from_pretrained` also takes stock GPT-2 checkpoints; only the stacks are then new.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.stack import StackGPT2Config, StackGPT2ForCausalLM

    >>> config = StackGPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=50, bos_token_id=0, eos_token_id=1)
    >>> model = StackGPT2ForCausalLM(config)
    >>> model.generate(torch.tensor([[0, 7, 8, 9]]), max_new_tokens=3, min_new_tokens=3, pad_token_id=1).shape
    torch.Size([1, 7])

    ```
    """

    _auto_class = "AutoModelForCausalLM"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: StackGPT2Config) -> None:
        super(GPT2LMHeadModel, self).__init__(config)  # not GPT2LMHeadModel's, which would build a stock GPT-2
        self.transformer = StackGPT2Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    forward = returns_stacks()(GPT2LMHeadModel.forward)


class StackGPT2ForSequenceClassification(StackGPT2PreTrainedModel, GPT2ForSequenceClassification):
    """StackGPT2 with a linear head on the last token of every sequence."""

    _auto_class = "AutoModelForSequenceClassification"
    accepts_loss_kwargs = False  # its loss is a mean over the batch, whatever `num_items_in_batch` says

    def __init__(self, config: StackGPT2Config) -> None:
        super(GPT2ForSequenceClassification, self).__init__(config)
        self.num_labels = config.num_labels
        self.transformer = StackGPT2Model(config)
        self.score = nn.Linear(config.hidden_size, self.num_labels, bias=False)
        self.post_init()

    forward = returns_stacks(of_rows=True)(GPT2ForSequenceClassification.forward)


class StackGPT2ForTokenClassification(StackGPT2PreTrainedModel, GPT2ForTokenClassification):
    """StackGPT2 with a linear head on every token."""

    _auto_class = "AutoModelForTokenClassification"

    def __init__(self, config: StackGPT2Config) -> None:
        super(GPT2ForTokenClassification, self).__init__(config)
        self.num_labels = config.num_labels
        self.transformer = StackGPT2Model(config)
        rates = (getattr(config, name, None) for name in ("classifier_dropout", "hidden_dropout"))
        self.dropout = nn.Dropout(next((rate for rate in rates if rate is not None), 0.1))  # transformers' defaults
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    forward = returns_stacks()(counts_items(GPT2ForTokenClassification.forward))


class StackGPT2ForQuestionAnswering(StackGPT2PreTrainedModel, GPT2ForQuestionAnswering):
    """StackGPT2 with two linear heads on every token, for the first and the last token of an answer.

    The loss of a model with stacks ignores the logits of padding; transformers' lets padding compete for both ends.
    """

    _auto_class = "AutoModelForQuestionAnswering"
    accepts_loss_kwargs = False  # its loss is a mean over the batch, whatever `num_items_in_batch` says

    def __init__(self, config: StackGPT2Config) -> None:
        super(GPT2ForQuestionAnswering, self).__init__(config)
        self.num_labels = config.num_labels
        self.transformer = StackGPT2Model(config)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.post_init()

    forward = returns_stacks(of_rows=True)(ignores_padding(GPT2ForQuestionAnswering.forward))
