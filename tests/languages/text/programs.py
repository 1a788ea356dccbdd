"""Text that looks like a program, and a small corpus of it."""

from __future__ import annotations

from pathlib import Path

from hf_mech.languages.corpora import Corpus, prepare, train_tokenizer

SPLITS = ("train", "validation", "test")


def program(number: int, lines: int = 40) -> str:
    """A program that no other number has."""
    return "".join(
        f"def function_{number}_{line}(x):\n    return [x, ({number} + {line})]\n\n" for line in range(lines)
    )


def prepare_programs(folder: Path) -> Path:
    """Three splits of a few blocks, and their tokenizer of 300 tokens."""
    splits = {split: [program(number), program(number + 10)] for number, split in enumerate(SPLITS)}
    corpus = Corpus.of("programs", None, splits)
    prepare(corpus, train_tokenizer(splits["train"], 300), folder, max_evaluation_blocks=4)
    return folder
