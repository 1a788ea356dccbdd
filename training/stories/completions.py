"""Completions of prefixes, with the suffix known or not: greedy decoding, the one place where stories are generated."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from hf_mech.lookahead.stories.tokens import FillInTheMiddle


@torch.no_grad()
def complete(
    model: PreTrainedModel,
    prefixes: Sequence[list[int]],
    suffixes: Sequence[list[int]] | None,
    *,
    layout: FillInTheMiddle | None,
    max_new_tokens: int,
    batch_size: int,
) -> list[list[int]]:
    """The tokens that a model writes behind each prefix, up to EOS, which is left out.

    Args:
        prefixes: all of one length.
        suffixes: all of one length; None for the empty suffix.
        layout: the baseline's prompts; None for the Belief State Transformer.
        max_new_tokens: the most tokens of a completion, EOS included.
        batch_size: completions at a time.
    """
    goals = suffixes or [[]] * len(prefixes)
    written: list[list[int]] = []
    for first in range(0, len(prefixes), batch_size):
        part = slice(first, first + batch_size)
        prompts = prefixes[part]
        goal = {} if suffixes is None else {"suffix_ids": torch.tensor(suffixes[part], device=model.device)}
        if layout is not None:
            prompts = [
                layout.prompt(prefix, suffix) for prefix, suffix in zip(prefixes[part], goals[part], strict=True)
            ]
            goal = {}
        ids = torch.tensor(prompts, device=model.device)
        mask = torch.ones_like(ids)
        rows = model.generate(ids, attention_mask=mask, max_new_tokens=max_new_tokens, do_sample=False, **goal)
        for row in rows[:, ids.shape[1] :].tolist():
            end = row.index(model.config.eos_token_id) if model.config.eos_token_id in row else len(row)
            written.append(row[:end])
    return written
