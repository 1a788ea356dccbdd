"""The tokenizer: an open vocabulary whose ids stay, pairs, padding, saving, and words that look like something else."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from hf_mech.models.dat import DATConfig, DATError, DATTokenizer, DATVocabularyError
from hf_mech.programs.psl import compile_program

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


WORDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1).filter(lambda word: word.split() == [word])


@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS, max_size=12))
def test_decoding_gives_the_words_back(words: list[str]) -> None:
    tokenizer = make()
    ids = tokenizer(" ".join(words))["input_ids"]
    assert len(ids) == len(words) + 1
    assert tokenizer.decode(ids, skip_special_tokens=True) == " ".join(words)


NIL_MARK, END_MARK = "<\u00a0nil\u00a0>", "<\u00a0eop\u00a0>"


def test_the_marks_are_special_tokens() -> None:
    tokenizer = make()
    assert tokenizer.convert_tokens_to_ids([NIL_MARK, END_MARK]) == [0, END]
    assert tokenizer.convert_ids_to_tokens([0, END]) == [NIL_MARK, END_MARK]
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.all_special_ids) == (0, 0, [0, END])
    assert tokenizer.decode([0, 12, END, 13]) == f"{NIL_MARK} A {END_MARK} Q"
    assert tokenizer.decode([0, 12, END, 13], skip_special_tokens=True) == "A Q"


@pytest.mark.parametrize("split", [{}, {"split_special_tokens": True}, {"split_special_tokens": False}], ids=str)
@pytest.mark.parametrize("word", ["<nil>", "<eop>", "a<nil>b", "<eop>s", "<16>"])
def test_no_text_is_encoded_as_a_mark(word: str, split: dict[str, bool], tmp_path: Path) -> None:
    tokenizer = make()
    tokenizer.save_pretrained(tmp_path)
    for words in (tokenizer, DATTokenizer.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path, **split)):
        assert words(f"A {word} Q", **split)["input_ids"] == [12, 15, 13, END]
        assert words.decode([12, 15, 13, END], skip_special_tokens=True) == f"A {word} Q"
        assert words([f"{word} A", "A"], padding=True, **split)["input_ids"] == [[15, 12, END], [0, 12, END]]
        assert words([word, "A"], is_split_into_words=True, **split)["input_ids"] == [15, 12, END]
        assert words.tokenize(f"A {word}", **split) == ["A", word]
        assert words.open_words == [word]
        words.save_pretrained(tmp_path / "again")
        assert DATTokenizer.from_pretrained(tmp_path / "again").decode(15) == word


def test_the_texts_of_the_marks_are_encoded_as_words() -> None:
    """They contain white space, so a text with them has the words between the spaces."""
    tokenizer = make()
    ids = tokenizer(tokenizer.decode([12, END, 0]), add_special_tokens=False)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["A", "<", "eop", ">", "<", "nil", ">"]
    chat = [{"role": "user", "content": f"A <nil> <eop> {END_MARK} a<nil>b"}]
    template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    for options in ({}, {"sanitize_control_tokens": True}):
        ids = tokenizer.apply_chat_template(chat, chat_template=template, return_dict=False, **options)
        assert tokenizer.convert_ids_to_tokens(ids) == ["A", "<nil>", "<eop>", "<", "eop", ">", "a<nil>b"]


def test_a_constant_may_look_like_a_mark() -> None:
    tokenizer = make(constants=("<nil>", "Q"))
    assert tokenizer("Q <nil>")["input_ids"] == [13, 12, END]
    assert tokenizer.decode(12, skip_special_tokens=True) == "<nil>"


def test_no_other_special_token_is_taken() -> None:
    tokenizer = make()
    for add in (
        lambda: tokenizer.add_tokens(["Q"]),
        lambda: tokenizer.add_special_tokens({"cls_token": "dax"}),
        lambda: DATTokenizer(pad_token="[PAD]"),
    ):
        with pytest.raises(DATError, match=r"(dax|Q|PAD)"):
            add()


def test_pairs_are_prompts_with_completions() -> None:
    tokenizer = make()
    pair = tokenizer("Q dax A", "dax $")
    assert pair["input_ids"] == [13, 15, 12, END, 15, 14]
    assert tokenizer.get_special_tokens_mask([13, 15, 12], [15, 14]) == [0, 0, 0, 1, 0, 0]
    assert tokenizer.get_special_tokens_mask(pair["input_ids"], already_has_special_tokens=True) == [0, 0, 0, 1, 0, 0]
    assert tokenizer.decode(pair["input_ids"]) == f"Q dax A {END_MARK} dax $"


def test_batches_are_padded_on_the_left() -> None:
    batch = make()(["Q dax A", "A"], padding=True, return_tensors="pt")
    assert batch["input_ids"].tolist() == [[13, 15, 12, END], [0, 0, 12, END]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
    assert set(batch) == {"input_ids", "attention_mask"}


def test_a_call_with_more_new_words_than_places_is_refused_and_changes_nothing() -> None:
    tokenizer = make(places=2)
    first = tokenizer("one two A 3")["input_ids"]
    for call in (
        lambda: tokenizer("one two three"),
        lambda: tokenizer(["three four", "A five"]),
        lambda: tokenizer.convert_tokens_to_ids(["six", "seven", "eight"]),
    ):
        with pytest.raises(DATVocabularyError, match=r"2 different words.*num_open_values"):
            call()
        assert tokenizer.open_words == ["one", "two"]
        assert tokenizer.decode(first, skip_special_tokens=True) == "one two A 3"
    tokenizer.forget()
    assert tokenizer.open_words == []
    assert tokenizer("three")["input_ids"] == [15, END]
    assert "one" not in tokenizer.get_vocab()


def test_a_new_word_takes_the_place_of_the_word_encoded_longest_ago() -> None:
    tokenizer = make(places=3)
    assert tokenizer("one two three")["input_ids"] == [15, 16, 17, END]
    assert tokenizer.decode(16) == "two"  # decoding does not count
    assert tokenizer("one four")["input_ids"] == [15, 16, END]
    assert tokenizer("five")["input_ids"] == [17, END]
    assert tokenizer.open_words == ["one", "four", "five"]
    assert set(tokenizer.get_vocab()) >= {"one", "four", "five"}
    assert "two" not in tokenizer.get_vocab()


def test_a_server_meets_many_words() -> None:
    """An output stays decodable until as many other words have come as there are places."""
    tokenizer = make(places=64)
    waiting: list[tuple[str, list[int]]] = []
    for request in range(1_500):
        text = " ".join(f"w{request}.{i}" for i in range(10))
        waiting.append((text, tokenizer(text)["input_ids"]))
        if len(waiting) == 6:  # this request, and 50 words since
            text, ids = waiting.pop(0)
            assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert len(tokenizer.open_words) == len(set(tokenizer.open_words)) == 64


@pytest.mark.parametrize("places", [400, 64], ids=["room for all", "places change hands"])
def test_threads_share_a_tokenizer(places: int) -> None:
    """No word gets two ids, no id two words: each thread finds its text in what it encoded."""
    tokenizer, start = make(places=places), threading.Barrier(8)

    def encode(number: int) -> list[tuple[str, list[int]]]:
        draw, found = random.Random(number), []
        start.wait()
        for _ in range(60):
            text = " ".join(f"w{draw.randrange(300)}" for _ in range(7))
            ids = tokenizer([text, text])["input_ids"]
            assert ids[0] == ids[1]
            assert len(set(ids[0])) == len(set(text.split())) + 1
            found.append((text, ids[0]))
        return found

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            results = [pair for pairs in pool.map(encode, range(8)) for pair in pairs]
    finally:
        sys.setswitchinterval(interval)
    words = tokenizer.open_words
    assert len(set(words)) == len(words) <= places
    if places == 400:
        assert all(tokenizer.decode(ids, skip_special_tokens=True) == text for text, ids in results)
        ids_of: dict[str, set[int]] = {}
        for text, ids in results:
            for word, index in zip(text.split(), ids, strict=False):
                ids_of.setdefault(word, set()).add(index)
        assert all(len(found) == 1 for found in ids_of.values())
        assert len(set().union(*ids_of.values())) == len(ids_of)


def test_a_copy_has_its_own_places() -> None:
    tokenizer = make(places=2)
    tokenizer("one two")
    tokenizer("one")
    for other in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert other("three")["input_ids"] == [16, END]  # in the place of two, as in the original
        assert other.open_words == ["one", "three"]
    assert tokenizer.open_words == ["one", "two"]


def test_a_vocabulary_that_is_none(tmp_path: Path) -> None:
    make(places=2).save_pretrained(tmp_path)
    for text in ('["a", "b", "c"]', '["a", "a"]', '{"a": 1}', "[1]", "no JSON"):
        (tmp_path / "vocab.json").write_text(text)
        with pytest.raises(DATError, match="vocab"):
            DATTokenizer.from_pretrained(tmp_path)


def test_vocabulary() -> None:
    tokenizer = make()
    tokenizer("dax")
    vocabulary = tokenizer.get_vocab()
    assert len(set(vocabulary.values())) == len(vocabulary)
    assert sorted(vocabulary.values()) == list(range(16))
    assert all(tokenizer.convert_ids_to_tokens(index) == word for word, index in vocabulary.items())
    assert tokenizer.vocab_size == len(tokenizer.space) == 35
    assert tokenizer.convert_ids_to_tokens(34) == "<\u00a034\u00a0>"  # a place that no word has
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
        assert loaded("new Q")["input_ids"] == [19, 13, END]
        assert loaded(text)["input_ids"] == ids
        assert loaded.padding_side == "left"
        assert loaded.vocab_size == tokenizer.vocab_size
    assert json.loads((tmp_path / "vocab.json").read_text("utf-8")) == ["blicket", "żółw", "12", "<nil>"]
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
states = model(**prompts, output_hidden_states=True).hidden_states
torch.save(torch.stack(states), sys.argv[1] + "/states.pt")
print(prompts["input_ids"].tolist(), tokenizer.batch_decode(generated, skip_special_tokens=True))
"""


@pytest.mark.slow
def test_loads_and_runs_without_the_package(tmp_path: Path) -> None:
    """The words of the tokenizer, the completion, and states of vectors that no checkpoint holds."""
    model, tokenizer = compile_program(
        "registers: {symbol: 's', position: 'p'}\n"
        "system: {symbol: symbol, position: position, output: symbol}\n"
        "where position[n] == position[N]@pos_decrement:\n"
        "    symbol[N] = symbol[n]\n",
        max_position_embeddings=9,
        num_open_values=20,
        embedding="distributed",
        filler_dim=25,
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
    states = model(**here, output_hidden_states=True).hidden_states
    assert torch.equal(torch.load(tmp_path / "checkpoint" / "states.pt"), torch.stack(states))
    assert torch.equal(generated[0, 2:], torch.tensor([END, *here["input_ids"][0, :2]]))
