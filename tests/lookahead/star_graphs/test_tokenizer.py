"""The tokenizer has the ids of the rows, reads texts as Bachmann & Nagarajan write them, and loads without hf_mech."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from transformers import AutoTokenizer, DataCollatorForLanguageModeling

from hf_mech.lookahead.star_graphs import StarGraph, star_graph_tokenizer
from hf_mech.lookahead.star_graphs.layouts import lay_out

GRAPH = StarGraph(5, 5)


def as_text(row: list[int]) -> str:
    """`a,b|c,d|.../s,g=n1,...,nl`, written from the numbers."""
    prompt, path = row[: GRAPH.prompt_length], row[GRAPH.prompt_length : -1]
    edges = "|".join(f"{prompt[i]},{prompt[i + 1]}" for i in range(0, 3 * GRAPH.edges, 3))
    return f"{edges}/{prompt[-3]},{prompt[-2]}=" + ",".join(map(str, path))


def test_texts_have_the_ids_of_the_rows():
    tokenizer = star_graph_tokenizer(GRAPH)
    assert len(tokenizer) == 56
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (GRAPH.end_token, GRAPH.pad_token) == (54, 55)
    for row in GRAPH.draw(20, np.random.default_rng(0)).tolist():
        text = as_text(row)
        assert tokenizer(text)["input_ids"] == row[:-1]
        assert tokenizer(text + "<eos>")["input_ids"] == row
        prompt, path = text.split("=")
        assert tokenizer(prompt + "=", path)["input_ids"] == row
        assert tokenizer.decode(row) == text + "<eos>"
        assert tokenizer.decode(row, skip_special_tokens=True) == text


def test_white_space_and_every_layout_read_back():
    tokenizer = star_graph_tokenizer(GRAPH)
    assert tokenizer("3 4 | 5, 6")["input_ids"] == tokenizer("3,4|5,6")["input_ids"] == [3, 4, 50, 5, 6]
    rows = GRAPH.draw(3, np.random.default_rng(0))
    for layout in ("augmented", "fim", "teacherless"):
        for row in lay_out(GRAPH, layout, rows, np.random.default_rng(1))["input_ids"].tolist():
            assert tokenizer(tokenizer.decode(row))["input_ids"] == row


@pytest.mark.parametrize("text", ["50,1", "a", "3;4"])
def test_unknown_nodes_are_refused(text):
    with pytest.raises(Exception, match="Missing"):
        star_graph_tokenizer(GRAPH)(text)


def test_prompts_pad_on_the_left_and_the_end_is_learned():
    tokenizer = star_graph_tokenizer(GRAPH)
    batch = tokenizer(["1,2=", "1,2|3,4="], padding=True)
    assert batch["input_ids"][0] == [55, 55, 55, 1, 2, 51]
    assert batch["attention_mask"][0] == [0, 0, 0, 1, 1, 1]
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    labels = collate([tokenizer("1,2=", "1,2"), tokenizer("1=", "1")])["labels"].tolist()
    assert labels == [[1, 2, 51, 1, 2, 54], [-100, -100, 1, 51, 1, 54]]


@pytest.mark.slow
def test_it_loads_without_hf_mech(tmp_path):
    tokenizer = star_graph_tokenizer(GRAPH)
    tokenizer.save_pretrained(tmp_path)
    text = as_text(GRAPH.draw(1, np.random.default_rng(0))[0].tolist())
    program = (
        "import sys; sys.modules['hf_mech'] = None\n"
        "from transformers import AutoTokenizer\n"
        "tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "print(*tokenizer(*sys.argv[2:])['input_ids'], tokenizer.padding_side)\n"
        "print(tokenizer.decode(tokenizer(*sys.argv[2:])['input_ids'], skip_special_tokens=True))"
    )
    prompt, path = text.split("=")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path), prompt + "=", path],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    ids = tokenizer(prompt + "=", path)["input_ids"]
    assert done.stdout.splitlines() == [" ".join(map(str, ids)) + " left", text]
    assert AutoTokenizer.from_pretrained(tmp_path)(text)["input_ids"] == tokenizer(text)["input_ids"]
