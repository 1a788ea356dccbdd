"""The errors of compiled programs: `ValueError`s whose text says how to fix the cause."""

from __future__ import annotations


class DATError(ValueError):
    """Base of all errors of the DAT family."""


class DATConfigError(DATError):
    """A configuration with an invalid program or invalid sizes."""


class DATCheckpointError(DATError):
    """An invalid checkpoint: of another family, damaged, or with weights of other shapes or that are not finite."""


class DATInputError(DATError):
    """Token ids that are not a valid prompt: no end of the prompt, an empty prompt, ids out of range."""


class DATLengthError(DATError):
    """A prompt with its completion has more words than the model has positions."""


class DATRepeatError(DATError):
    """A repeat block has not ended within its `bound`."""

    def __init__(self, message: str, bound: int = 0):
        super().__init__(message)
        self.bound = bound

    @classmethod
    def of_block(cls, comment: str, bound: int) -> DATRepeatError:
        """That of a block with this comment."""
        return cls(
            f"The repeat block {comment!r} has not ended after {bound} repetitions; raise its bound, `repeat N:`, or "
            "mend its condition.",
            bound,
        )


class DATBackendError(DATError):
    """A backend that does not exist, or that cannot run weights that differ from the program's."""


class DATEmbeddingError(DATError, NotImplementedError):
    """A DAT has no table of embeddings; transformers knows such models by `NotImplementedError`."""


class DATVocabularyError(DATError):
    """A new word when the vocabulary has no free place."""
