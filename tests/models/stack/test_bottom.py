"""Position 0 is the bottom of the stack (Eq. 19): any token by default, the BOS alone where that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoTokenizer, DynamicCache, GPT2Config, GPT2LMHeadModel, StaticCache

from hf_mech.models.stack import StackError, StackGPT2ForCausalLM, StackRobertaConfig, StackRobertaForMaskedLM
from tests.stock import END, TEXTS

from .contract import gpt2, inputs, roberta
from .stock import stock_folder

families = pytest.mark.parametrize(
    ("model_class", "config"), [(StackGPT2ForCausalLM, gpt2), (StackRobertaForMaskedLM, roberta)]
)


def new(model_class: Any, config: Any) -> Any:
    torch.manual_seed(0)
    return model_class(config).eval()


def without_bos(config: Any) -> Any:
    return type(config())(**{**config().to_dict(), "bos_token_id": None})


@families
def test_behind_a_bos_both_are_equal(model_class: Any, config: Any):
    any_token, strict = new(model_class, config()), new(model_class, config(stack_bottom="bos_token"))
    batch = inputs(3, 9, 0)
    assert torch.equal(any_token(**batch).logits, strict(**batch).logits)


@families
def test_any_token_is_the_bottom(model_class: Any, config: Any):
    """Its row of the stack attention is Eq. 19, and its own action does not matter."""
    model, batch = new(model_class, without_bos(config)), inputs(3, 9, 0)
    batch["input_ids"][:, 0] = torch.tensor([5, 6, 7])
    alphas = model(**batch, output_stack_attentions=True).stack_attentions
    for alpha in alphas:
        assert torch.equal(alpha[:, 0], torch.eye(9)[0].expand(3, -1))
        assert_close(alpha.sum(-1), torch.ones(3, 9))


@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 4]])
@pytest.mark.parametrize("kind", [DynamicCache, StaticCache])
@torch.no_grad()
def test_the_bottom_of_every_row_in_a_cache(chunks: list[int], kind: type):
    """Rows that begin at different columns, without a BOS, in chunks: as without a cache."""
    model, batch = new(StackGPT2ForCausalLM, without_bos(gpt2)).double(), inputs(3, 9, 0)
    ids, mask = batch["input_ids"] + 3, batch["attention_mask"]
    mask[1, :5], mask[2, :2] = 0, 0
    cache = kind(config=model.config) if kind is DynamicCache else kind(config=model.config, max_cache_len=12)
    expected, parts, done = model(ids.remainder(13), attention_mask=mask).logits, [], 0
    for part in ids.remainder(13).split(chunks, 1):
        done += part.shape[1]
        parts.append(model(part, attention_mask=mask[:, :done], past_key_values=cache).logits)
    assert_close(torch.cat(parts, 1)[mask.bool()], expected[mask.bool()])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf Tensor:UserWarning")
def test_compiled_without_a_bos():
    torch.compiler.reset()
    model, batch = new(StackGPT2ForCausalLM, without_bos(gpt2)), inputs(2, 6, 0)
    batch["input_ids"][:, 0] = 9
    batch["attention_mask"][1, :2] = 0
    real = batch["attention_mask"].bool()
    compiled = torch.compile(model, backend="aot_eager")(**batch).logits
    assert_close(compiled[real], model(**batch).logits[real])
    torch.compiler.reset()


def test_the_cures_that_the_message_names(tmp_path: Path):
    """A stock tokenizer puts no BOS; with `add_bos_token` it does, also after saving and loading."""
    folder = stock_folder(tmp_path / "stock")
    strict = StackGPT2ForCausalLM.from_pretrained(folder, stack_bottom="bos_token")
    stock = AutoTokenizer.from_pretrained(folder)
    with pytest.raises(StackError, match=r"add_bos_token=True.*stack_bottom='first_token'"):
        strict(**stock(TEXTS[0], return_tensors="pt"))
    StackGPT2ForCausalLM.from_pretrained(folder, stack_bottom="first_token")(**stock(TEXTS[0], return_tensors="pt"))

    with_bos = AutoTokenizer.from_pretrained(folder, add_bos_token=True)
    with_bos.save_pretrained(tmp_path / "saved")
    for tokenizer in (with_bos, AutoTokenizer.from_pretrained(tmp_path / "saved")):
        rows = tokenizer(list(TEXTS))["input_ids"]
        assert [row[0] for row in rows] == [stock.convert_tokens_to_ids(END)] * len(TEXTS)
        assert [row[1:] for row in rows] == stock(list(TEXTS))["input_ids"]
        strict(**tokenizer(TEXTS[0], return_tensors="pt"))


def test_a_bottom_that_does_not_exist_is_refused_wherever_it_is_named(tmp_path: Path):
    """As an argument of loading, and as an attribute."""
    GPT2LMHeadModel(
        GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=10, bos_token_id=0, eos_token_id=0)
    ).save_pretrained(tmp_path)
    with pytest.raises(StackError, match=r"stack_bottom must be one of 'first_token', 'bos_token', got 'bos'"):
        StackGPT2ForCausalLM.from_pretrained(tmp_path, stack_bottom="bos")
    config = StackRobertaConfig()
    with pytest.raises(StackError, match=r"stack_bottom must be one of 'first_token', 'bos_token', got 'bos'"):
        config.stack_bottom = "bos"
