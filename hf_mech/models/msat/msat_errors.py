"""The errors of the M-SAT family: `ValueError`s whose text says how to fix the cause."""


class MSATError(ValueError):
    """Base of all errors of the family."""


class ConfigurationError(MSATError):
    """Values of the configuration that are out of range or contradict each other."""


class CheckpointError(MSATError):
    """An invalid checkpoint: of another family, damaged, or with weights of other shapes or that are not finite."""


class SpaceError(MSATError):
    """An environment whose observations or actions are not those that the model was made for."""


class StateError(MSATError):
    """States of another shape, type or range than the configuration says."""


class ActionError(MSATError):
    """Actions or labels with another number of components, or with a value that a component does not have."""


class ReturnError(MSATError):
    """Returns-to-go that do not fit the states, or that are not finite."""


class LengthError(MSATError):
    """More steps than a context holds, or an attention mask that does not fit the steps."""


class TimestepError(MSATError):
    """Timesteps that are negative, or later than the last one that the model has an embedding for."""


class ContextError(MSATError):
    """An acting context that does not fit the model or the batch, or a model that cannot act now."""


class FrameError(MSATError):
    """A frame that the image processor cannot take."""
