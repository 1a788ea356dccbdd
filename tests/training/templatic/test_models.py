"""The six models: padding, generation, learning, and sizes that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

from hf_mech.programs.templatic.batches import Layout
from tests.training.templatic.small import ENCODER_DECODERS, MODELS, made, small
from training.templatic.models import AttentionOnlyGPT2LMHeadModel, answers, make_model, save_model
from training.templatic.run import exact_matches
from training.templatic.settings import KINDS


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_is_its_rows_and_generation_is_the_forward(
    tokenizer: PreTrainedTokenizerFast, rows: dict[str, list[str]], name: str
):
    """Padding changes neither loss nor answer; each generated word is what the forward finds most probable there."""
    model, layout = made(tokenizer, name), Layout(tokenizer, KINDS[name])
    rows = {key: texts[:20] for key, texts in rows.items()}
    batch = layout.training(rows)
    with torch.no_grad():
        whole = model(**batch).loss
        count, total = 0, 0.0
        for row in range(len(rows["prompt"])):
            one = layout.training({key: texts[row : row + 1] for key, texts in rows.items()})
            words = int((one["labels"] != -100).sum())
            count, total = count + words, total + words * float(model(**one).loss)
        torch.testing.assert_close(float(whole), total / count, rtol=1e-4, atol=0)

        said = answers(model, layout.prompts(rows), 9)
        assert said.shape == (20, 9)
        known = [[t for t in row if t != tokenizer.pad_token_id] for row in said.tolist()]
        texts = [tokenizer.decode([t for t in row if t != tokenizer.eos_token_id]) for row in known]
        lengths = [row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else 9 for row in known]
        for row in range(0, 20, 3):
            again = layout.training({"prompt": [rows["prompt"][row]], "completion": [texts[row]]})
            shift = name not in ENCODER_DECODERS  # a decoder's logits are of the next column's word
            asked = again["labels"][0, shift:] != -100
            forward = model(**again).logits[0, : len(asked)].argmax(-1)[asked][: lengths[row]]
            assert forward.tolist() == said[row, : lengths[row]].tolist()


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("cnn", "nano_gpt_attn_only") else pytest.param(name, marks=pytest.mark.slow)
        for name in MODELS  # of the quick two one is an encoder and decoder
    ],
)
def test_a_model_learns_one_batch(tokenizer: PreTrainedTokenizerFast, rows: dict[str, list[str]], name: str):
    few = {key: texts[:4] for key, texts in rows.items()}
    layout = Layout(tokenizer, KINDS[name])
    model = made(tokenizer, name, hidden=32, filter=32, layers=1, initializer_range=0.1).train()
    optimizer, batch = torch.optim.Adam(model.parameters(), lr=1e-2), layout.training(few)
    for _ in range(800 if name == "lstm_attn" else 120):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        unused = [n for n, p in model.named_parameters() if p.grad is None]
        assert not unused
        optimizer.step()
    assert loss.item() < 0.1
    right = list(exact_matches(model.eval(), layout, datasets.Dataset.from_dict(few), 3, torch.device("cpu")))
    assert right == [True] * 4


def test_without_mlps_only_attention_writes_to_the_residual_stream(tokenizer: PreTrainedTokenizerFast, tmp_path: Path):
    with_mlps: Any = made(tokenizer, "nano_gpt")
    without: Any = made(tokenizer, "nano_gpt_attn_only")
    assert isinstance(without, GPT2LMHeadModel)
    names = {name for name, _ in without.named_parameters()}
    assert names == {n for n, _ in with_mlps.named_parameters() if ".mlp." not in n and ".ln_2." not in n}
    with torch.no_grad():  # GPT-2 itself, if its MLPs say nothing
        with_mlps.load_state_dict(without.state_dict(), strict=False)
        for block in with_mlps.transformer.h:
            block.mlp.c_proj.weight.zero_()
            block.mlp.c_proj.bias.zero_()
        ids = torch.randint(4, len(tokenizer), (2, 9))
        assert torch.equal(without(ids).logits, with_mlps(ids).logits)
        save_model(without, tokenizer, tmp_path)
        again = AttentionOnlyGPT2LMHeadModel.from_pretrained(tmp_path)
        assert torch.equal(again(ids).logits, without(ids).logits)


@pytest.mark.parametrize(
    ("model", "size", "message"), [("mamba", {"filter": 24}, "multiple of 16"), ("cnn", {"kernel": 4}, "odd")]
)
def test_sizes_that_do_not_fit(tokenizer: PreTrainedTokenizerFast, model: str, size: dict[str, int], message: str):
    with pytest.raises(ValueError, match=message):
        make_model(small(model, **size), tokenizer)
