"""The Semi-formal Transformers as the contract suite sees them."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from hf_mech.models.dat import SemiFormalConfig, SemiFormalForSequenceClassification, SemiFormalModel
from tests.contract.batches import Batch
from tests.contract.case import ContractCase

FIRST_WORD, WORDS = 44, 6


def entry(q: dict[str, Any], k: dict[str, Any], v: dict[str, Any], **more: Any) -> dict[str, Any]:
    weights = {"q": q, "k": k, "v": v}
    return {"layer_comment": "", "causal_attn": False, "right_match": False, "weights": weights, **more}


# Every cell gets an estimate; the estimates are passed on to the right, beyond words that repeat the one before.
PROGRAM: dict[str, Any] = {
    "register_map": {"symbol": "s", "position": "p", "before": "b", "verdict": "v"},
    "constants_map": {},
    "system_map": {"symbol": "symbol", "position": "position", "output": "verdict"},
    "watch_list": [],
    "weights": [
        entry({"p": "p"}, {"p": "p"}, {"v": "JUDGED"}),
        entry({"p`": "p@pos_decrement"}, {"p`": "p"}, {"b": "v"}),
        {
            "layer_comment": "pass on",
            "until": {},
            "weights": [entry({"p": "p", "b": "no"}, {"p": "p", "b": "b"}, {"v": "no"})],
        },
        entry({"p`": "p@pos_decrement", "s": "s"}, {"p`": "p", "s": ["!=", "s"]}, {"v": "v"}, right_match=True),
    ],
    "initial": {"v": "no"},
}


def config(**options: Any) -> SemiFormalConfig:
    usual = {
        **{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24},
        **{"reading_size": 4, "steering_size": 4, "initializer_range": 0.3, "attention_entropy_weight": 0.1},
        **{"train_program": True, "estimates": {"JUDGED": ["no", "yes"]}, "label_values": ["no", "yes"]},
    }
    constants = ["no", "yes", "JUDGED"]
    sizes = {"max_position_embeddings": 40, "num_open_values": WORDS}
    return SemiFormalConfig(qkvl=PROGRAM, constants=constants, **sizes, **{**usual, **options})


def inputs(batch: int, length: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(FIRST_WORD + 2, FIRST_WORD + 2 + WORDS, (batch, length), generator=generator)
    return {"input_ids": ids, "attention_mask": torch.ones(batch, length, dtype=torch.long)}


def labelled(batch: int, length: int, seed: int) -> Batch:
    """The label says whether the last word is one of the first three."""
    made = inputs(batch, length, seed)
    return {**made, "labels": (made["input_ids"][:, -1] < FIRST_WORD + 5).long()}


def processing() -> tuple[SemiFormalConfig, PreTrainedTokenizerFast]:
    """A tokenizer of words, whose ids are the neurons of their values."""
    made = config()
    names = ["<pad>", *(made.values.value(i) or f"<{i}>" for i in range(1, made.values.first_open)), *"abcdef"]
    words = Tokenizer(WordLevel({name: index for index, name in enumerate(names)}, unk_token="<1>"))
    words.pre_tokenizer = WhitespaceSplit()
    names = ["input_ids", "attention_mask"]
    return made, PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", unk_token="<1>", model_input_names=names
    )


PADDING = {"input_ids": 0, "attention_mask": 0, "labels": -100}
LACKS = {
    "generation": "classifies texts",
    "sdpa": "the biased heads pick one cell; the unbiased ones are small",
    "checkpointing": "repeat blocks have as many layers as the text needs",
    "stream": "a text is read at once",
    "formulas": "tests/models/dat/test_semi_formal.py compares the biased heads with their reference",
    "export": "repeat blocks have as many layers as the text needs",
    "packing": "a text is a row: its cells attend to each other",
    "hidden_states": "two parts of a stream, which the model returns by name",
    "attentions": "a repeat block's heads run several times",
}
CASES = (
    ContractCase(
        model_class=SemiFormalModel,
        config=config,
        inputs=inputs,
        padding=PADDING,
        processing=processing,
        texts=("a b", "c a b d"),
        position_outputs=("last_hidden_state", "biased_state"),
        row_outputs=("output", "attention_entropy"),
        bf16_tolerance=0.2,
        lacks={**LACKS, "loss": "no head on top"},
    ),
    ContractCase(
        model_class=SemiFormalForSequenceClassification,
        config=config,
        inputs=labelled,
        padding=PADDING,
        processing=processing,
        texts=("a b", "c a b d"),
        position_outputs=(),
        row_outputs=("logits",),
        bf16_tolerance=0.2,
        lacks=LACKS,
    ),
)
