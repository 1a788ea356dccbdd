"""The errors of the explorer."""


class ExplorerError(ValueError):
    """A source or a text that the explorer cannot show; the message says what to give instead."""
