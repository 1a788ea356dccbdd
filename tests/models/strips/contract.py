"""The STRIPS Transformer as the contract suite sees it."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from hf_mech.models.strips import (
    LiftedAction,
    LiftedDomain,
    StripsAction,
    StripsDataCollator,
    StripsDomain,
    StripsError,
    StripsTransformerConfig,
    encode_trace,
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
from hf_mech.models.strips.strips_cells import Cells
from hf_mech.models.strips.strips_lifted_attention import lifted_attention, lifted_attention_reference
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


# ------------------------------------------------------------------------------------------------------------ lifted

FERRY = LiftedDomain(
    {"at": ("car", "place"), "here": ("place",), "aboard": ("car",), "empty": ()},
    (
        LiftedAction("sail", ("place", "place"), {("here", (0,))}, {("here", (1,))}, {("here", (0,))}),
        LiftedAction(
            "board",
            ("car", "place"),
            {("at", (0, 1)), ("here", (1,)), ("empty", ())},
            {("aboard", (0,))},
            {("at", (0, 1)), ("empty", ())},
        ),
        LiftedAction(
            "debark",
            ("car", "place"),
            {("aboard", (0,)), ("here", (1,))},
            {("at", (0, 1)), ("empty", ())},
            {("aboard", (0,))},
        ),
    ),
    "ferry",
)
OBJECTS = {"car": ["c1", "c2"], "place": ["l1", "l2", "l3"]}
CALLS = [str(action) for action in FERRY.ground_actions(OBJECTS)]  # sail(l1,l1) too: an object twice


def lifted_config() -> StripsTransformerConfig:
    types = {action.name: list(action.parameters) for action in FERRY.actions}
    predicates = {name: list(types) for name, types in FERRY.predicates.items()}
    return StripsTransformerConfig(parameters=types, predicates={**predicates, "any": ["place"]}, ensemble=3)


def lifted_processing() -> tuple[StripsTransformerConfig, PreTrainedTokenizerBase]:
    return lifted_config(), strips_tokenizer([action.name for action in FERRY.actions])


def lifted_inputs(batch: int, length: int, seed: int) -> Batch:
    """Random traces over two cars and three places, every action labelled by the hidden domain."""
    random = Random(seed)
    rows = []
    for _ in range(batch):
        trace = random.choices(CALLS, k=length)
        rows.append({**encode_trace(lifted_config(), trace), "labels": FERRY.labels(trace)})
    return StripsDataCollator(lifted_config())(rows)


def stream_ground(model: StripsTransformer, batch: Batch) -> dict[str, Tensor]:
    """As `stream`, row by row in the propositional model over the row's objects."""
    rows = []
    for ids, objects in zip(batch["input_ids"].tolist(), batch["objects"].tolist(), strict=True):
        own: dict[str, set[str]] = {"car": set(), "place": set()}
        calls = []
        for action, taken in zip(ids, objects, strict=True):
            if action == model.config.num_actions:
                calls.append("")
                continue
            names = [f"x{one}" for one in taken if one >= 0]
            calls.append(f"{model.config.actions[action]}({','.join(names)})")
            for type_, name in zip(model.config.parameters[model.config.actions[action]], names, strict=True):
                own[type_].add(name)
        ground = model.ground(own)
        number = {name: index for index, name in enumerate([*ground.config.actions, ""])}
        rows.append(stream(ground, {"input_ids": torch.tensor([[number[call] for call in calls]])})["inapplicability"])
    return {"inapplicability": torch.cat(rows)}


def lifted_arguments(seed: int) -> tuple[Tensor, Cells, Tensor, Tensor, Tensor]:
    """theta, cells, ids with padding on either side, objects, of which an action may take one twice, and failures."""
    generator = torch.Generator().manual_seed(seed)
    cells = Cells({"a": "st", "b": "t", "c": "tts", "d": ""}, {"p": "tt", "q": "t", "r": ""}, {"s": "t"})
    theta = torch.rand(2, cells.count, 3, generator=generator, dtype=torch.float64)
    ids = torch.randint(0, 4, (5, 9), generator=generator)
    objects = torch.randint(0, 3, (5, 9, 3), generator=generator)
    objects[torch.arange(3) >= torch.tensor([2, 1, 3, 0])[ids][..., None]] = -1
    failed = torch.rand(ids.shape, generator=generator) < 0.3
    ids[0, :3], ids[1, -2:] = -1, -1
    return theta, cells, ids, objects, failed


def lifted_reference(*arguments: Any) -> tuple[Tensor, Tensor]:
    return lifted_attention_reference(*arguments)[:2]


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
        model_class=StripsTransformer,
        variant="lifted",
        config=lifted_config,
        inputs=lifted_inputs,
        padding={"input_ids": 3, "attention_mask": 0, "labels": -100, "objects": -1},
        position_outputs=("inapplicability", "head_outputs"),
        learning_rate=0.02,
        stream=stream_ground,
        formulas=(Formula("lifted", lifted_attention, lifted_reference, lifted_arguments),),
        refuses_partial=StripsError,
        processing=lifted_processing,
        refused_tasks={"feature-extraction": "a stock tokenizer gives no objects"},
        texts=("sail(l1,l2) board(c1,l2)", "board(c1,l1) board(c2,l1) sail(l1,l2) debark(c2,l2) debark(c1,l2)"),
        lacks={
            **LACKS,
            "export": "its atoms are those of a batch's objects; export the model of `ground`",
        },
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
