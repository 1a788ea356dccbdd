"""The M-SAT Decision Transformer as the contract suite sees it: small frames, three components, M-SAT's tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hf_mech.models.msat.configuration_msat import MSATDecisionTransformerConfig
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer, StepTokenizer
from tests.contract.batches import Batch
from tests.contract.case import ContractCase, Formula

from .reference import tokens_reference

SIZES = [3, 2, 4]
FRAME = (3, 36, 36)


def config(**changes: Any) -> MSATDecisionTransformerConfig:
    plain: dict[str, Any] = {
        "action_sizes": SIZES,
        "state_shape": FRAME,
        "context_length": 16,
        "max_timestep": 40,
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 16,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "attn_pdrop": 0.0,
    }
    return MSATDecisionTransformerConfig(**{**plain, **changes})


def inputs(batch: int, length: int, seed: int) -> Batch:
    """Windows of episodes: a component's value is how bright its part of the frame is."""
    generator = torch.Generator().manual_seed(seed)
    actions = torch.stack([torch.randint(size, (batch, length), generator=generator) for size in SIZES], -1)
    bands = actions.repeat_interleave(FRAME[1] // len(SIZES), -1)[:, :, None, :, None]
    noise = torch.randint(40, (batch, length, *FRAME), generator=generator)
    first = torch.randint(20, (batch, 1), generator=generator)
    return {
        "states": (bands * 60 + noise).to(torch.uint8),
        "actions": actions,
        "returns_to_go": torch.rand(batch, length, generator=generator) * 2,
        "timesteps": first + torch.arange(length),
        "attention_mask": torch.ones(batch, length, dtype=torch.long),
        "labels": actions.clone(),
    }


def stream(model: MSATDecisionTransformer, batch: Batch) -> dict[str, Tensor]:
    """The logits of `act`, one decision after the other; rows begin at their first real step."""
    context, real = model.start_context(len(batch["states"])), batch["attention_mask"].bool()
    logits = []
    for step in range(real.shape[1]):
        begins = real[:, step] & ~real[:, :step].any(1)
        now = {name: batch[name][:, step] for name in ("states", "returns_to_go", "timesteps", "actions")}
        model.act(**now, context=context, begins=begins)
        assert context.logits is not None
        logits.append(context.logits)
    return {"logits": torch.stack(logits, 1)}


def tokenizer(**changes: Any) -> StepTokenizer:
    """With random weights, float64."""
    torch.manual_seed(7)
    return MSATDecisionTransformer(config(**changes)).double().tokenizer


def token_arguments(seed: int, features: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """States, actions, returns-to-go and timesteps of windows that begin anywhere."""
    generator = torch.Generator().manual_seed(seed)
    states = torch.rand(2, 3, features, generator=generator, dtype=torch.float64)
    actions = torch.stack([torch.randint(size, (2, 3), generator=generator) for size in SIZES], -1)
    returns = torch.rand(2, 3, generator=generator, dtype=torch.float64)
    return states, actions, returns, torch.randint(30, (2, 1), generator=generator) + torch.arange(3)


def formula(name: str, **changes: Any) -> Formula:
    """The tokens of states that are vectors, which get gradients too."""
    made: list[StepTokenizer] = []  # with the first call: a contract file is also read where nothing runs

    def with_tokenizer(function: Callable[..., Tensor], *arguments: Tensor) -> Tensor:
        if not made:
            made.append(tokenizer(state_shape=[5], **changes))
        return function(made[0], *arguments)

    return Formula(
        name,
        partial(with_tokenizer, StepTokenizer.__call__),
        partial(with_tokenizer, tokens_reference),
        lambda seed: token_arguments(seed, 5),
    )


FORMULAS = (
    formula("single", action_tokenization="single"),
    formula("multi", action_tokenization="multi"),
    formula("multi_state"),
    formula("multi_state, overlapping", one_hot="overlapping"),
    formula("multi_state, no positions", positional_encoding=False, return_scale=0.1),
)

LACKS = {
    "generation": "decides in environments with `act`; there is no text to generate",
    "packing": "a row is one window of one episode",
    "pipeline": "reads states, actions and returns-to-go; transformers has no pipeline for them",
}

CASES = (
    ContractCase(
        model_class=MSATDecisionTransformer,
        config=config,
        inputs=inputs,
        padding={
            "states": 0,
            "actions": 0,
            "returns_to_go": 0,
            "timesteps": 0,
            "attention_mask": 0,
            "labels": -100,
        },
        tokens_per_position=2 + len(SIZES),
        position_outputs=("logits",),
        learning_rate=3e-3,
        stream=stream,
        formulas=FORMULAS,
        lacks=LACKS,
    ),
)
