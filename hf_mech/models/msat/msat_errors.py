"""The error of the M-SAT family."""


class MSATError(ValueError):
    """What the family refuses: a configuration, a checkpoint, an environment or an input."""
