"""Stock-shaped tokenizers: transformers' own classes over a small byte-level BPE that the tests train."""

from __future__ import annotations

import json
from functools import cache

from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import GPT2Tokenizer, RobertaTokenizer

END = "<|endoftext|>"
TEXTS = (
    "the cat sat on the mat and looked at the dog",
    "a dog barked at the cat in the house",
    "cats and dogs eat",
    "a stack holds the words until the brackets close again (as they must).",
    "nobody saw the dog",
    "the rug lay under the cat and the cat lay on the rug",
)


@cache
def _trained(special: tuple[str, ...]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges of a byte-level BPE of 300 tokens; the special ones come first."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=300,
        special_tokens=list(special),
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 10, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def gpt2_tokenizer() -> GPT2Tokenizer:
    """GPT-2's tokenizer as users load it: `<|endoftext|>`, id 0, is BOS and EOS; no BOS is added, nothing pads."""
    vocabulary, merges = _trained((END,))
    return GPT2Tokenizer(vocab=dict(vocabulary), merges=list(merges))


def roberta_tokenizer() -> RobertaTokenizer:
    """RoBERTa's tokenizer as it comes from the Hub: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, `<mask>` 4."""
    vocabulary, merges = _trained(("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    return RobertaTokenizer(vocab=dict(vocabulary), merges=list(merges))
