"""The symbols of prompts: random two-letter words, English words, special characters."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from itertools import product
from string import ascii_lowercase
from typing import Literal

# Single special characters, as in (10): those of ASCII without the full stop (it ends an answer) and without quotation
# marks and backslash (text formats of data sets escape them).
DELIMITER_SYMBOLS: tuple[str, ...] = tuple("!#$%&()*+,-/:;<=>?@[]^_`{|}~")

HELD_OUT_EVERY = 4  # every fourth English word, in alphabetical order, is kept for ood_lexical

# Of english_words.txt. The names of data set caches depend on the code, so changed words need a new digest here.
ENGLISH_WORDS_SHA256 = "0bb6162245f60f22"


@cache
def words(vocabulary: Literal["rlw", "eng"], held_out: bool = False) -> tuple[str, ...]:
    """The words of constituents, in a fixed order.

    Args:
        vocabulary: `rlw`, all 676 sequences of two letters, or `eng`, the English words of `english_words.txt`.
        held_out: only the words of the split `ood_lexical` and of echo prompts: the upper-case sequences, or a quarter
            of the English words.
    """
    if vocabulary == "rlw":
        pairs = tuple(map("".join, product(ascii_lowercase, repeat=2)))
        return tuple(pair.upper() for pair in pairs) if held_out else pairs
    english = files("hf_mech.programs.templatic").joinpath("english_words.txt").read_text(encoding="utf-8").split()
    return tuple(w for i, w in enumerate(english) if (i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) == held_out)
