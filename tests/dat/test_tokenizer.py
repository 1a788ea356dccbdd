"""The tokenizer: an open vocabulary whose ids stay, pairs, padding, saving, and words that look like something else."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from hf_mech.models.dat import DATConfig, DATTokenizer, DATVocabularyError
from hf_mech.psl import compile_program

END = 1


def make(places: int = 20, constants: tuple[str, ...] = ("A", "Q", "$")) -> DATTokenizer:
    return DATTokenizer(max_position_embeddings=9, constants=constants, num_open_values=places)


def test_every_word_has_an_id_and_keeps_it() -> None:
    tokenizer = make()
    first = tokenizer("Q blicket 3 A dax $ blicket")["input_ids"]
    assert first == [13, 15, 5, 12, 16, 14, 15, END]
    assert tokenizer("dax wug")["input_ids"] == [16, 17, END]
    assert tokenizer("Q blicket 3 A dax $ blicket")["input_ids"] == first
    assert tokenizer.open_words == ["blicket", "dax", "wug"]
    assert tokenizer.unk_token is None


def test_words_are_what_white_space_separates() -> None:
    tokenizer = make()
    assert tokenizer.tokenize("  Q\tblicket,\n 3.  A's ") == ["Q", "blicket,", "3.", "A's"]
    assert tokenizer("")["input_ids"] == [END]
    assert tokenizer(["Q", "A"], is_split_into_words=True)["input_ids"] == [13, 12, END]
    # upper and lower case are other words, and so are other spellings of numbers
    assert len(set(tokenizer("q Q a A 03 3 -3 3.0")["input_ids"])) == 9


def test_numbers_are_the_positions_and_larger_ones_are_words() -> None:
    tokenizer = make()
    assert tokenizer("0 9")["input_ids"] == [2, 11, END]
    assert tokenizer("10 ٣ ²")["input_ids"] == [15, 16, 17, END]  # Arabic three, superscript two
    assert tokenizer.decode([2, 11, 15, 16]) == "0 9 10 ٣"


ODD_WORDS = [
    "żółw",
    "\U0001d51b",
    "e\u0301",
    "é",
    "\U0001f469\u200d\U0001f467",
    "\u200b",
    "«?»",
    "[PAD]",
    "##s",
    "\u2581x",
    "A@f",
]


@pytest.mark.parametrize("word", ODD_WORDS)
def test_unicode_stays_as_it_is(word: str) -> None:
    tokenizer = make()
    ids = tokenizer(f"Q {word} A")["input_ids"]
    assert ids == [13, 15, 12, END]
    assert tokenizer.decode(ids, skip_special_tokens=True) == f"Q {word} A"
    assert tokenizer.convert_ids_to_tokens(15) == word


WORDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1).filter(
    lambda word: word.split() == [word] and "<" not in word
)


@given(st.lists(WORDS, max_size=12))
def test_decoding_gives_the_words_back(words: list[str]) -> None:
    tokenizer = make()
    ids = tokenizer(" ".join(words))["input_ids"]
    assert len(ids) == len(words) + 1
    assert tokenizer.decode(ids, skip_special_tokens=True) == " ".join(words)


def test_the_marks_are_tokens_of_their_own() -> None:
    """As in every tokenizer of transformers, a special token's text is that token."""
    tokenizer = make()
    assert tokenizer.convert_tokens_to_ids(["<nil>", "<eop>"]) == [0, END]
    assert tokenizer("A <eop> Q", add_special_tokens=False)["input_ids"] == [12, END, 13]
    assert tokenizer("A <nil> Q", add_special_tokens=False)["input_ids"] == [12, 0, 13]
    assert tokenizer("<NIL> <eop", add_special_tokens=False)["input_ids"] == [15, 16]
    assert (tokenizer.pad_token_id, tokenizer.all_special_ids) == (0, [0, END])


def test_pairs_are_prompts_with_completions() -> None:
    tokenizer = make()
    pair = tokenizer("Q dax A", "dax $")
    assert pair["input_ids"] == [13, 15, 12, END, 15, 14]
    assert tokenizer.get_special_tokens_mask([13, 15, 12], [15, 14]) == [0, 0, 0, 1, 0, 0]
    assert tokenizer.get_special_tokens_mask(pair["input_ids"], already_has_special_tokens=True) == [0, 0, 0, 1, 0, 0]
    assert tokenizer.decode(pair["input_ids"]) == "Q dax A <eop> dax $"


def test_batches_are_padded_on_the_left() -> None:
    batch = make()(["Q dax A", "A"], padding=True, return_tensors="pt")
    assert batch["input_ids"].tolist() == [[13, 15, 12, END], [0, 0, 12, END]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
    assert set(batch) == {"input_ids", "attention_mask"}


def test_no_place_left() -> None:
    tokenizer = make(places=2)
    tokenizer("one two A 3")
    with pytest.raises(DATVocabularyError, match=r"2 open places.*'three'.*num_open_values"):
        tokenizer("one two three")
    assert tokenizer("two one")["input_ids"] == [16, 15, END]  # and nothing has changed
    tokenizer.forget()
    assert tokenizer.open_words == []
    assert tokenizer("three")["input_ids"] == [15, END]
    assert "one" not in tokenizer.get_vocab()


def test_vocabulary() -> None:
    tokenizer = make()
    tokenizer("dax")
    vocabulary = tokenizer.get_vocab()
    assert len(set(vocabulary.values())) == len(vocabulary)
    assert sorted(vocabulary.values()) == list(range(16))
    assert all(tokenizer.convert_ids_to_tokens(index) == word for word, index in vocabulary.items())
    assert tokenizer.vocab_size == len(tokenizer.space) == 35
    assert tokenizer.convert_ids_to_tokens(34) == "<34>"  # a place that no word has
    assert pickle.loads(pickle.dumps(tokenizer)).get_vocab() == vocabulary


def test_from_config_has_the_ids_of_the_model() -> None:
    config = DATConfig(max_position_embeddings=9, num_open_values=4)
    tokenizer = DATTokenizer.from_config(config)
    assert tokenizer.vocab_size == config.vocab_size
    assert len(tokenizer) <= config.vocab_size


def test_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer = make()
    text = "Q blicket żółw A 12 <nil>"
    ids = tokenizer(text)["input_ids"]
    tokenizer.save_pretrained(tmp_path)
    for loaded in (DATTokenizer.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)):
        assert type(loaded) is DATTokenizer
        assert loaded.open_words == tokenizer.open_words
        assert loaded("new Q")["input_ids"] == [18, 13, END]
        assert loaded(text)["input_ids"] == ids
        assert loaded.padding_side == "left"
        assert loaded.vocab_size == tokenizer.vocab_size
    assert json.loads((tmp_path / "vocab.json").read_text("utf-8")) == ["blicket", "żółw", "12"]
    assert not list(tmp_path.glob("*.tmp"))


ELSEWHERE = """
import sys
sys.modules["hf_mech"] = None
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], trust_remote_code=True)
assert type(tokenizer).__module__.startswith("transformers_modules"), type(tokenizer)
assert type(model).__module__.startswith("transformers_modules"), type(model)
prompts = tokenizer(["known never-seen-before", "known"], padding=True, return_tensors="pt")
generated = model.generate(**prompts, max_new_tokens=2)
print(prompts["input_ids"].tolist(), tokenizer.batch_decode(generated, skip_special_tokens=True))
"""


def test_loads_and_runs_without_the_package(tmp_path: Path) -> None:
    model, tokenizer = compile_program(
        "registers: {symbol: 's', position: 'p'}\n"
        "system: {symbol: symbol, position: position, output: symbol}\n"
        "where position[n] == position[N]@pos_decrement:\n"
        "    symbol[N] = symbol[n]\n",
        max_position_embeddings=9,
        num_open_values=5,
    )
    tokenizer("known")
    model.save_pretrained(tmp_path / "checkpoint")
    tokenizer.save_pretrained(tmp_path / "checkpoint")
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path / "checkpoint")],
        cwd=tmp_path,
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    here = tokenizer(["known never-seen-before", "known"], padding=True, return_tensors="pt")
    generated = model.generate(**here, max_new_tokens=2)
    expected = f"{here['input_ids'].tolist()} {tokenizer.batch_decode(generated, skip_special_tokens=True)}"
    assert done.stdout.strip() == expected
    assert torch.equal(generated[0, 2:], torch.tensor([END, *here["input_ids"][0, :2]]))
