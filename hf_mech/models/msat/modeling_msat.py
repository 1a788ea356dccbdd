"""The M-SAT Decision Transformer: a Decision Transformer for multi-discrete actions, on transformers' GPT-2."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import initialization as init
from transformers.modeling_utils import PreTrainedModel
from transformers.models.gpt2.modeling_gpt2 import GPT2Block, GPT2Model
from transformers.utils import IMAGE_PROCESSOR_NAME, ModelOutput, can_return_tuple, logging

from .checkpoints import SafeCheckpoints
from .configuration_msat import CONVOLUTIONS, MSATDecisionTransformerConfig, MSATError, convolved
from .image_processing_msat import CHANNELS, MSATImageProcessor
from .msat_acting import Acts, padded_logits
from .msat_inputs import (
    check_mask,
    check_states,
    real_actions,
    real_labels,
    real_returns,
    real_states,
    real_timesteps,
)

logger = logging.get_logger(__name__)


# ----------------------------------------------------------------------------------------------------------------------
# States: frames by the published base's CNN, vectors by an MLP (step 1 of Appendix 7.1).


class FrameEncoder(nn.Module):
    """The published base's CNN: 32 x 8/4, 64 x 4/2, 64 x 3/1 with ReLU, then a linear layer with Tanh."""

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        channels, height, width = config.state_shape
        layers: list[nn.Module] = []
        for filters, kernel, stride in CONVOLUTIONS:
            layers += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU()]
            channels = filters
        self.convolutions = nn.Sequential(*layers)
        self.project = nn.Linear(channels * convolved(height) * convolved(width), config.n_embd)
        self.activation = nn.Tanh()

    def forward(self, states: Tensor) -> Tensor:
        """[rows, channels, height, width], scaled -> [rows, hidden]."""
        return self.activation(self.project(self.convolutions(states).flatten(1)))


class VectorEncoder(nn.Module):
    """An MLP of two layers, with ReLU between them and Tanh at the end, as at the end of the CNN."""

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        (features,) = config.state_shape
        self.layers = nn.Sequential(
            nn.Linear(features, config.n_embd), nn.ReLU(), nn.Linear(config.n_embd, config.n_embd), nn.Tanh()
        )

    def forward(self, states: Tensor) -> Tensor:
        """[rows, features], scaled -> [rows, hidden]."""
        return self.layers(states)


class StateEncoder(nn.Module):
    """The embedding of states in the environment's own units (step 1 of Appendix 7.1)."""

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        self.scale = config.scale_of_states
        self.state_dims = len(config.state_shape)
        self.network: nn.Module = (FrameEncoder if config.reads_frames else VectorEncoder)(config)

    def forward(self, states: Tensor) -> Tensor:
        """`[..., *state_shape]`, of any numeric type -> [..., hidden]."""
        dtype = next(self.network.parameters()).dtype
        rows = states.flatten(0, -self.state_dims - 1)
        return self.network(rows.to(dtype) * self.scale).unflatten(0, states.shape[: -self.state_dims])


# ----------------------------------------------------------------------------------------------------------------------
# Actions: one token for all components, one a component, or one a component with the state (Section 4.1).


def component_vectors(actions: Tensor, sizes: list[int], one_hot: str) -> Tensor:
    """One-hot vectors of components (step 2 of Appendix 7.1), [..., components, width], float32.

    Args:
        actions: the value of each component, [..., components].
        sizes: the number of values of each component.
        one_hot: `"disjoint"`: `sum(sizes)` wide, each component has columns of its own; `"overlapping"`: `max(sizes)`
            wide, all components begin at column 0.
    """
    if one_hot == "overlapping":
        return functional.one_hot(actions, max(sizes)).float()
    starts = torch.tensor([sum(sizes[:i]) for i in range(len(sizes))], device=actions.device)
    return functional.one_hot(actions + starts, sum(sizes)).float()


class ActionTokenizer(nn.Module):
    """Turns actions into tokens, before timesteps are added.

    `action_tokenization` says from what: `"single"`, one token from the components' one-hot vectors side by side
    (Section 5.1.1); `"multi"`, one token from each component's vector (Section 5.2.2); `"multi_state"`, one token from
    the state's embedding and each component's vector (Appendix 7.1). An MLP of two layers, each followed by Tanh, makes
    the token of the vector: the paper says MLP and no more, and Tanh follows every embedding of the base.
    """

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        self.kind, self.one_hot = config.action_tokenization, config.one_hot
        self.sizes = list(config.action_sizes)
        width = max(self.sizes) if self.one_hot == "overlapping" else sum(self.sizes)
        if self.kind == "single":
            width = sum(self.sizes)
        elif self.kind == "multi_state":
            width += config.n_embd
        # One MLP for all components: Appendix 7.1 speaks of "the State-Action embedding MLP".
        mlp = nn.Sequential(
            nn.Linear(width, config.n_embd), nn.Tanh(), nn.Linear(config.n_embd, config.n_embd), nn.Tanh()
        )
        self.mlps = nn.ModuleList([mlp])

    def forward(self, actions: Tensor, states: Tensor, first: int = 0) -> Tensor:
        """The tokens of actions, or of some of their components.

        Args:
            actions: [..., components], or [..., some] of the components from `first` on, which `"single"` cannot take.
            states: the embeddings of the steps' states, without timesteps, [..., hidden].
            first: the number of the first component that is given.

        Returns:
            [..., tokens, hidden].
        """
        return self.mlps[0](self.vectors(actions, states, first))

    def vectors(self, actions: Tensor, states: Tensor, first: int = 0) -> Tensor:
        """What the MLP reads, [..., tokens, width]; arguments as in `forward`."""
        if self.kind == "single":
            disjoint = component_vectors(actions, self.sizes, "disjoint")
            return disjoint.sum(-2, keepdim=True).to(states.dtype)
        missing = len(self.sizes) - first - actions.shape[-1]
        whole = functional.pad(actions, (first, missing))
        vectors = component_vectors(whole, self.sizes, self.one_hot)[..., first : first + actions.shape[-1], :]
        vectors = vectors.to(states.dtype)
        if self.kind == "multi":
            return vectors
        repeated = states.unsqueeze(-2).expand(*vectors.shape[:-1], -1)
        return torch.cat([repeated, vectors], -1)  # the state first: "states are pre-pended", Section 5.3


# ----------------------------------------------------------------------------------------------------------------------
# Steps: return-to-go, state, action components, with the episode's timestep (Sections 3.2 and 4.1).


class StepTokenizer(nn.Module):
    """Embeds steps as tokens; every part is also used alone, one decision at a time, by `act`."""

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__()
        self.return_scale = float(config.return_scale)
        self.state_encoder = StateEncoder(config)
        self.embed_return = nn.Linear(1, config.n_embd)
        self.action_tokenizer = ActionTokenizer(config)
        self.embed_timestep = (
            nn.Embedding(config.max_timestep + 1, config.n_embd) if config.positional_encoding else None
        )

    def forward(self, states: Tensor, actions: Tensor, returns_to_go: Tensor, timesteps: Tensor | None) -> Tensor:
        """The tokens of steps, in order.

        Args:
            states: `[batch, steps, *state_shape]`.
            actions: [batch, steps, components].
            returns_to_go: in the environment's units, [batch, steps].
            timesteps: of the episode, [batch, steps]; not read without positional encoding.

        Returns:
            [batch, steps x tokens_per_step, hidden].
        """
        embedded = self.state_encoder(states)
        tokens = [self.of_return(returns_to_go), embedded.unsqueeze(-2), self.action_tokenizer(actions, embedded)]
        # Under autocast, the decoder adds its layers to the tokens in their type, with timesteps and without.
        return self.timed(torch.cat(tokens, -2).to(self.embed_return.weight.dtype), timesteps).flatten(1, 2)

    def of_return(self, returns_to_go: Tensor) -> Tensor:
        """The token of a return-to-go, without its timestep: [...] -> [..., 1, hidden].

        Linear and Tanh, as in the base. Outside autocast, where bfloat16 would round returns from 128 on to integers.
        """
        dtype = self.embed_return.weight.dtype
        scaled = (returns_to_go if dtype == torch.float64 else returns_to_go.float()) * self.return_scale
        with torch.autocast(returns_to_go.device.type, enabled=False):
            return self.embed_return(scaled.to(dtype)[..., None, None]).tanh()

    def timed(self, tokens: Tensor, timesteps: Tensor | None) -> Tensor:
        """Adds each step's timestep to all its tokens: [..., tokens, hidden] and [...]."""
        if self.embed_timestep is None or timesteps is None:
            return tokens
        return tokens + self.embed_timestep(timesteps).unsqueeze(-2)


# ----------------------------------------------------------------------------------------------------------------------
# The model.


def component_loss(logits: Tensor, labels: Tensor, num_items: int | Tensor | None = None) -> Tensor:
    """The mean cross-entropy of components and steps; those labelled -100 do not count.

    Args:
        logits: [batch, steps, components, values], as `padded_logits` makes them.
        labels: [batch, steps, components].
        num_items: the number of labelled components in all batches of an accumulated step. The parts' losses then sum
            exactly to that step's loss.
    """
    exact = logits if logits.dtype == torch.float64 else logits.float()
    total = functional.cross_entropy(exact.flatten(0, 2), labels.flatten(), ignore_index=-100, reduction="sum")
    items = (labels != -100).sum() if num_items is None else num_items
    return total / items


@dataclass
class MSATOutput(ModelOutput):
    """The output of [`MSATDecisionTransformer`].

    Args:
        loss (`Tensor` of shape `()`, when `labels` are given): cross-entropy over components and real steps.
        logits (`Tensor` of shape `[batch, steps, components, values]`): of each component's values, with
            the type's least number at values that a component does not have; `logits.argmax(-1)` are actions.
        hidden_states (`tuple` of `Tensor` of shape `[batch, tokens, hidden]`, with `output_hidden_states=True`): the
            tokens, and the output of every layer, the last one after the final layer norm.
        attentions (`tuple` of `Tensor` of shape `[batch, heads, tokens, tokens]`, with `output_attentions=True`): of
            every layer, with `attn_implementation="eager"`; `config.token_names` names the tokens.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class NoPositions(nn.Module):
    """Stands for GPT-2's position embedding: adds nothing."""

    def forward(self, position_ids: Tensor) -> Tensor:
        """A zero of no dimensions."""
        return torch.zeros((), device=position_ids.device)


class MSATDecoder(GPT2Model):
    """transformers' GPT-2 without embeddings of tokens and of positions: it reads `inputs_embeds`."""

    config_class = MSATDecisionTransformerConfig

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super(GPT2Model, self).__init__(config)  # not GPT2Model's, which would make the embeddings
        self.wpe = NoPositions()
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList([GPT2Block(config, layer_idx=i) for i in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.gradient_checkpointing = False
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """Raises NotImplementedError, by which transformers knows a part without embeddings of its own."""
        raise NotImplementedError("The decoder reads inputs_embeds; the embeddings of steps are the model's tokenizer.")


class MSATDecisionTransformer(Acts, SafeCheckpoints, PreTrainedModel):
    r"""Predicts the action of every step from the returns-to-go, states and actions so far (Sections 3.2 and 4.1).

    A step is the tokens return-to-go, state, and one for each component of its action (one for all of them with
    `action_tokenization="single"`). `forward` trains on windows of episodes; `act` decides in environments.

    Example:

    ```python
    >>> import torch
    >>> from hf_mech.models.msat import MSATDecisionTransformer, MSATDecisionTransformerConfig

    >>> sizes = {"action_sizes": [3, 2], "state_shape": [4], "n_embd": 16, "n_layer": 1, "n_head": 2}
    >>> model = MSATDecisionTransformer(MSATDecisionTransformerConfig(**sizes, context_length=5)).eval()
    >>> context = model.start_context(batch_size=2)  # two environments
    >>> actions = model.act(torch.zeros(2, 4), context, returns_to_go=[1.8, 0.9])
    >>> actions.shape, context.steps.tolist()
    (torch.Size([2, 2]), [1, 1])

    ```
    """

    config_class = MSATDecisionTransformerConfig
    config: MSATDecisionTransformerConfig
    base_model_prefix = "msat"
    main_input_name = "states"
    _input_embed_layer = "tokenizer"  # `get_input_embeddings`; adapters under gradient checkpointing begin behind it
    _auto_class = "AutoModel"  # a saved checkpoint carries this code and loads without the package
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = True  # `Trainer` passes num_items_in_batch
    _supports_sdpa = True
    _supports_attention_backend = True
    _no_split_modules = ["GPT2Block"]
    _checkpoint_error = MSATError

    def __init__(self, config: MSATDecisionTransformerConfig) -> None:
        super().__init__(config)
        self.tokenizer = StepTokenizer(config)
        self.decoder = MSATDecoder(config)
        self.heads = nn.ModuleList(nn.Linear(config.n_embd, size, bias=False) for size in config.action_sizes)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """The decoder draws its own as GPT-2 does; heads, returns and timesteps begin small, as in the base.

        Convolutions and MLPs keep the variance of what they read, so that tokens of all kinds differ from the start.
        """
        if isinstance(module, nn.Conv2d | nn.Linear):
            small = any(module is part for part in (self.tokenizer.embed_return, *self.heads))
            fan_in = module.weight[0].numel()
            gain = 2.0 if isinstance(module, nn.Conv2d) else 1.0
            init.normal_(module.weight, std=self.config.initializer_range if small else math.sqrt(gain / fan_in))
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.initializer_range)

    @can_return_tuple
    def forward(
        self,
        states: Tensor,  # [batch, steps, *state_shape]
        actions: Tensor,  # [batch, steps, components]
        returns_to_go: Tensor,  # [batch, steps]
        timesteps: Tensor | None = None,  # [batch, steps]
        attention_mask: Tensor | None = None,  # [batch, steps]
        labels: Tensor | None = None,  # [batch, steps, components]
        num_items_in_batch: int | Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> MSATOutput:
        """Predicts the action of every step; a step's own action is not seen by its prediction.

        Args:
            states: frames as integers from 0 to 255, or vectors; the model scales them.
            actions: the number of each component's value. With `"autoregressive"`, a component is predicted from the
                components before it.
            returns_to_go: real numbers in the environment's units; the model scales them.
            timesteps: the number of each step in its episode, wherever the window begins. Needed with positional
                encoding.
            attention_mask: 0 at padding, on either side.
            labels: the actions to learn; -100 at components that are not trained. Padding is never trained. It needs
                -100 all the same if `Trainer` counts the labels, as `WindowCollator` gives it.
            num_items_in_batch: the labelled components of a batch whose gradients are accumulated.
            output_attentions, output_hidden_states: as in transformers.
            return_dict: as in transformers; `can_return_tuple` reads it.

        Raises:
            MSATError: inputs of another shape, type or range; more steps than `context_length`, or a mask that does not
                fit.
        """
        check_states(states, self.config, "batch, steps")
        shape = (states.shape[0], states.shape[1])
        check_mask(attention_mask, *shape, self.config.context_length)
        real = None if attention_mask is None else attention_mask.bool()
        sizes = list(self.config.action_sizes)
        actions = real_actions(actions, shape, real, sizes)
        returns_to_go = real_returns(returns_to_go, shape, real)
        timesteps = real_timesteps(timesteps, shape, real, self.config)
        states = real_states(states, real)

        wants_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        kind = self.config._attn_implementation
        if wants_attentions and kind != "eager" and not torch.compiler.is_compiling():
            logger.warning_once(
                f"output_attentions=True gives no attentions with attn_implementation={kind!r}; call "
                "model.set_attn_implementation('eager')."
            )
        per_step = self.config.tokens_per_step
        decoded = self.decoder(
            inputs_embeds=self.tokenizer(states, actions, returns_to_go, timesteps),
            attention_mask=None if real is None else real.long().repeat_interleave(per_step, 1),
            use_cache=False,
            output_attentions=wants_attentions,
            output_hidden_states=(
                self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
            ),
        )
        hidden = decoded.last_hidden_state.unflatten(1, (-1, per_step))
        # The state is token 1 of a step; component i's token is 2 + i, so its predecessor's is 1 + i.
        step = 1 if self.config.component_prediction == "autoregressive" else 0
        logits = padded_logits([head(hidden[:, :, 1 + i * step]) for i, head in enumerate(self.heads)])
        loss = None
        if labels is not None:
            labels = real_labels(labels, shape, real, sizes, num_items_in_batch is not None)
            loss = component_loss(logits, labels, num_items_in_batch)
        return MSATOutput(loss=loss, logits=logits, hidden_states=decoded.hidden_states, attentions=decoded.attentions)

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], is_main_process: bool = True, *args: Any, **kwargs: Any
    ) -> None:
        """As in transformers; a model of RGB frames also saves their image processor, unless the folder has one."""
        folder, config = Path(save_directory), self.config
        wanted = config.reads_frames and config.state_shape[0] == CHANNELS
        if is_main_process and wanted and not folder.is_file() and not (folder / IMAGE_PROCESSOR_NAME).exists():
            MSATImageProcessor.of_config(config).save_pretrained(folder)
        super().save_pretrained(save_directory, is_main_process, *args, **kwargs)
