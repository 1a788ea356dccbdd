"""The BPE, the stories that are dropped, prefixes and suffixes, and the cache."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import Dataset, load_dataset
from transformers import AutoTokenizer

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.lookahead import LookaheadError
from hf_mech.lookahead.stories.tokens import held_out_snippets, split_story, tokenize_stories, train_story_tokenizer

ROOT = Path(__file__).parents[3]


def test_the_tokenizer_has_a_thousand_tokens_and_adds_none(tokenizer, texts):
    assert len(tokenizer) == 1_000
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1)
    assert tokenizer.convert_ids_to_tokens([2, 3, 4]) == ["<|prefix|>", "<|suffix|>", "<|middle|>"]
    assert (tokenizer.prefix_token_id, tokenizer.suffix_token_id, tokenizer.middle_token_id) == (2, 3, 4)
    for text in (*texts["text"][:50], 'Zoë said:\n\n"I am 7 ."  🐢'):
        ids = tokenizer(text)["input_ids"]
        assert min(ids) > 4
        assert tokenizer.decode(ids) == text


def test_auto_tokenizer_loads_it(tokenizer, texts, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(texts["text"][:20])["input_ids"] == tokenizer(texts["text"][:20])["input_ids"]
    assert [loaded.pad_token_id, loaded.eos_token_id, loaded.suffix_token_id, loaded.middle_token_id] == [0, 1, 3, 4]


def test_training_it_again_gives_the_same_tokens(tokenizer, texts):
    again = train_story_tokenizer(text for text in texts["text"])
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


def test_too_few_words_for_the_vocabulary():
    with pytest.raises(LookaheadError, match=r"a vocabulary of \d+, not of 1000"):
        train_story_tokenizer(["Tom sat."])
    with pytest.raises(LookaheadError, match="not of 100"):
        train_story_tokenizer(["Tom sat."], 100)


def test_stories_end_with_eos_and_long_ones_are_dropped(tokenizer, texts):
    whole = tokenize_stories(texts, tokenizer, max_tokens=10_000)
    lengths = [len(ids) for ids in whole.rows["input_ids"]]
    assert (whole.dropped, len(lengths)) == (0, 2_000)
    for text, ids in zip(texts["text"][:30], whole.rows["input_ids"][:30], strict=True):
        assert ids == [*tokenizer(text)["input_ids"], 1]
    kept = tokenize_stories(texts, tokenizer)
    assert kept.dropped == sum(length > 256 for length in lengths) > 0
    assert [len(ids) for ids in kept.rows["input_ids"]] == [length for length in lengths if length <= 256]
    assert max(map(len, kept.rows["input_ids"])) == 256
    assert kept.rows.column_names == ["input_ids"]


def test_prefix_and_suffix_are_those_of_the_paper(tokenizer, rows):
    """50 tokens, 100 tokens and all between them, without EOS (Appendix D.2)."""
    snippets = held_out_snippets(rows, 1)
    assert len(snippets) == 100
    for snippet, ids in zip(snippets, rows["input_ids"], strict=False):
        assert (len(snippet["prefix_ids"]), len(snippet["suffix_ids"])) == (50, 100)
        assert [*snippet["prefix_ids"], *snippet["middle_ids"], *snippet["suffix_ids"], 1] == ids
        assert len(snippet["middle_ids"]) > 0


def test_short_stories_are_left_out_and_too_few_are_refused():
    lengths = [151, 150, 300, 152, 149, 400]  # EOS counts
    rows = Dataset.from_dict({"input_ids": [[*range(2, length + 1), 1] for length in lengths]})
    snippets = held_out_snippets(rows, 1, count=3)
    assert [len(ids) for ids in snippets["middle_ids"]] == [149, 1, 249]
    with pytest.raises(LookaheadError, match=r"4 stories of 151 tokens or more .*got 3 among 6"):
        held_out_snippets(rows, 1, count=4)


def test_a_story_is_split_or_refused():
    assert split_story(range(2, 8), 1, prefix_tokens=2, suffix_tokens=3) == ([2, 3], [4], [5, 6, 7])
    assert split_story([*range(2, 8), 1], 1, prefix_tokens=2, suffix_tokens=3) == ([2, 3], [4], [5, 6, 7])
    with pytest.raises(LookaheadError, match=r"a suffix of 4 need a story of 7 tokens, got 6"):
        split_story([*range(2, 8), 1], 1, prefix_tokens=2, suffix_tokens=4)
    with pytest.raises(LookaheadError, match="got 0"):
        split_story([], 1)


def test_numbers_and_tokenizers_that_make_no_sense(tokenizer, texts, rows):
    with pytest.raises(LookaheadError, match="max_tokens must be 2 or more"):
        tokenize_stories(texts, tokenizer, max_tokens=1)
    with pytest.raises(LookaheadError, match="count must be 1 or more"):
        held_out_snippets(rows, 1, count=0)
    for name in ("prefix_tokens", "suffix_tokens"):
        with pytest.raises(LookaheadError, match=f"{name} must be 1 or more, got 0"):
            split_story(range(9), 1, **{name: 0})
        with pytest.raises(LookaheadError, match=f"{name} must be 1 or more, got 0"):
            held_out_snippets(rows, 1, **{name: 0})
    bare = train_story_tokenizer(texts)
    bare.eos_token = None
    with pytest.raises(LookaheadError, match="no eos_token"):
        tokenize_stories(texts, bare)


PROGRAM = """
import sys
import hf_mech  # registers the data sets
from datasets import load_dataset
from transformers import AutoTokenizer
from hf_mech.lookahead.stories.tokens import held_out_snippets, tokenize_stories
texts = load_dataset("hf_mech/stories", "grammar", num_train=300, num_test=10, split="train", cache_dir=sys.argv[2])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
rows = tokenize_stories(texts, tokenizer, num_proc=None).rows
snippets = held_out_snippets(rows, 1)
files = {file["filename"] for part in (rows, snippets) for file in part.cache_files}
print(*sorted(files), rows._fingerprint, snippets._fingerprint, sep="\\n")
"""


@pytest.mark.slow
def test_the_cache_of_datasets_serves_the_next_process(tokenizer, tmp_path, monkeypatch):
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    arguments = [str(tmp_path / "tokenizer"), str(tmp_path / "cache")]

    def written() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.arrow")}

    monkeypatch.setattr(sys, "argv", ["-c", *arguments])
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(PROGRAM, {"__name__": "__main__"})
    first = written()
    assert len(first) >= 5  # two splits, tokens, lengths, snippets
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == said.getvalue()
    assert written() == first


def test_two_processes_give_the_rows_of_one(tokenizer, tmp_path):
    texts = load_dataset("hf_mech/stories", "grammar", num_train=300, num_test=10, cache_dir=str(tmp_path))["train"]
    one, two = tokenize_stories(texts, tokenizer), tokenize_stories(texts, tokenizer, num_proc=2)
    assert one.rows.to_list() == two.rows.to_list()
    assert one.dropped == two.dropped
