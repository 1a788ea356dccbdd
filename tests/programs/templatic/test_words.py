"""The symbols of prompts: how many, which, and that held-out words are others."""

import hashlib
from importlib.resources import files

import pytest

from hf_mech.programs.templatic import tasks as module
from hf_mech.programs.templatic.tasks import DELIMITER_SYMBOLS, words


def test_random_letter_words_are_all_pairs_of_letters():
    assert len(words("rlw")) == len(set(words("rlw"))) == 26**2
    assert words("rlw")[:2] == ("aa", "ab")
    assert all(len(w) == 2 and w.islower() and w.isascii() for w in words("rlw"))
    assert words("rlw", held_out=True) == tuple(w.upper() for w in words("rlw"))


def test_english_words_are_one_file_in_order():
    text = files("hf_mech.programs.templatic").joinpath("english_words.txt").read_text(encoding="utf-8")
    listed = text.splitlines()
    assert listed == sorted(set(listed))
    assert all(w.isalpha() and w.isascii() and w.islower() and len(w) > 1 for w in listed)
    assert sorted(words("eng") + words("eng", held_out=True)) == listed
    assert hashlib.sha256(text.encode()).hexdigest().startswith(module.ENGLISH_WORDS_SHA256)


def test_there_are_enough_words_for_the_largest_prompts():
    assert len(words("rlw")) >= 11 * 10 * 4  # 10 examples and a cue of 10 constituents of up to 4 symbols
    assert len(words("eng")) >= 2 * 10 * 4
    assert len(words("eng", held_out=True)) >= 2 * 4 * 4
    assert len(DELIMITER_SYMBOLS) == len(set(DELIMITER_SYMBOLS)) >= 2 * 10


@pytest.mark.parametrize("vocabulary", ["rlw", "eng"])
def test_held_out_words_are_others(vocabulary):
    known, held_out = words(vocabulary), words(vocabulary, held_out=True)
    assert not set(known) & set(held_out)
    assert not {*known, *held_out} & {*DELIMITER_SYMBOLS, "Q", "A", "."}


def test_delimiters_are_single_special_characters():
    assert all(len(s) == 1 and s.isascii() and s.isprintable() and not s.isalnum() for s in DELIMITER_SYMBOLS)
