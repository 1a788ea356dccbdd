"""The Belief State Transformer: forward and backward encoders, and one head for the next and the previous token."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.cache_utils import Cache
from transformers.generation import GenerationMixin
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import can_return_tuple

from .belief_state_encoders import LoadsEncoders, learned_positions, made_encoder
from .belief_state_generation import BeliefStateGeneration
from .belief_state_inputs import (
    BeliefStateCausalLMOutput,
    BeliefStateModelOutput,
    check_ids,
    check_labels,
    check_length,
    check_packing,
    check_prefixes,
    check_suffix_state,
    check_suffixes,
    encoder_mask,
    is_flat,
    numbered,
    real_tokens,
    reversed_rows,
    seen,
    sequences_of,
    suffixes_of,
)
from .belief_state_objective import TextHead, belief_state_loss
from .belief_state_pairs import Sequences
from .checkpoints import SafeCheckpoints, declare_targets
from .configuration_belief_state import BeliefStateConfig, BeliefStateError


class BeliefStatePreTrainedModel(LoadsEncoders, SafeCheckpoints, PreTrainedModel):
    """The base of the belief state models: configuration, initialisation, loading."""

    config_class = BeliefStateConfig
    config: BeliefStateConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _skip_keys_device_placement = ["past_key_values"]
    _checkpoint_error = BeliefStateError

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):  # of the text head; the encoders draw their own
            # Sums of two states go through ReLU: variance is kept, and the first logits are small.
            inner = (self.text_head.prefix, self.text_head.suffix, *self.text_head.hidden)
            scale = 1.0 if any(module is layer for layer in inner) else 0.1
            init.normal_(module.weight, std=scale * module.in_features**-0.5)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.initializer_range or 0.02)

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Embedding:
        """As in transformers: the token embedding, both of the head's last layers, and all configurations.

        Raises:
            BeliefStateError: the end token would be cut off.
        """
        if new_num_tokens is not None and new_num_tokens <= self.config.end_token:
            raise BeliefStateError(
                f"A vocabulary of {new_num_tokens} tokens lacks the end token {self.config.end_token}, the empty "
                "suffix; set config.eos_token_id, and generation_config.eos_token_id, to a token that stays."
            )
        table = super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        self.config.vocab_size = table.num_embeddings
        return table


class BeliefStateModel(BeliefStatePreTrainedModel):
    r"""F and B without a head: the states of prefixes and of suffixes (Eq. 1).

    The token embedding is shared. Each encoder counts positions from its own end of the text.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.belief_state import BeliefStateConfig, BeliefStateModel

    >>> config = BeliefStateConfig(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=32, eos_token_id=19)
    >>> outputs = BeliefStateModel(config)(torch.tensor([[3, 4, 5]]), suffix_ids=torch.tensor([[8, 9]]))
    >>> outputs.last_hidden_state.shape, outputs.suffix_hidden_state.shape  # the suffix has its end token besides
    (torch.Size([1, 3, 16]), torch.Size([1, 3, 16]))

    ```
    """

    _auto_class = "AutoModel"  # a saved checkpoint carries this code and loads without the package
    _keys_to_ignore_on_load_unexpected = [r"^text_head\."]  # of a checkpoint with its head

    def __init__(self, config: BeliefStateConfig) -> None:
        super().__init__(config)
        self.forward_encoder = made_encoder(config.encoder_config, "encoder_config")
        self.backward_encoder = None
        if config.use_backward:
            self.backward_encoder = made_encoder(config.backward_encoder_config, "backward_encoder_config")
        self.embed_tokens = self.forward_encoder.get_input_embeddings()
        encoders = [encoder for encoder in (self.forward_encoder, self.backward_encoder) if encoder is not None]
        for encoder in encoders:
            encoder.set_input_embeddings(None)
        #: The number of positions that each encoder has learned, None without a limit; F's first, B's last.
        self.learned_positions = [learned_positions(encoder, encoder.config) for encoder in encoders]
        declare_targets(config.model_type, *(encoder.config.model_type for encoder in encoders))
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The token embedding of both encoders."""
        return self.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the token embedding of both encoders."""
        self.embed_tokens = value

    def suffix_states(self, sequences: Sequences) -> Tensor | None:
        """B(x_j:T) at every token j, [batch, length, hidden]; None without a backward encoder.

        Each sequence of a row is read from its own end.
        """
        if self.backward_encoder is None:
            return None
        tokens, mask, positions = reversed_rows(sequences.tokens, sequences.sequence)
        check_length(positions, tokens.shape[1], self.learned_positions[-1], "suffix")
        if mask is None:
            check_packing(self.backward_encoder.config, tokens.shape[0])
        read = self.backward_encoder(
            inputs_embeds=self.embed_tokens(tokens), attention_mask=mask, position_ids=positions, use_cache=False
        )
        return read.last_hidden_state.flip(1)

    def empty_suffix(self, device: torch.device) -> Tensor | None:
        """B of the empty suffix: of the end token alone, [1, 1, hidden] (Section 2.2)."""
        if self.backward_encoder is None:
            return None
        end = torch.tensor([[self.config.end_token]], device=device)
        return self.backward_encoder(inputs_embeds=self.embed_tokens(end), use_cache=False).last_hidden_state

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None, all_states: bool = False) -> Tensor:
        """Belief states of texts, as embeddings (Section 4.1, Theorem 2).

        Args:
            input_ids: [batch, length].
            attention_mask: 0 at padding, [batch, length], on either side; None if there is none.
            all_states: the state after every token instead.

        Returns:
            The state after each row's last token that is not padding, [batch, hidden]; with `all_states`,
            [batch, length, hidden].
        """
        states = self(input_ids, attention_mask, use_cache=False).last_hidden_state
        if all_states:
            return states
        columns = torch.arange(input_ids.shape[1], device=input_ids.device)
        last = torch.where(real_tokens(input_ids, attention_mask), columns, -1).amax(1)
        return states[torch.arange(states.shape[0], device=states.device), last]

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,  # [batch, new]
        attention_mask: Tensor | None = None,  # [batch, past + new]
        position_ids: Tensor | None = None,  # [batch, new]
        past_key_values: Cache | None = None,
        suffix_ids: Tensor | None = None,  # [batch, suffix length]
        suffix_attention_mask: Tensor | None = None,  # [batch, suffix length]
        inputs_embeds: Tensor | None = None,  # [batch, new, hidden]
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> BeliefStateModelOutput:
        """States of prefixes, and of suffixes if there are any.

        Args:
            attention_mask: 0 at padding, on either side; or as the forward encoder takes it, four-dimensional.
            position_ids: from 0; without them, they count the tokens that `attention_mask` marks as real. Where they
                begin anew, another sequence of a packed row begins.
            suffix_ids: the end of the text; the end token is added if it is missing. Without a column, or in a row of
                padding alone, the empty suffix.

        Raises:
            BeliefStateError: positions that an encoder has not learned, or that jump; packed rows with a cache; a row
                without any token, or a mask that does not fit; suffixes of another number of rows, or that no encoder
                reads; tokens outside the vocabulary.
        """
        past = seen(past_key_values)
        check_prefixes(input_ids, inputs_embeds, attention_mask, position_ids, past)
        if input_ids is not None and past == 0:
            check_ids(input_ids, self.config.vocab_size, "input_ids")
        embeds = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        check_suffixes(suffix_ids, suffix_attention_mask, embeds.shape[0], self.backward_encoder is not None)
        asked, flat = use_cache, is_flat(attention_mask)
        if use_cache is None:
            use_cache = not self.training and self.config.use_cache
        if position_ids is not None and past_key_values is None and flat:
            real = real_tokens(embeds[..., 0], attention_mask)
            sequence = numbered(real, position_ids)
            mask = encoder_mask(sequence)
            if mask is None:
                check_packing(self.forward_encoder.config, embeds.shape[0], asked, suffix_ids)
                attention_mask, use_cache = None, False
                position_ids = position_ids.expand_as(real).masked_fill(~real, 0)
        elif position_ids is None and flat and attention_mask is not None:
            position_ids = (attention_mask.long().cumsum(1) - 1).clamp(min=0)[:, -embeds.shape[1] :]
        if past is not None and (past == 0 or past + embeds.shape[1] > (self.learned_positions[0] or 0)):
            check_length(position_ids, past + embeds.shape[1], self.learned_positions[0], "prefix")
        read = self.forward_encoder(
            inputs_embeds=embeds,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            use_cache=use_cache,
            output_attentions=self.config.output_attentions if output_attentions is None else output_attentions,
            output_hidden_states=(
                self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
            ),
        )
        suffix = None
        if suffix_ids is not None:
            check_ids(suffix_ids, self.config.vocab_size, "suffix_ids")
            suffix = self.suffix_states(suffixes_of(suffix_ids, suffix_attention_mask, self.config.end_token))
        return BeliefStateModelOutput(
            last_hidden_state=read.last_hidden_state,
            suffix_hidden_state=suffix,
            past_key_values=read.past_key_values,
            hidden_states=read.hidden_states,
            attentions=read.attentions,
        )


class BeliefStateForCausalLM(BeliefStatePreTrainedModel, BeliefStateGeneration, GenerationMixin):
    r"""The Belief State Transformer: predicts the next token of a prefix and the one before a suffix (Eq. 1).

    `generate()` uses the empty suffix, or `suffix_ids`. With `labels` it trains on all pairs of a prefix and a suffix.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.belief_state import BeliefStateConfig, BeliefStateForCausalLM

    >>> config = BeliefStateConfig(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=32, eos_token_id=19)
    >>> model = BeliefStateForCausalLM(config)
    >>> tokens = torch.tensor([[3, 4, 5, 6]])
    >>> model(tokens, labels=tokens).loss.shape
    torch.Size([])
    >>> model(tokens, suffix_ids=torch.tensor([[8, 9]])).prev_logits.shape
    torch.Size([1, 4, 20])

    ```
    """

    _auto_class = "AutoModelForCausalLM"  # a saved checkpoint carries this code and loads without the package
    accepts_loss_kwargs = True  # `Trainer` passes num_items_in_batch
    _pipelines = {
        "infilling": {
            "impl": "belief_state_infilling.InfillingPipeline",
            "pt": ["AutoModelForCausalLM"],
            "type": "text",
        }
    }

    def __init__(self, config: BeliefStateConfig) -> None:
        super().__init__(config)
        self.model = BeliefStateModel(config)
        self.text_head = TextHead(
            self.model.forward_encoder.config.hidden_size,
            config.head_width,
            config.head_layers,
            self.model.embed_tokens.num_embeddings,
            suffix=config.use_backward,
            prev=config.predict_previous,
        )
        self.post_init()

    def get_output_embeddings(self) -> None:
        """None: no matrix turns belief states into logits. T_n's last layer acts on the head's inner states."""

    def _resize_token_embeddings(
        self, new_num_tokens: int, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Module:
        table = super()._resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        for name in ("next", "prev"):
            old = getattr(self.text_head, name)
            if old is not None:
                new = self._get_resized_lm_head(old, table.num_embeddings, mean_resizing=mean_resizing)
                setattr(self.text_head, name, new.requires_grad_(old.weight.requires_grad))
        return table

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None, all_states: bool = False) -> Tensor:
        """Belief states of texts, as embeddings: see [`BeliefStateModel.encode`]."""
        return self.model.encode(input_ids, attention_mask, all_states)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,  # [batch, new]
        attention_mask: Tensor | None = None,  # [batch, past + new]
        position_ids: Tensor | None = None,  # [batch, new]
        past_key_values: Cache | None = None,
        labels: Tensor | None = None,  # [batch, new]
        suffix_ids: Tensor | None = None,  # [batch, suffix length]
        suffix_attention_mask: Tensor | None = None,  # [batch, suffix length]
        inputs_embeds: Tensor | None = None,  # [batch, new, hidden]
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_prev_logits: bool = False,
        suffix_state: Tensor | None = None,  # [batch or 1, 1, hidden]
        logits_to_keep: int | Tensor = 0,
        num_items_in_batch: int | Tensor | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> BeliefStateCausalLMOutput:
        """The logits of the next token, with a suffix also of the token before it, and the loss over all pairs.

        Args:
            input_ids, attention_mask, position_ids, past_key_values: see [`BeliefStateModel.forward`].
            suffix_ids, suffix_attention_mask: likewise. The logits are conditioned on the suffix; without `suffix_ids`,
                on the empty one.
            inputs_embeds, use_cache, output_attentions, output_hidden_states: likewise.
            suffix_state: B of the suffix if it is known already, from [`suffix_state`]; `generate()` gives it, so a
                suffix is read once.
            labels: the input tokens, -100 at tokens that are not trained. The loss is that of all pairs within each
                sequence, whatever `logits_to_keep`.
            output_prev_logits: `prev_logits` without `suffix_ids` too, of the token before the empty suffix.
            logits_to_keep: compute logits for this many last tokens, or for these indices; 0 for all tokens.
            num_items_in_batch: the number of trained tokens of a batch whose gradients are accumulated.
            return_dict: as in transformers. `can_return_tuple` reads it; it is named because accelerate's
                `unwrap_model(keep_fp32_wrapper=False)` takes the decorators away, and `generate()` gives it.
            kwargs: `shift_labels`, [batch, new], the labels one place earlier, which transformers gives under sequence
                parallelism; as in its own models they replace the labels, but for the first. `Trainer` waits for every
                parameter that is called a label, so this is none.

        Raises:
            BeliefStateError: labels without any pair of a prefix and a suffix, or that do not fit the inputs;
                `num_items_in_batch` without labels; `output_prev_logits` without T_p.
            TypeError: another keyword.

        The errors of [`BeliefStateModel.forward`] are raised, too.
        """
        shift_labels = kwargs.pop("shift_labels", None)
        if kwargs:
            raise TypeError(
                f"{type(self).__name__}.forward() got an unexpected keyword argument {next(iter(kwargs))!r}"
            )
        if shift_labels is not None:
            first = input_ids if labels is None else labels
            labels = shift_labels if first is None else torch.cat([first[:, :1], shift_labels[:, :-1]], 1)
        check_labels(labels, num_items_in_batch)
        outputs = self.model(
            input_ids,
            attention_mask,
            position_ids,
            past_key_values,
            suffix_ids,
            suffix_attention_mask,
            inputs_embeds,
            use_cache,
            output_attentions,
            output_hidden_states,
        )
        states = outputs.last_hidden_state
        other = suffix_ids is not None or labels is not None
        reads = self.model.backward_encoder is not None
        check_suffix_state(suffix_state, states.shape[0], states.shape[2], reads, other)
        if output_prev_logits and self.text_head.prev is None:
            raise BeliefStateError("The model has no T_p (predict_previous=False); leave output_prev_logits out.")
        loss = None
        if labels is not None:
            if input_ids is None or suffix_ids is not None or seen(past_key_values) != 0:
                raise BeliefStateError(
                    "labels train on all pairs within input_ids: give whole sequences as input_ids, without "
                    "suffix_ids, inputs_embeds or a cache."
                )
            loss = self._loss(states, input_ids, attention_mask, position_ids, labels, num_items_in_batch)
        suffix = outputs.suffix_hidden_state
        if suffix is None or suffix_ids is None:
            suffix = self.model.empty_suffix(states.device) if suffix_state is None else suffix_state
        else:
            suffix = suffixes_of(suffix_ids, suffix_attention_mask, self.config.end_token).first_of(suffix)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits, before = self.text_head(states[:, kept], suffix, previous=suffix_ids is not None or output_prev_logits)
        return BeliefStateCausalLMOutput(
            loss=loss,
            logits=logits,
            prev_logits=before if suffix_ids is not None or output_prev_logits else None,
            past_key_values=outputs.past_key_values,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    @torch.compiler.disable  # the number of blocks of pairs depends on the batch
    def _loss(
        self,
        states: Tensor,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        position_ids: Tensor | None,
        labels: Tensor,
        items: int | Tensor | None,
    ) -> Tensor:
        sequences, source = sequences_of(
            input_ids, attention_mask, labels, self.config.end_token, position_ids, self.config.least_gap == 1
        )
        if items is not None and items > 0 and not bool(sequences.trained.any()):
            # Other batches of the step have the labels; every parameter still gets a gradient.
            return sum((part.sum() * 0 for part in self.parameters() if part.requires_grad), states.sum() * 0)
        if source is not None:  # an added end token begins no prefix of a pair, so its state is any
            states = states.gather(1, source[..., None].expand(-1, -1, states.shape[2]))
        begin = sequences.first_prefix
        states, sequences = states[:, begin:], sequences.after(begin)  # a prompt's suffixes are in no pair
        suffixes = self.model.suffix_states(sequences)
        total, tokens = belief_state_loss(
            states,
            suffixes,
            self.text_head,
            sequences,
            self.config.least_gap,
            self.config.block_size,
            self.config.pairs_per_sequence if self.training else None,
            self.config.weights_of_pairs,
        )
        return total / (tokens if items is None else items)
