"""The errors of compiled programs: `ValueError`s whose text says how to mend the cause."""


class DATError(ValueError):
    """Base of all errors of the DAT family."""


class DATConfigError(DATError):
    """A configuration whose program or sizes make no model."""


class DATInputError(DATError):
    """Token ids that are no prompt: none that ends, an empty one, ids out of range."""


class DATLengthError(DATError):
    """A prompt with its completion is longer than the positions there are."""


class DATRepeatError(DATError):
    """A repeat block has not ended within its `bound`."""

    def __init__(self, message: str, bound: int = 0):
        super().__init__(message)
        self.bound = bound


class DATBackendError(DATError):
    """A backend that does not exist, or that cannot run weights which are no longer a program's."""


class DATVocabularyError(DATError):
    """A word for which the vocabulary has no place left."""
