"""Nested texts: JSON of an exact depth, questions of both rules, and splits that share no text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from datasets import load_dataset

import hf_mech  # noqa: F401  # registers the data sets
from hf_mech.data.random_numbers import Draws
from hf_mech.languages.nested_text import (
    AUXILIARIES,
    NESTED_TEXTS,
    SPLITS,
    SYMBOLS,
    NestedTextSettings,
    depths_of,
    draw_sentence,
    generate,
    generate_rows,
    json_document,
)
from hf_mech.languages.task import LanguagesError

NAME = "hf_mech/nested_text"
ALL_AUXILIARIES = {word for words in AUXILIARIES.values() for word in words}


def depth_of(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max(map(depth_of, children), default=0)


@pytest.mark.parametrize("depth", [0, 1, 3, 8])
def test_a_document_has_its_depth_and_its_room(depth: int) -> None:
    for index in range(100):
        room = max(1, 4 * depth) + index % 60
        symbols = json_document(Draws(f"test/{index}"), depth, room)
        assert len(symbols) <= room
        pairs = json.loads(" ".join(symbols), object_pairs_hook=lambda found: found)
        assert pairs is not None or depth == 0
        assert depth_of(json.loads(" ".join(symbols))) == max(depths_of(symbols)) == depth


def test_a_member_has_a_key_of_its_own() -> None:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    for row in generate("json", "train", stop=200):
        json.loads(row.text, object_pairs_hook=unique)


@pytest.mark.parametrize(("depth", "room"), [(-1, 9), (3, 11), (0, 0)])
def test_a_document_without_room_is_refused(depth: int, room: int) -> None:
    with pytest.raises(LanguagesError, match="must be a whole number"):
        json_document(Draws("a"), depth, room)


@pytest.mark.parametrize("split", SPLITS)
def test_the_depths_of_json(split: str) -> None:
    rows = list(generate("json", split, stop=400))
    assert {row.depth for row in rows} == ({5, 6, 7, 8} if split == "beyond" else {1, 2, 3, 4})
    assert all(depth_of(json.loads(row.text)) == row.depth for row in rows)
    lengths = {depth: [len(row.text.split()) for row in rows if row.depth == depth] for depth in (4, 8)}
    assert all(max(found) <= SYMBOLS[1] and sum(found) / len(found) > 35 for found in lengths.values() if found)


def test_the_main_auxiliary_moves() -> None:
    for index in range(200):
        sentence = draw_sentence(Draws(f"test/{index}"))
        said, asked = sentence.words(question=False), sentence.words(question=True)
        at = len(sentence.subject)
        assert asked == (said[at], *said[:at], *said[at + 1 : -1], "?")
        found = [word for word in sentence.subject if word in ALL_AUXILIARIES]
        assert found == ([] if sentence.inner is None else [sentence.inner])


def moves_another(text: str) -> bool:
    """Whether the question moves another auxiliary than the first."""
    said, _, asked = text.partition(" quest ")
    first = next(word for word in said.split() if word in ALL_AUXILIARIES)
    return asked.split()[0] != first


@pytest.mark.parametrize("name", ["questions", "questions_main"])
def test_only_beyond_tells_the_rules_apart(name: str) -> None:
    for split in SPLITS:
        rows = list(generate(name, split, stop=600))
        asked = [row.text for row in rows if " quest " in row.text]
        other = [moves_another(text) for text in asked]
        if split == "beyond":
            assert len(asked) == len(rows)
            assert all(other)
        else:
            assert 150 < len(asked) < 450
            assert any(other) == (name == "questions_main" and split == "train")
            assert any(" decl " in row.text and row.depth for row in rows)  # a copy with a relative clause


@pytest.mark.parametrize("name", NESTED_TEXTS)
def test_no_text_is_in_two_splits(name: str) -> None:
    texts = {
        (split, seed): {row.text for row in generate(name, split, seed, stop=400)}
        for split in SPLITS
        for seed in (0, 1)
    }
    for (split, _), found in texts.items():
        assert all(not found & others for (other, _), others in texts.items() if other != split)


@pytest.mark.parametrize("name", NESTED_TEXTS)
def test_every_configuration_loads_with_its_splits(name: str) -> None:
    splits = load_dataset(NAME, name, num_train=70, num_eval=20, seed=1)
    assert {split: len(rows) for split, rows in splits.items()} == {s: 70 if s == "train" else 20 for s in SPLITS}
    for split, rows in splits.items():
        wanted = generate(name, split, seed=1, stop=len(rows))
        assert rows.to_list() == [{"text": row.text, "depth": row.depth} for row in wanted]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_train": 0}, r"num_train must be a whole number, 1 or more, got 0"),
        ({"seed": -1}, r"seed must be a whole number, 0 or more, got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LanguagesError, match=message):
        load_dataset(NAME, "json", **changes)


def test_texts_that_do_not_exist_are_refused() -> None:
    with pytest.raises(LanguagesError, match=r"no nested text 'yaml'; choose one of json"):
        NestedTextSettings("yaml")
    with pytest.raises(LanguagesError, match="got 'json' and 'deeper'"):
        next(generate_rows(NestedTextSettings("json"), "deeper", 0))
