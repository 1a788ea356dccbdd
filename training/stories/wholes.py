"""Whole stories of finished runs: prefix, completion and, where it was given, suffix."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import SettingsError
from .data import load_stories
from .run import RunOutcome


def whole_stories(outcomes: Sequence[RunOutcome], goal_known: bool) -> list[list[str]]:
    """The stories of each run, in the same order.

    Raises:
        SettingsError: the runs have not completed the same beginnings and ends.
    """
    wholes: list[list[str]] = []
    asked: list[tuple[str, str]] | None = None
    for outcome in outcomes:
        data = load_stories(outcome.settings)
        rows, decode = data.snippets[:], data.tokenizer.decode
        own = [(decode(a), decode(b)) for a, b in zip(rows["prefix_ids"], rows["suffix_ids"], strict=True)]
        if asked not in (None, own):
            names = " and ".join(outcome.settings.name for outcome in outcomes)
            raise SettingsError(
                f"The runs {names} have completed other stories: give both the same corpus, data_seed, vocabulary, "
                "prefix_tokens, suffix_tokens and eval_stories."
            )
        asked = own
        written = outcome.completions if goal_known else outcome.continuations
        wholes.append([a + text + (b if goal_known else "") for (a, b), text in zip(own, written, strict=True)])
    return wholes
