"""Probes of stories read the facts that a state holds."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from datasets import Dataset

from hf_mech.lookahead.stories.grammar import facts_of, stories
from hf_mech.lookahead.stories.tokens import train_story_tokenizer
from training.engine import probes as engine_probes
from training.stories import probes
from training.stories.probes import read_facts, token_of


class Remembering:
    """A state is the sum of the embeddings of all tokens up to it that are fact words: it holds what was told."""

    config = SimpleNamespace(n_positions=256)

    def __init__(self, words: list[int], vocabulary: int) -> None:
        self.rows = torch.zeros(vocabulary, 256)
        self.rows[words] = torch.randn(len(words), 256, generator=torch.Generator().manual_seed(0))

    def model(self, ids: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=self.rows[ids].cumsum(1).clamp(-2, 2))


def test_probes_read_the_facts_that_were_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("STORIES", 1_500), ("CHOSEN", 100), ("TESTED", 100)):
        monkeypatch.setattr(probes, name, value)
    monkeypatch.setattr(engine_probes, "EPOCHS", 6)
    drawn = list(stories(0, 0, 2_000))
    tokenizer = train_story_tokenizer(Dataset.from_dict({"text": [story.text for story in drawn]}), 1_000)
    words = sorted({token_of(tokenizer, story.facts["colour"]) for story in drawn})
    found, shares = read_facts(Remembering(words, len(tokenizer)), tokenizer, 5)
    assert found.targets == list(facts_of()) == list(shares)
    assert shares["colour"] > 0.9  # of which the states hold all
    assert max(shares["helper"], shares["snack"]) < 0.5  # of which they hold nothing
