"""What can go wrong between a run and the Hub. Every text says what was wrong and how to mend it."""


class ResultsError(ValueError):
    """A results.json that cannot be read or does not have the one form of every figure."""


class UnbackedNumberError(ResultsError):
    """A figure without a run behind it: no values, a mean that does not follow from them, a card edited by hand."""


class CardError(ValueError):
    """A card folder from which no model card can be rendered: card.yaml missing, misspelt or incomplete."""


class PushRefusedError(ValueError):
    """A push that must not happen. It is raised before anything is sent."""


class PushError(RuntimeError):
    """An upload that failed on its way. The repository keeps its last good commit; the push can be run again."""
