"""Errors of stack attention and its models: `ValueError`s whose text says what to do."""


class StackError(ValueError):
    """Base of all errors of the stack family."""


class ActionError(StackError):
    """Actions that are not probabilities over push, pop and no-op, or that have a wrong shape or type."""


class BosError(StackError):
    """Position 0, the empty stack, is not the BOS token."""


class LengthError(StackError):
    """A sequence with more positions than the model has."""


class EncodingError(StackError):
    """A positional encoding that does not exist or does not fit."""


class CheckpointError(StackError):
    """An invalid checkpoint: of another family, damaged, or with weights of other shapes or that are not finite."""


class StackCacheError(StackError):
    """A cache that cannot hold a stack, or that was filled by a model without a stack."""


class PackingError(StackError):
    """Several sequences in one row whose places are unknown, contradictory, or of no use here."""
