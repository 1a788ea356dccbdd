"""The domain with the shortest two-part code: what it is, the search for it, and what the walks support besides."""

from .code import TwoPartCode, TwoPartCodeError, code_length_reference
from .completion import complete
from .guesses import domain_of, inapplicable, speaking, theta_of
from .kernel import Guess, Positions
from .learn import LearnedDomain, learn_domain
from .positions import positions_of
from .search import Search

__all__ = [
    "Guess",
    "LearnedDomain",
    "Positions",
    "Search",
    "TwoPartCode",
    "TwoPartCodeError",
    "code_length_reference",
    "complete",
    "domain_of",
    "inapplicable",
    "learn_domain",
    "positions_of",
    "speaking",
    "theta_of",
]
