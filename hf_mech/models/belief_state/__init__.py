"""The Belief State Transformer, unfinished: not registered, and without a public name yet."""

__all__: list[str] = []
