"""The B-RASP program f_M of a STRIPS domain (STRIPS Transformer paper, Eq. 2 to 7)."""

from __future__ import annotations

from hf_mech.models.strips.strips_domain import StripsDomain
from hf_mech.planning.brasp.language import FALSE, TRUE, Attention, Initial, Operation, PositionWise, Program, any_of


def strips_program(domain: StripsDomain) -> Program:
    """The program whose last vector Z ends in f_M(trace): 0 if the trace is positive, 1 if it is negative (Theorem 3).

    For every proposition p it has the vectors `Q_p`, `K_p`, `V_p` and `Y_p`; then `Y`, which marks the inapplicable
    actions, and `Z`. The words are traces of action names.
    """
    operations: list[Operation] = []
    heads = []
    for p in domain.propositions:
        q = PositionWise(f"Q_{p}", any_of(Initial(a.name) for a in domain.actions if p in a.pre))  # Eq. 2
        k = PositionWise(f"K_{p}", any_of(Initial(a.name) for a in domain.actions if p in a.add | a.delete))  # Eq. 3
        v = PositionWise(f"V_{p}", any_of(Initial(a.name) for a in domain.actions if p in a.delete))  # Eq. 4
        y = Attention(f"Y_{p}", "rightmost", "before", score=q.i & k.j, value=v.j, default=FALSE)  # Eq. 5
        operations += [q, k, v, y]
        heads.append(y)
    any_head = PositionWise("Y", any_of(heads))  # Eq. 6
    anywhere = Attention("Z", "rightmost", "all", score=any_head.j, value=TRUE, default=FALSE)  # Eq. 7
    return Program(domain.action_names, [*operations, any_head, anywhere])
