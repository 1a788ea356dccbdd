"""The domain with the shortest two-part code: what it is, the search for it, and what the walks support besides."""

from hf_mech.planning.two_part_code.code import TwoPartCode, code_length_reference, positions_of
from hf_mech.planning.two_part_code.kernel import Guess, Positions
from hf_mech.planning.two_part_code.search import (
    LearnedDomain,
    Search,
    complete,
    domain_of,
    inapplicable,
    learn_domain,
    speaking,
    theta_of,
)

__all__ = [
    "Guess",
    "LearnedDomain",
    "Positions",
    "Search",
    "TwoPartCode",
    "code_length_reference",
    "complete",
    "domain_of",
    "inapplicable",
    "learn_domain",
    "positions_of",
    "speaking",
    "theta_of",
]
