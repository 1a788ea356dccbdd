"""What models are compared with and looked into: baselines, probes, other people's language models."""


class ProbingError(ValueError):
    """A language model that cannot be loaded or does not answer, or probes that do not fit. Answers so far are kept."""
