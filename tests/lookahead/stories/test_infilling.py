"""Fill-in-the-middle rows: their parts, their cuts, their labels, and a stock model that learns from them."""

from collections import Counter

import pytest
import torch
from datasets import Dataset
from transformers import (
    DataCollatorForSeq2Seq,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2TokenizerFast,
    Trainer,
    TrainingArguments,
)

from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.tokens import FillInTheMiddle

EOS, PREFIX, SUFFIX, MIDDLE = 1, 2, 3, 4
ORDERS = ["suffix-first", "prefix-first"]


def layout(order, **settings):
    return FillInTheMiddle(EOS, PREFIX, SUFFIX, MIDDLE, order=order, **settings)


def parts(row, order):
    """Prefix and middle, or the three parts, and the suffix, read from the sentinels."""
    if order == "suffix-first":
        assert row[0] == SUFFIX
        at = row.index(PREFIX)
        suffix, story = row[1:at], row[at + 1 :]
        assert suffix[-1] == story[-1] == EOS
        return story[:-1], [], suffix[:-1]
    assert row[0] == PREFIX
    a, b = row.index(SUFFIX), row.index(MIDDLE)
    assert row[b - 1] == row[-1] == EOS
    return row[1:a], row[b + 1 : -1], row[a + 1 : b - 1]


@pytest.mark.parametrize("order", ORDERS)
def test_the_parts_of_a_row_are_the_story(order, rows):
    made = rows.map(layout(order, copies=2), batched=True, with_indices=True, remove_columns=rows.column_names)
    assert len(made) == 2 * len(rows)
    for number, row in enumerate(made):
        prefix, middle, suffix = parts(row["input_ids"], order)
        story = rows[number // 2]["input_ids"]
        assert [*prefix, *middle, *suffix, EOS] == story
        assert len(prefix) > 0
        assert len(row["input_ids"]) == len(story) + layout(order).extra_tokens
        if order == "suffix-first":  # App. D.1 trains x_{t+1} of the prefix, not the suffix
            trained = [*prefix, EOS]
            assert row["labels"] == [-100] * (len(row["input_ids"]) - len(trained)) + trained
        else:
            assert row["labels"] == row["input_ids"]


@pytest.mark.parametrize("order", ORDERS)
def test_cuts_are_uniform_and_functions_of_the_index(order):
    story = [*range(10, 15), EOS]
    cuts = Counter()
    for index in range(6_000):
        ((row,), _) = layout(order)({"input_ids": [story]}, [index]).values()
        prefix, middle, _ = parts(row, order)
        cuts[len(prefix), len(prefix) + len(middle)] += 1
    ends = range(1, 6)
    wanted = {(e, e): 0.2 for e in ends} if order == "suffix-first" else {}
    if order == "prefix-first":
        wanted = {(a, b): 0.04 if a == b else 0.08 for a in ends for b in ends if a <= b}
    assert cuts.keys() == wanted.keys()
    assert all(abs(cuts[key] / 6_000 - share) < 0.02 for key, share in wanted.items())
    batch = layout(order, seed=3)({"input_ids": [story] * 20}, range(20))
    assert batch == layout(order, seed=3)({"input_ids": [story] * 20}, list(range(20)))
    assert batch != layout(order, seed=4)({"input_ids": [story] * 20}, range(20))
    alone = layout(order, seed=3)({"input_ids": [story]}, [7])
    assert alone["input_ids"][0] == batch["input_ids"][7]


@pytest.mark.parametrize("order", ORDERS)
def test_the_prompt_is_the_beginning_of_a_training_row(order):
    story = list(range(10, 16))
    for index in range(30):
        ((row,), _) = layout(order)({"input_ids": [[*story, EOS]]}, [index]).values()
        prefix, middle, suffix = parts(row, order)
        assert row == [*layout(order).prompt(prefix, suffix), *middle, EOS]


def test_prompts_with_and_without_a_goal():
    assert layout("suffix-first").prompt([10, 11], [14]) == [SUFFIX, 14, EOS, PREFIX, 10, 11]
    assert layout("suffix-first").prompt([10, 11]) == [SUFFIX, EOS, PREFIX, 10, 11]
    assert layout("prefix-first").prompt([10, 11], [14]) == [PREFIX, 10, 11, SUFFIX, 14, EOS, MIDDLE]
    assert layout("prefix-first").prompt([10, 11]) == [PREFIX, 10, 11, SUFFIX, EOS, MIDDLE]


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_a_stock_model_learns_to_fill_the_middle(order, tokenizer, tmp_path):
    """Stories `a n n n n`: only the suffix tells the n behind `a`; a stock Trainer, collator and generate."""
    numbers = list(range(11, 19))
    stories = [[10, n, n, n, n, EOS] for n in numbers] * 8
    data = Dataset.from_dict({"input_ids": stories})
    fim = FillInTheMiddle.of(tokenizer, order=order, copies=8)
    made = data.map(fim, batched=True, with_indices=True)
    sizes = {"vocab_size": 20, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 2}
    special = {"bos_token_id": EOS, "eos_token_id": EOS, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = GPT2LMHeadModel(GPT2Config(**sizes, **special))
    arguments = TrainingArguments(
        str(tmp_path),
        max_steps=100,
        per_device_train_batch_size=32,
        learning_rate=5e-3,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    Trainer(model, arguments, train_dataset=made, data_collator=DataCollatorForSeq2Seq(tokenizer)).train()
    model.eval()
    right = 0
    for n in numbers:
        prompt = torch.tensor([fim.prompt([10], [n, n, n])])
        written = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=4, do_sample=False, pad_token_id=0
        )
        right += written[0, prompt.shape[1] :].tolist() == [n, EOS]
    assert right == len(numbers)


def test_settings_that_make_no_sense_are_refused(tokenizer):
    with pytest.raises(LookaheadError, match="order must be one of"):
        layout("middle-first")
    with pytest.raises(LookaheadError, match="copies must be 1 or more, got 0"):
        layout("suffix-first", copies=0)
    with pytest.raises(LookaheadError, match="seed must be 0 or more, got -1"):
        layout("suffix-first", seed=-1)
    with pytest.raises(LookaheadError, match=r"four different tokens, got \(1, 2, 3, 3\)"):
        FillInTheMiddle(1, 2, 3, 3)
    with pytest.raises(LookaheadError, match="Story 5 has no token"):
        layout("suffix-first")({"input_ids": [[EOS]]}, [5])
    assert FillInTheMiddle.of(tokenizer) == layout("suffix-first")


def test_a_tokenizer_without_sentinels_is_refused(tokenizer):
    bare = GPT2TokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, eos_token="<|eos|>")
    with pytest.raises(LookaheadError, match="no prefix_token, suffix_token, middle_token"):
        FillInTheMiddle.of(bare)
