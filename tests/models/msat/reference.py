"""M-SAT's tokens step by step, as Appendix 7.1 lists them, with the model's own weights and nothing clever."""

from __future__ import annotations

import torch
from torch import Tensor

from hf_mech.models.msat.modeling_msat import StepTokenizer


def one_hot_reference(value: int, component: int, sizes: list[int], one_hot: str) -> Tensor:
    """Step 2: the one-hot vector of one component of one action."""
    width = sum(sizes) if one_hot == "disjoint" else max(sizes)
    start = sum(sizes[:component]) if one_hot == "disjoint" else 0
    vector = torch.zeros(width, dtype=torch.float64)
    vector[start + value] = 1
    return vector


def mlp_reference(tokenizer: StepTokenizer, vector: Tensor) -> Tensor:
    """Step 4: the MLP."""
    for layer in tokenizer.action_tokenizer.mlps[0]:
        vector = layer(vector)
    return vector


def step_tokens_reference(
    tokenizer: StepTokenizer, state: Tensor, action: list[int], return_to_go: Tensor, timestep: int | None
) -> list[Tensor]:
    """The tokens of one step: r, s, a_1, ..., a_n (one a with the single tokenization), each [hidden]."""
    actions = tokenizer.action_tokenizer
    sizes, one_hot = actions.sizes, actions.one_hot
    state_token = tokenizer.state_encoder(state[None])[0]  # step 1
    return_token = torch.tanh(tokenizer.embed_return((return_to_go * tokenizer.return_scale)[None]))
    tokens = [return_token, state_token]
    if actions.kind == "single":
        parts = [one_hot_reference(value, 0, [size], "disjoint") for value, size in zip(action, sizes, strict=True)]
        tokens.append(mlp_reference(tokenizer, torch.cat(parts)))
    for component, value in enumerate(action):
        vector = one_hot_reference(value, component, sizes, one_hot)
        if actions.kind == "multi":
            tokens.append(mlp_reference(tokenizer, vector))
        elif actions.kind == "multi_state":
            tokens.append(mlp_reference(tokenizer, torch.cat([state_token, vector])))  # step 3
    if tokenizer.embed_timestep is None or timestep is None:
        return tokens
    return [token + tokenizer.embed_timestep.weight[timestep] for token in tokens]


def tokens_reference(
    tokenizer: StepTokenizer, states: Tensor, actions: Tensor, returns_to_go: Tensor, timesteps: Tensor | None
) -> Tensor:
    """The tokens of a batch, [batch, steps x tokens_per_step, hidden]."""
    rows = []
    for row, (states_of_row, returns_of_row) in enumerate(zip(states, returns_to_go, strict=True)):
        tokens = []
        for step, (state, return_to_go) in enumerate(zip(states_of_row, returns_of_row, strict=True)):
            timestep = None if timesteps is None else int(timesteps[row, step])
            tokens += step_tokens_reference(tokenizer, state, actions[row, step].tolist(), return_to_go, timestep)
        rows.append(torch.stack(tokens))
    return torch.stack(rows)
