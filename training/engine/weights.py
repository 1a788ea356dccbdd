"""First weights that learn to look tokens up in fewer steps than GPT-2's own."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.gpt2.modeling_gpt2 import GPT2Block

from hf_mech.models.belief_state.belief_state_objective import TextHead

from .settings import SettingsError

SHARPER = 1.5
"""The gain of the first queries and keys, for attention that begins with few tokens each."""
EVENER = 0.45
"""Their gain for attention that begins with all tokens."""


@torch.no_grad()
def begin_sharp(model: PreTrainedModel) -> None:
    """Draws the weights of what blocks add, of the positions and of an output layer, and scales queries and keys.

    What a block adds has half the variance's root that keeps it. With larger positions, queries and keys, attention
    begins less even, so a head that looks for one token or one position finds it earlier. The configuration's
    `initializer_range` is to be one over the root of the width.

    Args:
        model: GPT-2, or a model with encoders of its blocks.
    """
    size = model.get_input_embeddings().weight.shape[1]
    for name, weight in model.named_parameters():
        if name.endswith(("attn.c_proj.weight", "mlp.c_proj.weight")):
            weight.normal_(0, 0.5 * weight.shape[0] ** -0.5)
        elif name.endswith("attn.c_attn.weight"):
            weight[:, : 2 * size] *= SHARPER
        elif name.endswith("wpe.weight"):
            weight.normal_(0, 0.5)
        elif name == "lm_head.weight":
            weight.normal_(0, 0.1 * weight.shape[1] ** -0.5)


@torch.no_grad()
def begin_orthogonal(model: PreTrainedModel, positions: Tensor, waves: bool = False) -> None:
    """Begins sharp, with rows of tokens and positions that are orthogonal to each other, as many as fit.

    So a head can match one token or one position: weights that learn the chain of a path in fewer steps than GPT-2's.

    Args:
        model: see [`begin_sharp`].
        positions: the embedding of the positions, of the encoder that reads the prompt.
        waves: positions are waves in the dimensions that the tokens leave. One turn of these leads from every position
            to the one before it, so a head that has learned to look one back at some positions does so at all. They
            are as many as there are, and nearly orthogonal.

    Raises:
        SettingsError: the tokens leave no two dimensions for waves.
    """
    begin_sharp(model)
    tokens = model.get_input_embeddings().weight
    size = tokens.shape[1]
    if waves and size < len(tokens) + 2:
        raise SettingsError(f"Positions as waves need a --hidden of at least {len(tokens) + 2}, got {size}.")
    rows = torch.linalg.qr(torch.randn(size, size, device=tokens.device))[0] * size**0.5
    count = min(len(tokens), size)
    tokens[:count] = rows[:count]
    rest = rows[count:]
    if not waves:
        positions[: len(rest)] = SHARPER * rest[: len(positions)]
        return
    half = len(rest) // 2
    turns = torch.pi / half * (torch.arange(half, device=rows.device) + torch.rand(half, device=rows.device))
    angles = torch.arange(len(positions), device=rows.device)[:, None] * turns
    positions.copy_(SHARPER * half**-0.5 * torch.cat([angles.cos(), angles.sin()], 1) @ rest[: 2 * half])


@torch.no_grad()
def begin_copying(model: PreTrainedModel) -> None:
    """Draws the weights so that a state begins as a sum of the tokens that it has read, and an output as its tokens.

    Attention begins nearly even, and adds what it reads as it is: values and projection are an orthogonal matrix and
    its transpose. The outputs begin as the token embeddings, in a text head of both states together. So a word that a
    state has read is a little likelier from the first step, whichever word it is, and training has to learn where to
    look and not, word by word, how to copy. That products of attention's matrices may begin near a multiple of the
    identity is an idea of Trockman and Kolter (2023), "Mimetic initialization of self-attention layers".

    Args:
        model: GPT-2 with an output layer that is not tied, or the Belief State Transformer with encoders of its blocks
            and a text head of at least twice their width.
    """
    tokens = model.get_input_embeddings().weight.normal_(0, 0.3)  # small, so that training moves it soon
    size = tokens.shape[1]
    for name, weight in model.named_parameters():
        if name.endswith("wpe.weight"):
            weight.normal_(0, 0.06)
        elif name == "lm_head.weight":
            weight.copy_(_logits_of(tokens))
    for part in model.modules():
        if isinstance(part, GPT2Block):
            _begin_block(part, size)
        elif isinstance(part, TextHead):
            _begin_head(part, tokens)


def _begin_block(block: GPT2Block, size: int) -> None:
    turn = torch.linalg.qr(torch.randn(size, size))[0]
    reads, adds = block.attn.c_attn.weight, block.attn.c_proj.weight
    reads.normal_(0, EVENER * size**-0.5)
    reads[:, 2 * size :] = turn
    adds.normal_(0, 0.25 * size**-0.5).add_(turn.T)
    block.mlp.c_fc.weight.normal_(0, size**-0.5)
    block.mlp.c_proj.weight.normal_(0, 0.5 * block.mlp.c_proj.weight.shape[0] ** -0.5)


def _begin_head(head: TextHead, tokens: Tensor) -> None:
    """The sum of both states goes through each ReLU in two halves, what is above zero and what is below."""
    size = tokens.shape[1]
    both = torch.cat([torch.eye(size), -torch.eye(size)])
    first = [layer for layer in (head.prefix, head.suffix) if layer is not None]
    hidden: list[nn.Linear] = [layer for layer in head.hidden if isinstance(layer, nn.Linear)]
    for layer in (*first, *hidden):
        layer.weight.normal_(0, 0.3 * layer.weight.shape[1] ** -0.5)
    for layer in first:
        layer.weight[: 2 * size] += 0.7 * both
    for layer in hidden:
        layer.weight[: 2 * size, : 2 * size] += torch.eye(2 * size)
    for last in (head.next, head.prev):
        if last is not None:
            last.weight.normal_(0, 0.02)
            last.weight[:, : 2 * size] += _logits_of(tokens) @ both.T


def _logits_of(tokens: Tensor) -> Tensor:
    """An output layer of small logits that likes the tokens of a state."""
    return tokens.shape[1] ** -0.5 * tokens
