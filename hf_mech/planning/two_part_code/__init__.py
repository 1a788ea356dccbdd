"""The domain with the shortest two-part code: what it is, how long its code is, and the search for it."""

from .code import TwoPartCode, TwoPartCodeError, code_length_reference
from .kernel import Guess, Positions
from .search import LearnedDomain, Search, domain_of, inapplicable, learn_domain, positions_of, speaking, theta_of

__all__ = [
    "Guess",
    "LearnedDomain",
    "Positions",
    "Search",
    "TwoPartCode",
    "TwoPartCodeError",
    "code_length_reference",
    "domain_of",
    "inapplicable",
    "learn_domain",
    "positions_of",
    "speaking",
    "theta_of",
]
