"""Action names as tokens: ids are the actions' indices, and transformers' own tools fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, DataCollatorForTokenClassification
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_mech.models.strips.configuration_strips import StripsTransformerConfig
from hf_mech.models.strips.modeling_strips import StripsTransformer
from hf_mech.models.strips.strips_domain import StripsError
from hf_mech.models.strips.tokenization_strips import strips_tokenizer
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
def test_ids_are_the_actions_indices(name: str):
    actions = load_bundled(name).domain.action_names
    tokenizer = strips_tokenizer(actions)
    assert tokenizer(" ".join(actions))["input_ids"] == list(range(len(actions)))
    assert tokenizer.decode(range(len(actions))) == " ".join(actions)
    assert tokenizer.pad_token_id == StripsTransformerConfig(actions=list(actions)).pad_token_id == len(actions)


def test_it_is_saved_and_loaded_whole(tmp_path: Path):
    tokenizer = strips_tokenizer(["put(a,b)", "take(b)"])
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert isinstance(loaded, PreTrainedTokenizerFast)
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert loaded(["take(b) put(a,b)", "take(b)"], padding=True)["input_ids"] == [[1, 0], [1, 2]]


def test_an_unknown_action_is_refused_by_the_model():
    model = StripsTransformer(StripsTransformerConfig(actions=["a", "b"]))
    ids = strips_tokenizer(["a", "b"])("a zork b", return_tensors="pt")
    with pytest.raises(StripsError, match="index 3 at row 0, position 1"):
        model(**ids)


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right"])
def test_transformers_own_collator_pads_what_the_model_reads(side: str):
    domain = load_bundled("simple").domain
    tokenizer = strips_tokenizer(domain.action_names)
    tokenizer.padding_side = side
    traces = [["a"], ["a", "c", "a"], ["c", "b", "b", "a"]]
    rows = [{"input_ids": domain.encode(trace), "labels": domain.labels(trace)} for trace in traces]
    batch = DataCollatorForTokenClassification(tokenizer)(rows)
    assert batch["input_ids"].shape == (3, 4)
    output = StripsTransformer.from_domain(domain)(**batch)
    expected = batch["labels"].clamp(min=0).unsqueeze(-1)
    assert torch.equal(output.inapplicability, expected.to(output.inapplicability.dtype))
    assert float(output.loss) < 1e-6
