"""Planning domains: PDDL, the bundled problems, traces, learning, equivalence, reduction, and plans."""

from typing import TYPE_CHECKING

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "bundled": ["BUNDLED", "load_bundled"],
        "equivalence": ["Equivalence", "find_distinguishing_trace"],
        "pddl": ["read_pddl", "write_pddl"],
        "matching": ["PropositionMatch", "match_propositions"],
        "planner": ["plan"],
        "problem": ["StripsProblem", "reachable_states", "state_after"],
        "reduce": ["reduce_propositions"],
        "traces": ["TraceSettings", "generate_traces"],
        "two_part_code": ["LearnedDomain", "TwoPartCode", "learn_domain"],
    },
)

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .bundled import BUNDLED as BUNDLED
    from .bundled import load_bundled as load_bundled
    from .equivalence import Equivalence as Equivalence
    from .equivalence import find_distinguishing_trace as find_distinguishing_trace
    from .matching import PropositionMatch as PropositionMatch
    from .matching import match_propositions as match_propositions
    from .pddl import read_pddl as read_pddl
    from .pddl import write_pddl as write_pddl
    from .planner import plan as plan
    from .problem import StripsProblem as StripsProblem
    from .problem import reachable_states as reachable_states
    from .problem import state_after as state_after
    from .reduce import reduce_propositions as reduce_propositions
    from .traces import TraceSettings as TraceSettings
    from .traces import generate_traces as generate_traces
    from .two_part_code import LearnedDomain as LearnedDomain
    from .two_part_code import TwoPartCode as TwoPartCode
    from .two_part_code import learn_domain as learn_domain
