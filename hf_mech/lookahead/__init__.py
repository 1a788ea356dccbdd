"""Texts that must be planned: star graphs, and stories with a given end (Sections 3 and 5 of the paper on BST).

Also objectives that look further ahead than the next token."""


class LookaheadError(ValueError):
    """What the room refuses: settings, graphs, stories, layouts, tokenizers, and answers of a judge that cannot be."""
