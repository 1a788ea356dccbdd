"""Errors between a run and the Hub. Every message names the fault and its remedy."""


class ResultsError(ValueError):
    """A results.json that cannot be read or does not have the common form."""


class UnbackedNumberError(ResultsError):
    """A figure that does not come from a run: no values, a mean that differs from theirs, a card edited by hand."""


class CardError(ValueError):
    """A card folder that cannot be rendered as a model card: card.yaml is missing, misspelt or incomplete."""


class PushRefusedError(ValueError):
    """A push that must not happen. It is raised before anything is sent."""


class PushError(RuntimeError):
    """A failed upload. The repository keeps its last good commit; the push can be run again."""


class ChecksumError(ValueError):
    """Weights that cannot be checked against their checksums, or do not agree with them."""


class ChecksumsMissingError(ChecksumError):
    """A checkpoint without checksums."""


class ListedFileMissingError(ChecksumError):
    """A file that SHA256SUMS names is not there."""


class ChecksumDiffersError(ChecksumError):
    """A file has another checksum than SHA256SUMS says: it is damaged, or of another save."""


class UnlistedWeightsError(ChecksumError):
    """Weights that SHA256SUMS does not name."""
