"""Probes of Section 5.4 for stories: small MLPs that read a story's facts from the state behind its beginning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_mech.data.random_numbers import Dice
from hf_mech.lookahead.stories.grammar import Length, Split, Story, facts_of, stories
from hf_mech.probing.state_probes import StateProbes

from ..engine.probes import fit

STORIES, CHOSEN, TESTED = 6_000, 500, 500
"""Stories that train the probes, that choose each one's epoch, and, of the test split, that test them."""
WIDTH = 32
_CUTS = 2  # states of a story
_EARLIEST = 12  # tokens of the shortest beginning
_BATCH = 50


def read_facts(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, seed: int, length: Length = "full"
) -> tuple[StateProbes, dict[str, float]]:
    """Trains probes on the states of a trained model, and measures what they read of the facts that were told.

    Args:
        model: a Belief State Transformer, in evaluation mode.
        tokenizer: of the model.
        seed: of the stories, of the cuts and of the probes.
        length: of the stories.

    Returns:
        The probes, of all facts but the trouble, which is several words; and by fact the share of unseen stories, cut
        behind its first mention, whose fact they read.
    """
    kept: tuple[list[Tensor], ...] = ([], [], [])
    states, tokens, told = kept
    facts = facts_of(length)
    parts: tuple[tuple[Split, int], ...] = (("train", STORIES + CHOSEN), ("test", TESTED))
    for split, count in parts:
        for start in range(0, count, _BATCH):
            some = list(stories(seed, start, min(start + _BATCH, count), split, length))
            cuts = Dice(seed, (split == "test", len(states))).words((len(some), _CUTS))
            for column, values in zip(kept, _cut(model, tokenizer, some, facts, cuts), strict=True):
                column.extend(values)
    probes, _ = fit(
        torch.stack(states),
        torch.stack(tokens),
        facts,
        len(tokenizer),
        seed,
        chosen=_CUTS * CHOSEN,
        tested=_CUTS * TESTED,
        width=WIDTH,
    )
    unseen = _CUTS * TESTED
    with torch.no_grad():
        right = (torch.stack(tokens[-unseen:]) == probes(torch.stack(states[-unseen:])).argmax(-1).T).float()
    known = torch.stack(told[-unseen:])
    return probes, dict(zip(facts, ((right * known).sum(0) / known.sum(0)).tolist(), strict=True))


def token_of(tokenizer: PreTrainedTokenizerBase, word: str) -> int:
    """The first token of a fact within a sentence."""
    return int(tokenizer(f" {word}", add_special_tokens=False)["input_ids"][0])


@torch.no_grad()
def _cut(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    some: Sequence[Story],
    facts: Sequence[str],
    cuts: NDArray[np.integer],
) -> tuple[Tensor, Tensor, Tensor]:
    """States behind beginnings of the stories, the facts' tokens, and whether a beginning has told each fact."""
    most = int(model.config.n_positions)
    rows = [tokenizer(story.text, return_offsets_mapping=True, verbose=False) for story in some]
    ids = [row["input_ids"][:most] for row in rows]
    longest = max(map(len, ids))
    padded = torch.tensor([[*row, *[tokenizer.pad_token_id] * (longest - len(row))] for row in ids])
    hidden = model.model(padded).last_hidden_state.float()
    states, tokens, told = [], [], []
    for place, (story, row) in enumerate(zip(some, rows, strict=True)):
        for word in cuts[place]:
            cut = _EARLIEST + int(word) % (len(ids[place]) - _EARLIEST)
            read = story.text[: row["offset_mapping"][cut][1]]
            states.append(hidden[place, cut])
            tokens.append(torch.tensor([token_of(tokenizer, story.facts[name]) for name in facts]))
            told.append(torch.tensor([story.facts[name] in read for name in facts]))
    return torch.stack(states), torch.stack(tokens), torch.stack(told)
