"""The STRIPS Transformer as the contract suite sees it."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from hf_mech.models.strips import (
    StripsAction,
    StripsDomain,
    StripsError,
    StripsTransformerConfig,
    strips_tokenizer,
)
from hf_mech.models.strips.modeling_strips import (
    StripsTransformer,
    StripsTransformerForTokenClassification,
    classification_logits,
)
from hf_mech.models.strips.strips_attention import (
    strips_attention,
    strips_attention_linear,
    strips_attention_reference,
)
from tests.contract.batches import Batch
from tests.contract.case import ContractCase, Formula

HIDDEN = StripsDomain(
    ("lit", "open", "locked"),
    (
        StripsAction("switch-on", delete=frozenset({"locked"}), add=frozenset({"lit"})),
        StripsAction("switch-off", pre=frozenset({"lit"}), delete=frozenset({"lit"})),
        StripsAction("enter", pre=frozenset({"lit", "open"})),
        StripsAction("lock", pre=frozenset({"locked"}), add=frozenset({"locked"}), delete=frozenset({"open"})),
        StripsAction("unlock", add=frozenset({"open", "locked"})),
    ),
    "room",
)


def config() -> StripsTransformerConfig:
    return StripsTransformerConfig(actions=list(HIDDEN.action_names), num_propositions=4, ensemble=3)


def processing() -> tuple[StripsTransformerConfig, PreTrainedTokenizerBase]:
    return config(), strips_tokenizer(HIDDEN.action_names)


def inputs(batch: int, length: int, seed: int) -> Batch:
    """Random traces, every action labelled by the hidden domain."""
    random = Random(seed)
    traces = [random.choices(range(len(HIDDEN.actions)), k=length) for _ in range(batch)]
    return {
        "input_ids": torch.tensor(traces),
        "attention_mask": torch.ones(batch, length, dtype=torch.long),
        "labels": torch.tensor([HIDDEN.labels(trace) for trace in traces]),
    }


def stream(model: StripsTransformer, batch: Batch) -> dict[str, Tensor]:
    """The score that `step` gave each action before it was taken; the first has no action before it."""
    ids, last = batch["input_ids"], model.config.num_actions - 1
    scores, state = torch.zeros(len(ids), last + 1, model.config.ensemble, dtype=model.dtype), None
    taken = []
    for actions in ids.unbind(1):
        taken.append(scores[torch.arange(len(actions)), actions.clamp(max=last)])  # padding has no score
        scores, state = model.step(actions, state)
    return {"inapplicability": torch.stack(taken, 1)}


def attention_arguments(seed: int) -> tuple[Tensor, Tensor]:
    """theta [members, heads, actions, 3] and action ids [batch, length], some of them padding on either side."""
    generator = torch.Generator().manual_seed(seed)
    theta = torch.rand(2, 3, 4, 3, generator=generator, dtype=torch.float64)
    ids = torch.randint(0, 4, (5, 9), generator=generator)
    ids[0, :3], ids[1, -2:] = -1, -1
    return theta, ids


def reference(theta: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    return strips_attention_reference(theta, ids)[:2]


def stream_logits(model: StripsTransformerForTokenClassification, batch: Batch) -> dict[str, Tensor]:
    return {"logits": classification_logits(stream(model, batch)["inapplicability"])}


LACKS = {
    "generation": "scores traces; `next_actions` and `step` say what may follow, nothing is sampled",
    "sdpa": "stick-breaking attention has no softmax",
    "checkpointing": "one layer, whose compiled backward recomputes its states by itself",
    "lora": "theta is a parameter of the model, no layer with a matrix of low rank to add",
    "packing": "a trace is a row: the state of the world at its beginning is a row's",
    "hidden_states": "one layer over action ids, no hidden states",
    "partial_checkpoints": "theta is all there is: a checkpoint without it is not one",
}

CASES = (
    ContractCase(
        model_class=StripsTransformer,
        config=config,
        inputs=inputs,
        padding={"input_ids": len(HIDDEN.actions), "attention_mask": 0, "labels": -100},
        position_outputs=("inapplicability", "head_outputs"),
        learning_rate=0.02,
        stream=stream,
        formulas=(
            Formula("default", strips_attention, reference, attention_arguments),
            Formula("linear", strips_attention_linear, reference, attention_arguments),
        ),
        refuses_partial=StripsError,
        processing=processing,
        texts=("switch-on enter", "unlock switch-on lock enter switch-off"),
        lacks=LACKS,
    ),
    ContractCase(
        model_class=StripsTransformerForTokenClassification,
        config=config,
        inputs=inputs,
        padding={"input_ids": len(HIDDEN.actions), "attention_mask": 0, "labels": -100},
        position_outputs=("logits",),
        learning_rate=0.02,
        stream=stream_logits,
        refuses_partial=StripsError,
        processing=processing,
        texts=("switch-on enter", "unlock switch-on lock enter switch-off"),
        lacks={**LACKS, "formulas": "those of StripsTransformer, which computes the scores"},
    ),
)
