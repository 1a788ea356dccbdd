"""The untrained model of a run, BST, an ablation of it or a GPT-2 of transformers, its objective and its optimizer."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel

from hf_mech.lookahead.objectives import JointMultiToken, MultiToken, NextLatent, Objective
from hf_mech.lookahead.star_graphs.layouts import width_of
from hf_mech.models.belief_state.configuration_belief_state import BeliefStateConfig
from hf_mech.models.belief_state.modeling_belief_state import BeliefStateForCausalLM

from ..engine.optimizers import chosen_optimizer
from ..engine.weights import begin_orthogonal
from .settings import BELIEF_STATES, OBJECTIVES, Run

_OBJECTIVES: dict[str, type[NextLatent | MultiToken | JointMultiToken]] = dict(
    zip(OBJECTIVES, (NextLatent, MultiToken, JointMultiToken), strict=True)
)


@dataclass(frozen=True)
class Vocabulary:
    """What a model's sizes take from its data.

    Attributes:
        size: tokens.
        positions: tokens of the longest row.
        end_token, pad_token: their ids.
    """

    size: int
    positions: int
    end_token: int
    pad_token: int

    @classmethod
    def of(cls, run: Run) -> Vocabulary:
        """That of the run's graphs."""
        graph = run.final
        return cls(len(graph.tokens), width_of(graph, run.layout), graph.end_token, graph.pad_token)


def make_model(run: Run, vocabulary: Vocabulary | None = None) -> PreTrainedModel:
    """The model; its weights come from torch's random numbers.

    Args:
        run: its settings.
        vocabulary: of the user's data; by default the graphs'.
    """
    vocabulary = vocabulary or Vocabulary.of(run)
    model = belief_state_model(run, vocabulary) if run.model in BELIEF_STATES else gpt2_model(run, vocabulary)
    if run.initialization != "gpt2":
        begin_orthogonal(model, forward_encoder(model).wpe.weight, waves=run.initialization == "waves")
    return model


def belief_state_model(run: Run, vocabulary: Vocabulary) -> BeliefStateForCausalLM:
    """BST, or without its previous token, or without its backward encoder (Section 3.6)."""
    shared = _blocks(run, vocabulary)
    config = BeliefStateConfig(
        encoder_config=GPT2Config(n_layer=run.layers, **shared),
        backward_encoder_config=GPT2Config(n_layer=run.backward_layers, **shared),
        head_width=run.head_width,
        head_layers=run.head_layers,
        predict_previous=run.model != "bst_without_prev",
        use_backward=run.model != "bst_without_backward",
        least_gap=1 if run.own_data else 2,  # to learn where a text ends; the length of a path is known
        **_tokens(vocabulary),
    )
    model = BeliefStateForCausalLM(config)
    if run.shared_from:
        share_blocks(forward_encoder(model).h, run.shared_from)
    return model


def share_blocks(blocks: nn.ModuleList, first: int) -> None:
    """Gives a block's parameters to all later ones, which stay modules of their own, with their places in a cache."""
    for block in blocks[first + 1 :]:
        for name, part in block.named_modules():
            for key, parameter in blocks[first].get_submodule(name).named_parameters(recurse=False):
                setattr(part, key, parameter)


def separate_blocks(blocks: nn.ModuleList) -> None:
    """Parameters of its own for each block, so that the model can be saved as any other."""
    for place, block in enumerate(blocks):
        blocks[place] = copy.deepcopy(block)


def gpt2_model(run: Run, vocabulary: Vocabulary) -> GPT2LMHeadModel:
    """A baseline: GPT-2 with the blocks of BST. Its output layer is not tied, so its first logits are small."""
    config = GPT2Config(
        n_layer=run.baseline_layers,
        tie_word_embeddings=False,
        **_blocks(run, vocabulary),
    )
    model = GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"  # transformers finds it by a class's name, but not for this one
    return model


def with_objective(run: Run, model: PreTrainedModel) -> nn.Module:
    """The module whose loss is trained: the model itself, or an objective around it."""
    kind = _OBJECTIVES.get(run.model)
    return kind(model, run.ahead) if kind else model


def without_objective(module: nn.Module) -> PreTrainedModel:
    """The model that is measured and saved, from [`with_objective`]."""
    inner: Any = module.model if isinstance(module, Objective) else module
    return inner


def _blocks(run: Run, vocabulary: Vocabulary) -> dict[str, Any]:
    """GPT-2's blocks, with an MLP of the same width (an expansion factor of 1)."""
    own = {"initializer_range": run.hidden**-0.5} if run.initialization != "gpt2" else {}
    return {
        **{"vocab_size": vocabulary.size, "n_positions": vocabulary.positions},
        **{"n_embd": run.hidden, "n_inner": run.hidden, "n_head": run.heads, "activation_function": "relu"},
        **{"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
        **_tokens(vocabulary),
        **own,
    }


def _tokens(vocabulary: Vocabulary) -> dict[str, int | None]:
    return {"eos_token_id": vocabulary.end_token, "pad_token_id": vocabulary.pad_token, "bos_token_id": None}


def forward_encoder(model: nn.Module) -> Any:
    """The encoder that reads the prompt."""
    inner: Any = model
    return inner.model.forward_encoder if hasattr(inner, "text_head") else inner.transformer


def prompt_states(model: nn.Module, prompts: Tensor) -> Tensor:
    """The state behind each prompt [count, prompt_length], [count, hidden]: F(x_1:i) at `=`."""
    inner: Any = model
    states = inner.model if hasattr(inner, "text_head") else inner.transformer
    return states(prompts).last_hidden_state[:, -1]


def make_optimizer(run: Run, model: nn.Module) -> Optimizer:
    """The run's optimizer for a model's parameters."""
    return chosen_optimizer(run, model, partial(share, run), betas=(0.9, run.beta2), fused=True)


def share(run: Run, name: str) -> float:
    """The share of Muon's learning rate that a matrix of this name has: less in later blocks of what reads the prompt.

    The nodes of a path are found one after another, from the goal, each in a block behind that of the last one. The
    rates are to let early blocks find the first ones; in trials, it took seeds that had stood still further.
    """
    block = re.search(r"(?:forward_encoder|transformer)\.h\.(\d+)\.", name)
    last = (run.layers if run.model in BELIEF_STATES else run.baseline_layers) - 1
    if name.startswith("heads."):  # beside the last block
        return 1 - run.depth_decay
    return 1 - run.depth_decay * int(block[1]) / last if block and last else 1.0
