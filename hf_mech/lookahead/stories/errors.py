"""Errors of the stories: `ValueError`s whose text says how to fix the cause."""

from __future__ import annotations


class StoryError(ValueError):
    """Base of all errors of `hf_mech.lookahead.stories`."""


class StorySettingsError(StoryError):
    """An invalid setting of the grammar, the data set, a layout, a measure or the judge."""


class ShortStoryError(StoryError):
    """A story with fewer tokens than a prefix, a middle and a suffix need, or too few stories with enough."""


class StoryCorpusError(StoryError):
    """A data set that is not shaped as stories: a split or the column of text is missing."""


class StoryTokenizerError(StoryError):
    """A tokenizer that lacks a token which the stories or a layout need, or a corpus too small to train one."""


class JudgeError(StoryError):
    """Stories that cannot be compared, or a file of answers that is not one of this comparison."""
