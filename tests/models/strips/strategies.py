"""Random propositional domains and traces, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain

PROPOSITIONS = "pqrstu"
ACTIONS = "abcde"


@st.composite
def domains(
    draw: st.DrawFn, most_propositions: int = 4, most_actions: int = 4, actions: int | None = None
) -> StripsDomain:
    """Any domain, even without propositions; each is independently in pre, and in add, del or neither."""
    propositions = PROPOSITIONS[: draw(st.integers(0, most_propositions))]
    count = actions if actions is not None else draw(st.integers(1, most_actions))
    out = []
    for name in ACTIONS[:count]:
        pre = draw(st.sets(st.sampled_from(propositions))) if propositions else set()
        effects = {p: draw(st.sampled_from(["add", "del", ""])) for p in propositions}
        out.append(
            StripsAction(
                name,
                frozenset(pre),
                frozenset(p for p, e in effects.items() if e == "add"),
                frozenset(p for p, e in effects.items() if e == "del"),
            )
        )
    return StripsDomain(tuple(propositions), tuple(out))


def traces(domain: StripsDomain, longest: int = 12, shortest: int = 1) -> st.SearchStrategy[list[str]]:
    """Any sequence of the domain's actions."""
    return st.lists(st.sampled_from(domain.action_names), min_size=shortest, max_size=longest)


@st.composite
def domains_with_traces(draw: st.DrawFn, longest: int = 12) -> tuple[StripsDomain, list[str]]:
    domain = draw(domains())
    return domain, draw(traces(domain, longest))
