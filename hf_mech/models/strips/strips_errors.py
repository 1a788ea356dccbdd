"""Errors of STRIPS domains, traces and checkpoints: `ValueError`s whose text says what to do."""


class StripsError(ValueError):
    """Base of all errors of the STRIPS family."""


class DomainError(StripsError):
    """A domain contradicts itself: a name used twice, an effect on a proposition that does not exist, ..."""


class TraceError(StripsError):
    """A trace that cannot be read: empty, an unknown action, an index out of range, labels that do not fit."""


class CheckpointError(StripsError):
    """An invalid checkpoint: of another family, damaged, or with weights of other shapes or that are not finite."""
