"""Measurements of causal models on `hf_mech/nested_text`: how brackets close, and which auxiliary moves."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean

import numpy as np
import torch
from datasets import Dataset
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_mech.languages.corpora import BLOCK
from hf_mech.languages.nested_text import AUXILIARIES, BEYOND, CLOSING, depths_of

CORPUS = "hf_mech/nested_text"
CLOSES, ENDS, PARSES, MAIN_MOVES = "closes_right", "ends_right", "parses", "main_auxiliary_moves"
_BATCH = 64
_WRITTEN = 16
"""Documents of each depth that a model goes on with."""

Rows = list[tuple[Tensor, list[str]]]
"""The tokens of documents, with BOS, EOS and padding, and their symbols alone."""


def measure(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    config: str,
    test: Dataset,
    beyond: Dataset,
    *,
    seed: int,
) -> dict[str, dict[str, float]]:
    """By metric and depth, or by split; shares between 0 and 1.

    JSON: `closes_right`, by the depth of the bracket: of the three tokens that close (`}`, `]`, EOS) the right one has
    the highest probability where a bracket closes in the text; `ends_right`, by the document's depth: EOS has it behind
    the text. `parses`, by the document's depth: a document of which the text up to its deepest bracket is given and the
    rest drawn from the model, token by token, is JSON.

    Questions: `main_auxiliary_moves`, by split: of all auxiliaries, the right one has the highest probability behind
    `quest`.

    Args:
        model: causal, in evaluation mode.
        tokenizer: whose tokens are symbols.
        config: of the data set.
        test, beyond: prepared splits.
        seed: of the drawn tokens.
    """
    if config != "json":
        return {
            MAIN_MOVES: {split: _moves(model, tokenizer, rows) for split, rows in (("test", test), (BEYOND, beyond))}
        }
    rows = [*_rows(test, tokenizer), *_rows(beyond, tokenizer)]
    return {**_closings(model, tokenizer, rows), PARSES: _written(model, tokenizer, rows, seed)}


def _rows(split: Dataset, tokenizer: PreTrainedTokenizerBase) -> Rows:
    special = set(tokenizer.all_special_ids)
    found = []
    for ids in np.asarray(split["input_ids"]).tolist():
        symbols = tokenizer.convert_ids_to_tokens([token for token in ids if token not in special])
        found.append((torch.tensor(ids[: len(symbols) + 2]), symbols))
    return found


def _batches(rows: Rows) -> Iterator[tuple[Tensor, Rows]]:
    """Parts of the rows, as tokens of one width: padding on the right has no say in a causal model."""
    for start in range(0, len(rows), _BATCH):
        part = rows[start : start + _BATCH]
        yield torch.nn.utils.rnn.pad_sequence([ids for ids, _ in part], batch_first=True), part


@torch.no_grad()
def _logits(model: PreTrainedModel, ids: Tensor) -> Tensor:
    logits: Tensor = model(ids.to(model.device), use_cache=False).logits
    return logits.cpu()


def _closings(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: Rows) -> dict[str, dict[str, float]]:
    ways = [*tokenizer.convert_tokens_to_ids(list(CLOSING)), tokenizer.eos_token_id]
    right: dict[str, dict[int, list[bool]]] = {CLOSES: defaultdict(list), ENDS: defaultdict(list)}
    for ids, part in _batches(rows):
        said = _logits(model, ids)[..., ways].argmax(-1).tolist()
        for chosen, (_, symbols) in zip(said, part, strict=True):
            depths = depths_of(symbols)
            for place, symbol in enumerate(symbols):  # behind BOS and so many symbols
                if symbol in CLOSING:
                    right[CLOSES][depths[place] + 1].append(chosen[place] == CLOSING.index(symbol))
            right[ENDS][max(depths)].append(chosen[len(symbols)] == len(CLOSING))
    return {name: _shares(found) for name, found in right.items()}


def _shares(found: dict[int, list[bool]]) -> dict[str, float]:
    return {str(depth): fmean(values) for depth, values in sorted(found.items())}


def _written(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: Rows, seed: int) -> dict[str, float]:
    chosen: dict[int, Rows] = defaultdict(list)
    for ids, symbols in rows:
        depths = depths_of(symbols)
        if len(own := chosen[max(depths)]) < _WRITTEN:
            own.append((ids[: 2 + depths.index(max(depths))], symbols))  # BOS, and the deepest bracket's opening last
    depth_of = [depth for depth, own in chosen.items() for _ in own]
    prompts = [ids for own in chosen.values() for ids, _ in own]
    found: dict[int, list[bool]] = defaultdict(list)
    for depth, text in zip(depth_of, complete(model, prompts, tokenizer.eos_token_id, seed), strict=True):
        found[depth].append(_is_json(tokenizer, text))
    return _shares(found)


def complete(model: PreTrainedModel, prompts: list[Tensor], eos: int, seed: int) -> list[list[int]]:
    """Draws tokens behind every prompt until EOS, or until there are as many as a row may have.

    All models write in this way, those without a cache, too: the whole text is read for every token.
    """
    generator = torch.Generator().manual_seed(seed)
    texts = [prompt.tolist() for prompt in prompts]
    while open_texts := [text for text in texts if text[-1] != eos and len(text) < BLOCK]:
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(text) for text in open_texts], batch_first=True)
        ends = torch.tensor([len(text) - 1 for text in open_texts])
        last = _logits(model, ids)[torch.arange(len(ids)), ends]
        for text, token in zip(open_texts, torch.multinomial(last.softmax(-1), 1, generator=generator), strict=True):
            text.append(int(token))
    return texts


def _is_json(tokenizer: PreTrainedTokenizerBase, ids: list[int]) -> bool:
    if ids[-1] != tokenizer.eos_token_id:
        return False
    try:
        json.loads(" ".join(tokenizer.convert_ids_to_tokens(ids[1:-1])))
    except json.JSONDecodeError:
        return False
    return True


def _moves(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, split: Dataset) -> float:
    words = [word for pair in AUXILIARIES.values() for word in pair]
    ways = tokenizer.convert_tokens_to_ids(words)
    right: list[bool] = []
    asked = [row for row in _rows(split, tokenizer) if "quest" in row[1]]
    for ids, part in _batches(asked):
        said = _logits(model, ids)[..., ways].argmax(-1).tolist()
        for chosen, (_, symbols) in zip(said, part, strict=True):
            place = symbols.index("quest") + 1
            right.append(words[chosen[place]] == symbols[place])
    return fmean(right)
