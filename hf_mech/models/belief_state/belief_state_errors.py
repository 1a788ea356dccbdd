"""The errors of the belief state family: `ValueError`s whose text says how to fix the cause."""


class BeliefStateError(ValueError):
    """Base of all errors of the family; also an invalid configuration."""


class CheckpointError(BeliefStateError):
    """A checkpoint of another family, or a damaged one."""


class EncoderError(BeliefStateError):
    """An encoder that is not decoder-only, or that cannot do without its own token embedding, mask or positions."""


class LengthError(BeliefStateError):
    """Positions beyond those that an encoder has learned."""


class PackingError(BeliefStateError):
    """Several sequences in a row whose bounds are unclear, or where only one can be."""


class PairError(BeliefStateError):
    """A batch without any prefix and suffix to train on, or states and labels that do not fit."""


class PrefixError(BeliefStateError):
    """A prefix without a token, or longer than the encoder reads."""


class SuffixError(BeliefStateError):
    """A suffix that is empty, too long or does not fit the prefixes, or a model that reads none."""


class VocabularyError(BeliefStateError):
    """Tokens outside the vocabulary, or a vocabulary too small for the end token."""


class SearchError(BeliefStateError):
    """A search that cannot be done: no rollouts, no room for tokens, a head that the model does not have."""
