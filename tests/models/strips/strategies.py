"""Random domains and traces, propositional and lifted, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from hf_mech.models.strips.strips_cells import Cells
from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.models.strips.strips_lifted import LiftedAction, LiftedAtom, LiftedDomain

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


LIFTED_OBJECTS = {"thing": ["x1", "x2"], "box": ["y1", "y2"]}  # a box is a thing


@st.composite
def lifted_domains(draw: st.DrawFn) -> LiftedDomain:
    """Any domain of up to four predicates and three actions; an atom is in pre or not, and in add, del or neither."""
    types = st.lists(st.sampled_from(list(LIFTED_OBJECTS)), max_size=2).map(tuple)
    predicates = {name: draw(types) for name in PROPOSITIONS[: draw(st.integers(1, 3))]}
    parameters = {name: draw(types) for name in ACTIONS[: draw(st.integers(1, 3))]}
    predicates["z"] = ()  # fits every action
    supertypes = {"box": "thing"}
    sets: dict[str, tuple[set, set, set]] = {name: (set(), set(), set()) for name in parameters}
    for cell in Cells(parameters, predicates, supertypes).all:
        pre, add, delete = sets[cell.action]
        atom = LiftedAtom(cell.predicate, cell.places)
        if draw(st.booleans()):
            pre.add(atom)
        {"add": add, "del": delete, "": set()}[draw(st.sampled_from(["add", "del", ""]))].add(atom)
    actions = tuple(
        LiftedAction(name, types, *(frozenset(atoms) for atoms in sets[name])) for name, types in parameters.items()
    )
    return LiftedDomain(predicates, actions, supertypes=supertypes)


@st.composite
def lifted_traces(draw: st.DrawFn, domain: LiftedDomain) -> tuple[list[str], list[int]]:
    """Any ground actions, an object twice too, and the marks of those that failed."""
    calls = [str(action) for action in domain.ground_actions(LIFTED_OBJECTS)]
    trace = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=10))
    return trace, draw(st.lists(st.integers(0, 1), min_size=len(trace), max_size=len(trace)))
