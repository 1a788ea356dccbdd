"""The untrained model of a run, and its optimizer."""

from __future__ import annotations

from torch import nn
from torch.optim import AdamW

from hf_mech.models.msat.configuration_msat import MSATDecisionTransformerConfig
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

from .data import Own, spaces_of
from .peer import DecisionTransformerPlayer
from .settings import MODELS, PEER, Run

LONGEST = 1_023
"""The last timestep that has an embedding; all episodes of the scenarios are shorter."""


def make_model(run: Run, own: Own | None = None) -> MSATDecisionTransformer | DecisionTransformerPlayer:
    """The model, for the scenario or for the user's episodes; its weights come from torch's random numbers."""
    shape, sizes = (own.state_shape, own.action_sizes) if own else spaces_of(run)
    played = not own or run.environment
    config = MSATDecisionTransformerConfig(
        action_tokenization=MODELS.get(run.model, "single"),
        action_sizes=sizes,
        state_shape=shape,
        context_length=run.context,
        positional_encoding=run.positions == "on",
        max_timestep=max(LONGEST, own.longest - 1) if own else LONGEST,
        component_prediction=run.component_prediction,
        return_scale=run.return_scale,
        environment={"id": run.place.environment, "kwargs": run.environment_options} if played else None,
        target_return=own.best_return if own else run.target_return,
        n_layer=run.layers,
        n_head=run.heads,
        n_embd=run.hidden,
        embd_pdrop=run.embd_pdrop,
        resid_pdrop=run.resid_pdrop,
        attn_pdrop=run.attn_pdrop,
    )
    return DecisionTransformerPlayer(config) if run.model == PEER else MSATDecisionTransformer(config)


def make_optimizer(run: Run, model: nn.Module) -> AdamW:
    """AdamW as the base has it: the weights of linear layers and convolutions decay, and nothing else does."""
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    groups: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for parameter in model.parameters():
        groups[parameter.dim() > 1 and id(parameter) not in embeddings].append(parameter)
    return AdamW(
        [{"params": groups[True], "weight_decay": run.weight_decay}, {"params": groups[False], "weight_decay": 0.0}],
        lr=run.learning_rate,
        betas=(0.9, run.beta2),
        fused=True,
    )
