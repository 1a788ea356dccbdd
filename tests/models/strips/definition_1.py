"""Definition 1 of the STRIPS Transformer paper, word by word; deliberately slow and unlike the implementation."""

from __future__ import annotations

from collections.abc import Sequence

from hf_mech.models.strips.strips_domain import StripsDomain


def f_m(domain: StripsDomain, trace: Sequence[str]) -> int:
    """f_M(trace): 0 if the trace is positive, 1 if it is negative."""
    actions = {a.name: a for a in domain.actions}
    for i in range(len(trace)):
        for p in actions[trace[i]].pre:
            affecting = [j for j in range(i) if p in actions[trace[j]].add or p in actions[trace[j]].delete]
            no_action_affects_it = affecting == []
            if not no_action_affects_it and p not in actions[trace[max(affecting)]].add:
                return 1
    return 0
