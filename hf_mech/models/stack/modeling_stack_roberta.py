"""StackRoberta: RoBERTa with a stack in every layer (Section 3.3), on transformers' own RoBERTa."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_outputs import (
    BaseModelOutputWithPoolingAndCrossAttentions,
    MultipleChoiceModelOutput,
    SequenceClassifierOutput,
)
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.roberta.modeling_roberta import (
    RobertaClassificationHead,
    RobertaForCausalLM,
    RobertaForMaskedLM,
    RobertaForMultipleChoice,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaLayer,
    RobertaLMHead,
    RobertaModel,
    RobertaPreTrainedModel,
    RobertaSelfAttention,
    eager_attention_forward,
)

from .configuration_stack import StackError, StackRobertaConfig
from .position_encodings import ENCODINGS, encode, position_embedding
from .stack_inputs import check_length, model_inputs, past_length
from .stack_layer import StackedLayer, stack_of_layer
from .stack_outputs import (
    counts_items,
    ignores_padding,
    returns_stacks,
)
from .stack_pretrained import StackPreTrained, checkpointing_waits


def first_token(hidden: Tensor, start: Tensor) -> Tensor:
    """The hidden states at the columns `start` [batch]: [batch, length, hidden] to [batch, 1, hidden].

    RoBERTa takes the first column, which is padding if the padding is on the left.
    """
    start = start.clamp(max=hidden.shape[1] - 1)
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), start][:, None]


class StackRobertaSelfAttention(RobertaSelfAttention):
    """RoBERTa's self-attention with an encoding of relative positions (Appendix C)."""

    def __init__(self, config: StackRobertaConfig, layer_idx: int) -> None:
        super().__init__(config, is_causal=config.is_decoder, layer_idx=layer_idx)
        self.encoding = ENCODINGS[config.position_embedding_type](config.hidden_size, config.num_attention_heads)

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        parts = (self.query(hidden_states), self.key(hidden_states), self.value(hidden_states))
        query, key, value = (part.unflatten(2, (-1, self.attention_head_size)).transpose(1, 2) for part in parts)
        if isinstance(past_key_values, EncoderDecoderCache):
            past_key_values = past_key_values.self_attention_cache
        length = query.shape[2] + past_length(past_key_values, self.layer_idx)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        query, key, attention_mask = encode(self, query, key, attention_mask, length)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        dropout = self.dropout.p if self.training else 0.0
        attended, weights = attend(
            self, query, key, value, attention_mask, dropout=dropout, scaling=self.scaling, **kwargs
        )
        return attended.flatten(2).contiguous(), weights


class StackRobertaLayer(StackedLayer, RobertaLayer):
    """One layer: RoBERTa's two sub-layers, then the stack's (Eq. 26)."""

    def __init__(self, config: StackRobertaConfig, layer_idx: int) -> None:
        super().__init__(config, layer_idx)
        if config.position_embedding_type in ENCODINGS:
            self.attention.self = StackRobertaSelfAttention(config, layer_idx)
        self.stack = stack_of_layer(config, layer_idx)


class StackRobertaPreTrainedModel(StackPreTrained, RobertaPreTrainedModel):
    """The base of all StackRoberta models: configuration, initialisation, loading."""

    config_class = StackRobertaConfig
    config: StackRobertaConfig
    _no_split_modules = ["RobertaEmbeddings", "StackRobertaLayer"]


class StackRobertaModel(StackRobertaPreTrainedModel, RobertaModel):
    r"""RoBERTa's layers, each with a stack, without a head on top.

    An encoder, or with `is_decoder=True` in the configuration a decoder with the future mask of Eq. 5.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.stack import StackRobertaConfig, StackRobertaModel

    >>> config = StackRobertaConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=50)
    >>> outputs = StackRobertaModel(config)(torch.tensor([[0, 7, 8, 9]]), output_stack_attentions=True)
    >>> [tuple(alpha.shape) for alpha in outputs.stack_attentions]
    [(1, 4, 4), (1, 4, 4)]

    ```
    """

    _auto_class = "AutoModel"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: StackRobertaConfig, add_pooling_layer: bool = True) -> None:
        with checkpointing_waits(config):
            super().__init__(config, add_pooling_layer=add_pooling_layer)
        layers = [StackRobertaLayer(config, layer_idx=i) for i in range(config.num_hidden_layers)]
        self.encoder.layer = nn.ModuleList(layers)
        if config.position_embedding_type != "learned":
            self.embeddings.position_embeddings = position_embedding(config.position_embedding_type, config.hidden_size)
        self.post_init()

    @returns_stacks()
    def forward(
        self,
        input_ids: Tensor | None = None,  # [batch, new]
        attention_mask: Tensor | None = None,  # [batch, past + new], or [batch, heads, new, past + new]
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,  # [batch, new], from `pad_token_id` + 1; without a cache also from 0
        inputs_embeds: Tensor | None = None,  # [batch, new, hidden]
        past_key_values: Cache | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPoolingAndCrossAttentions:
        """RoBERTa's forward pass, with additional arguments:

        Args:
            stack_operations: given operations instead of learned ones (Section 3.4), the same for all layers,
                [batch, new]: 0 push, k pop k times, `multi_pop` + 1 no-op. All positions are then computed at once.
            output_stack_attentions: return `stack_attentions` and `stack_actions`, one of each a layer.

        Position ids, if not given, count only the tokens that `attention_mask` marks as real; without a stack they
        count the ids other than `pad_token_id`, as in RoBERTa. Several sequences in a row are told apart by
        [`stack_inputs`]; the pooled output is then that of the first one.

        Raises:
            StackError: operations that do not fit; `stack_bottom="bos_token"`, and a sequence begins with another token
                (Section 3.2); more positions than the model's learned embeddings; it is unknown where the sequences of
                a row begin, or a cache is to hold several; a cache that cannot hold a stack.
        """
        given = input_ids if input_ids is not None else inputs_embeds
        if given is None:
            raise StackError("Give input_ids or inputs_embeds, got neither.")
        new, past = given.shape[1], past_length(past_key_values)
        first = self.embeddings.padding_idx + 1  # RoBERTa counts its positions from here
        told = position_ids is not None
        if token_type_ids is None:  # RoBERTa's own default is a buffer that ends with the learned positions
            token_type_ids = torch.zeros(given.shape[:2], dtype=torch.long, device=given.device)
        attention_mask, position_ids = model_inputs(
            self.config,
            given,
            attention_mask,
            position_ids,
            past_key_values,
            kwargs,
            causal=self.config.is_decoder,
            dtype=self.embeddings.word_embeddings.weight.dtype if inputs_embeds is None else inputs_embeds.dtype,
            first=first,
        )
        if position_ids is None and self.config.use_stack:
            position_ids = (torch.arange(new, device=given.device) + past + first).expand(given.shape[:2])
        elif position_ids is None and input_ids is not None:
            position_ids = self.embeddings.create_position_ids_from_input_ids(
                input_ids, self.embeddings.padding_idx, past
            )
        check_length(self.config, position_ids, told, new, past, first)
        outputs = super().forward(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            past_key_values=past_key_values,
            **kwargs,
        )
        if self.config.use_stack and self.pooler is not None and kwargs["stack_context"].start is not None:
            first = first_token(outputs.last_hidden_state, kwargs["stack_context"].start)
            outputs.pooler_output = self.pooler(first)
        return outputs


class StackRobertaForMaskedLM(StackRobertaPreTrainedModel, RobertaForMaskedLM):
    r"""StackRoberta with a masked language modelling head.

    `StackRobertaForMaskedLM.from_pretrained` also takes stock RoBERTa checkpoints; only the stacks are then new.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.stack import StackRobertaConfig, StackRobertaForMaskedLM

    >>> config = StackRobertaConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=50)
    >>> StackRobertaForMaskedLM(config)(torch.tensor([[0, 7, 8, 9]])).logits.shape
    torch.Size([1, 4, 50])

    ```
    """

    _auto_class = "AutoModelForMaskedLM"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: StackRobertaConfig) -> None:
        super(RobertaForMaskedLM, self).__init__(config)  # not RobertaForMaskedLM's, which would build a stock RoBERTa
        self.roberta = StackRobertaModel(config, add_pooling_layer=False)
        self.lm_head = RobertaLMHead(config)
        self.post_init()

    forward = returns_stacks()(counts_items(RobertaForMaskedLM.forward))


class StackRobertaForCausalLM(StackRobertaPreTrainedModel, RobertaForCausalLM):
    r"""StackRoberta with a causal language modelling head; the configuration needs `is_decoder=True`.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.stack import StackRobertaConfig, StackRobertaForCausalLM

    >>> config = StackRobertaConfig(
    ...     num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=50, is_decoder=True
    ... )
    >>> model = StackRobertaForCausalLM(config)
    >>> model.generate(torch.tensor([[0, 7, 8, 9]]), max_new_tokens=3, min_new_tokens=3).shape
    torch.Size([1, 7])

    ```
    """

    _auto_class = "AutoModelForCausalLM"  # a saved checkpoint carries this code and loads without the package

    def __init__(self, config: StackRobertaConfig) -> None:
        if not config.is_decoder:
            raise StackError(
                "A causal language model must not see the future: the configuration says is_decoder=False, expected "
                "True; pass is_decoder=True, or use StackRobertaForMaskedLM."
            )
        super(RobertaForCausalLM, self).__init__(config)  # not RobertaForCausalLM's, which would build a stock RoBERTa
        self.roberta = StackRobertaModel(config, add_pooling_layer=False)
        self.lm_head = RobertaLMHead(config)
        self.post_init()

    forward = returns_stacks()(RobertaForCausalLM.forward)

    def prepare_inputs_for_generation(
        self,
        *args: Any,
        inputs_embeds: Tensor | None = None,  # named: generate() takes embeddings only if it finds the name here
        **kwargs: Any,
    ) -> dict[str, Any]:
        """As in transformers, but without its `position_ids`: they begin at 0, RoBERTa's after `pad_token_id`."""
        inputs = super().prepare_inputs_for_generation(*args, inputs_embeds=inputs_embeds, **kwargs)
        inputs.pop("position_ids", None)
        return inputs


class StackRobertaForSequenceClassification(StackRobertaPreTrainedModel, RobertaForSequenceClassification):
    """StackRoberta with RoBERTa's head of two layers on the first token of every sequence."""

    _auto_class = "AutoModelForSequenceClassification"
    accepts_loss_kwargs = False  # regression and several labels a row are means, whatever `num_items_in_batch` says

    def __init__(self, config: StackRobertaConfig) -> None:
        super(RobertaForSequenceClassification, self).__init__(config)
        self.num_labels = config.num_labels
        self.roberta = StackRobertaModel(config, add_pooling_layer=False)
        self.classifier = RobertaClassificationHead(config)
        self.post_init()

    @returns_stacks(of_rows=True)
    def forward(
        self,
        input_ids: Tensor | None = None,  # [batch, length]
        attention_mask: Tensor | None = None,  # [batch, length]
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,  # [batch], or [batch, labels] for several labels a row
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """As in transformers, but with stacks the head reads the first token that is not padding.

        transformers' head reads the first column; without a stack this one does, too.
        """
        outputs = self.roberta(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, **kwargs)
        hidden = outputs.last_hidden_state
        if self.config.use_stack and attention_mask is not None and attention_mask.dim() == 2:
            hidden = first_token(hidden, attention_mask.long().argmax(1))
        logits = self.classifier(hidden)
        loss = None if labels is None else self.loss_function(labels, logits, self.config)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


class StackRobertaForTokenClassification(StackRobertaPreTrainedModel, RobertaForTokenClassification):
    """StackRoberta with a linear head on every token."""

    _auto_class = "AutoModelForTokenClassification"

    def __init__(self, config: StackRobertaConfig) -> None:
        super(RobertaForTokenClassification, self).__init__(config)
        self.num_labels = config.num_labels
        self.roberta = StackRobertaModel(config, add_pooling_layer=False)
        rate = config.hidden_dropout_prob if config.classifier_dropout is None else config.classifier_dropout
        self.dropout = nn.Dropout(rate)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    forward = returns_stacks()(counts_items(RobertaForTokenClassification.forward))


class StackRobertaForQuestionAnswering(StackRobertaPreTrainedModel, RobertaForQuestionAnswering):
    """StackRoberta with two linear heads on every token, for the first and the last token of an answer.

    The loss of a model with stacks ignores the logits of padding; transformers' lets padding compete for both ends.
    """

    _auto_class = "AutoModelForQuestionAnswering"
    accepts_loss_kwargs = False  # its loss is a mean over the batch, whatever `num_items_in_batch` says

    def __init__(self, config: StackRobertaConfig) -> None:
        super(RobertaForQuestionAnswering, self).__init__(config)
        self.num_labels = config.num_labels
        self.roberta = StackRobertaModel(config, add_pooling_layer=False)
        self.qa_outputs = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    forward = returns_stacks(of_rows=True)(ignores_padding(RobertaForQuestionAnswering.forward))


class StackRobertaForMultipleChoice(StackRobertaPreTrainedModel, RobertaForMultipleChoice):
    """StackRoberta with a linear head on the pooled output of every choice.

    Inputs are [batch, choices, length], `stack_operations` too. Hidden states, attentions and stack attentions come
    with batch and choices in one dimension, [batch * choices, length, ...], as in transformers.
    """

    _auto_class = "AutoModelForMultipleChoice"
    accepts_loss_kwargs = False  # its loss is a mean over the batch, whatever `num_items_in_batch` says

    def __init__(self, config: StackRobertaConfig) -> None:
        super(RobertaForMultipleChoice, self).__init__(config)
        self.roberta = StackRobertaModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.post_init()

    @returns_stacks(of_rows=True)
    @functools.wraps(RobertaForMultipleChoice.forward)
    def forward(self, *args: Any, stack_operations: Tensor | None = None, **kwargs: Any) -> MultipleChoiceModelOutput:
        if stack_operations is not None:
            kwargs["stack_operations"] = stack_operations.flatten(0, 1)
        return RobertaForMultipleChoice.forward(self, *args, **kwargs)
