"""The DAT models as the contract suite sees them: the relaxed backend, whose weights have gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hf_mech.models.dat import DATConfig, DATForCausalLM, DATModel, DATTokenizer
from hf_mech.models.dat.dat_layer import soft_first_match, soft_first_match_reference
from tests.contract.batches import Batch
from tests.contract.case import ContractCase, Formula
from tests.models.dat import semi_formal_contract

END, FIRST_WORD, WORDS = 1, 45, 6


def entry(q: dict[str, Any], k: dict[str, Any], v: dict[str, Any], **more: Any) -> dict[str, Any]:
    weights = {"q": q, "k": k, "v": v}
    return {"layer_comment": "", "causal_attn": False, "right_match": False, "weights": weights, **more}


# Every kind of block of (72), first and last match, causal attention and a repeat block. A cell with the mark, which
# spreads from the end of the prompt to all but the first, says the word behind the first one like it.
PROGRAM: dict[str, Any] = {
    "register_map": {"symbol": "s", "position": "p", "before": "s*", "mark": "m", "found": "g"},
    "constants_map": {},
    "system_map": {"symbol": "symbol", "position": "position", "output": "symbol", "eop": "mark"},
    "watch_list": [],
    "initial": {"g": "no"},
    "weights": [
        entry({"p`": "p@pos_decrement"}, {"p`": "p"}, {"s*": "s"}),
        {
            "layer_comment": "spread the mark",
            "until": {},
            "weights": [entry({"m`": "EOP", "p": "p"}, {"m`": "m", "p": ["!=", "1"]}, {"m": "m"}, right_match=True)],
        },
        entry(
            {"s": "s", "g": "g", "m": "m"},
            {"s": "s*", "g": ["in", "no", "yes"], "m": "EOP"},
            {"s": "s", "g": "yes"},
            causal_attn=True,
        ),
    ],
}


def config(**options: Any) -> DATConfig:
    options = {"backend": "relaxed", "relaxation_temperature": 0.5, "logit_scale": 8.0, **options}
    return DATConfig(qkvl=PROGRAM, max_position_embeddings=40, num_open_values=WORDS, **options)


def processing() -> tuple[DATConfig, DATTokenizer]:
    made = config()
    sizes = {name: getattr(made, name) for name in ("max_position_embeddings", "constants", "num_open_values")}
    return made, DATTokenizer(**sizes)


def inputs(batch: int, length: int, seed: int) -> Batch:
    """Words, the end of the prompt behind the first half of them, and further words."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(FIRST_WORD + 1, FIRST_WORD + WORDS, (batch, length), generator=generator)
    ids[:, (length + 1) // 2] = END
    return {"input_ids": ids, "attention_mask": torch.ones(batch, length, dtype=torch.long)}


def completions(batch: int, length: int, seed: int) -> Batch:
    """With labels: the words behind the prompt, which count on from its last word."""
    made = inputs(batch, length, seed)
    ids, end = made["input_ids"], (length + 1) // 2
    for column in range(end + 1, length):
        ids[:, column] = FIRST_WORD + 1 + (ids[:, end - 1] - FIRST_WORD - 1 + column - end) % (WORDS - 1)
    labels = ids.clone()
    labels[:, : end + 1] = -100
    return {**made, "labels": labels}


def scores(seed: int, right: bool) -> tuple[Tensor, bool]:
    generator = torch.Generator().manual_seed(seed)
    return 4 * torch.randn(2, 3, 9, generator=generator, dtype=torch.float64), right


PADDING = {"input_ids": 0, "attention_mask": 0, "labels": -100}
LACKS = {
    "sdpa": "attention picks one cell, it mixes none",
    "checkpointing": "the layers' inputs are the cache",
    "lora": "no layer that peft knows",
    "stream": "generation keeps its state in a cache",
    "export": "the rows and the steps of a repeat block follow from the tokens, which an exported graph cannot look at",
    "packing": "a prompt is a row: all its cells attend to each other",
    "random_weights": "a new model is the program of its configuration",
}
FORMULAS = (
    Formula("first match", soft_first_match, soft_first_match_reference, lambda seed: scores(seed, False)),
    Formula("last match", soft_first_match, soft_first_match_reference, lambda seed: scores(seed, True)),
)
CASES = (
    ContractCase(
        model_class=DATModel,
        config=config,
        inputs=inputs,
        padding=PADDING,
        processing=processing,
        texts=("a b", "c a b d"),
        position_outputs=("last_hidden_state",),
        formulas=FORMULAS,
        lacks={**LACKS, "loss": "no head on top", "generation": "no head on top"},
    ),
    ContractCase(
        model_class=DATForCausalLM,
        config=config,
        inputs=completions,
        padding=PADDING,
        processing=processing,
        texts=("a b", "c a b d"),
        position_outputs=("logits",),
        bf16_tolerance=0.2,
        lacks={
            **LACKS,
            "formulas": "those of the model without a head",
            "output_embeddings": "logits are a register of the program",
        },
    ),
    *semi_formal_contract.CASES,
)
