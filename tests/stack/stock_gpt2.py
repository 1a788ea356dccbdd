"""A stock GPT-2 and its stock tokenizer, as they lie on the Hub: no BOS before a text, no padding token."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Tokenizer

TEXTS = (
    "the cat sat on the mat and the dog sat on the rug",
    "a bird sang to the moon",
    "the moon and the bird and the cat",
    "nobody saw the dog",
    "the rug lay under the cat and the cat lay on the rug",
    "a dog and a cat sang",
)
END = "<|endoftext|>"


def stock_folder(folder: Path, *, n_positions: int = 64) -> Path:
    """Saves a GPT-2 with new weights and a byte-level BPE, both of transformers' own classes; returns the folder."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(TEXTS, trainer)
    vocabulary = json.loads(backend.to_str())["model"]
    ids = {**vocabulary["vocab"], END: len(vocabulary["vocab"])}  # its last id, as in GPT-2
    tokenizer = GPT2Tokenizer(vocab=ids, merges=[tuple(pair) for pair in vocabulary["merges"]])
    tokenizer.backend_tokenizer.post_processor = backend.post_processor
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(ids),
        n_layer=2,
        n_embd=16,
        n_head=2,
        n_positions=n_positions,
        bos_token_id=ids[END],
        eos_token_id=ids[END],
        initializer_range=0.2,  # so that the most probable token depends on the text
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder
