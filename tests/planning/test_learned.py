"""Planning in a domain learned from traces, and its propositions under the names of the hidden domain."""

import random

import pytest
import torch
from datasets import load_dataset
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from transformers import DataCollatorForTokenClassification, Trainer, TrainingArguments, set_seed

from hf_mech.models.strips import StripsError, StripsTransformer, StripsTransformerConfig, strips_tokenizer
from hf_mech.models.strips.strips_domain import StripsAction, StripsDomain
from hf_mech.planning.equivalence import find_distinguishing_trace, match_propositions
from hf_mech.planning.pddl import load_bundled
from hf_mech.planning.planner import plan
from hf_mech.planning.problem import PlanningError, SearchBoundError, reachable_states, state_after
from hf_mech.planning.traces import PAPER_MAX_TRAIN_LENGTH
from tests.models.strips.strategies import domains, traces

SIMPLE = load_bundled("simple").domain


def learn(num_propositions: int, folder) -> StripsDomain:
    """The README's recipe, with half the steps."""
    data = load_dataset("hf_mech/strips_traces", "simple", seed=0, num_train=200, num_test=200)
    actions = data["train"].features["input_ids"].feature.names
    set_seed(0)
    model = StripsTransformer(StripsTransformerConfig(actions=actions, num_propositions=num_propositions))
    arguments = TrainingArguments(
        str(folder),
        max_steps=500,
        learning_rate=0.02,
        lr_scheduler_type="constant",
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    Trainer(model, arguments, DataCollatorForTokenClassification(strips_tokenizer(actions)), data["train"]).train()
    return model.to_domain()


@pytest.fixture(scope="module", params=[3, pytest.param(5, marks=pytest.mark.slow)])
def learned(request, tmp_path_factory) -> StripsDomain:
    """A trained model's domain, with as many propositions as are needed, or two more."""
    return learn(request.param, tmp_path_factory.mktemp("run"))


def disguise(domain: StripsDomain, seed: int) -> tuple[StripsDomain, dict[str, str]]:
    """The domain with its propositions and actions shuffled and the propositions renamed; new name -> old name."""
    die = random.Random(seed)
    order = die.sample(domain.propositions, len(domain.propositions))
    new = {p: f"p{i}" for i, p in enumerate(order)}
    actions = [
        StripsAction(a.name, *(frozenset(new[p] for p in atoms) for atoms in (a.pre, a.add, a.delete)))
        for a in die.sample(domain.actions, len(domain.actions))
    ]
    return StripsDomain(tuple(new.values()), tuple(actions), "disguised"), {n: p for p, n in new.items()}


# ---------------------------------------------------------------------------------------------------------- planning


def test_a_plan_in_the_learned_domain_is_one_in_the_hidden_domain(learned):
    assert find_distinguishing_trace(learned, SIMPLE).equivalent
    for after, until, expected in (
        (["a"], ["b"], ["c"]),
        (["a", "c"], ["a"], ["b", "c"]),
        ([0], [0], ["c", "b", "c"]),
        (["a", "c"], ["b", "c"], []),
        ([], ["a"], []),
        (["a", "c", "b"], ["b"], ["c", "a", "c"]),
    ):
        found = plan(learned, after=after, until=until)
        assert found == expected
        for last in until:
            assert SIMPLE.is_positive([*after, *found, last])
        state = state_after(SIMPLE, [*SIMPLE.decode(after), *found])
        assert all(SIMPLE.actions[i].pre <= state for i in SIMPLE.encode(until))


@settings(max_examples=25)
@given(domains(most_propositions=3, most_actions=3), st.data())
def test_after_and_until_are_exactly_definition_1(domain, data):
    """A plan exists exactly if a positive trace goes on from `after` to where all of `until` are possible."""
    after = data.draw(traces(domain, longest=4, shortest=0))
    until = data.draw(st.lists(st.sampled_from(domain.action_names), min_size=1, max_size=2))
    assume(domain.is_positive(after))
    found = plan(domain, after=after, until=until)

    start = domain.falsified(after)
    reached, queue = {start}, [start]
    for false in queue:
        for a, pre in enumerate(domain.pre_masks):
            if not pre & false and domain.advance(false, a) not in reached:
                reached.add(domain.advance(false, a))
                queue.append(domain.advance(false, a))
    wanted = [domain.pre_masks[a] for a in domain.encode(until)]
    assert (found is not None) == any(not any(pre & false for pre in wanted) for false in reached)
    if found is not None:
        assert set(until) <= set(domain.next_actions([*after, *found]))


def test_atoms_and_actions_may_be_mixed():
    assert plan(SIMPLE, ["p"], after=["c"], until=["b"]) == ["a", "c"]
    assert plan(SIMPLE, ["p", "r"], ["q", "r"]) == ["a", "c"]
    assert plan(SIMPLE, ["p", "r"], ["p"], until=["c"]) == []
    assert plan(SIMPLE, ["p", "r"], ["p"], after=["a"], until=["a"]) == ["c", "b", "c"]
    assert plan(SIMPLE, ["p"], until=["a", "b"]) is None  # p and q are never true together
    assert state_after(SIMPLE, ["a", "c"]) == {"q", "r"}
    assert state_after(SIMPLE, [2], initial=[]) == {"r"}


def test_wrong_requests_say_what_is_possible():
    with pytest.raises(PlanningError, match=r"'a' at position 1 needs \['p', 'r'\], false after \['a'\].*\['c'\]"):
        plan(SIMPLE, after=["a", "a"], until=["b"])
    with pytest.raises(PlanningError, match=r"'a' at position 0 needs \['p', 'r'\], false after \[\]"):
        plan(SIMPLE, initial=[], after=["a"], until=["b"])
    for request in ({"after": ["zork"], "until": ["a"]}, {"until": ["zork"]}):
        with pytest.raises(StripsError, match=r"Unknown action 'zork' at position 0; domain 'simple' has a, b, c"):
            plan(SIMPLE, **request)
    with pytest.raises(StripsError, match="index 3 at position 0 is out of range"):
        plan(SIMPLE, until=[3])
    for name in ("after", "until", "initial", "goal"):
        with pytest.raises(PlanningError, match=rf"{name} must be a list of names, got the string 'a'"):
            plan(SIMPLE, **{"until": ["a"], name: "a"})
    for request in ({}, {"after": ["a"]}, {"until": []}):
        with pytest.raises(PlanningError, match=r"goal=\[propositions to make true\], or until=\[actions"):
            plan(SIMPLE, **request)
    with pytest.raises(StripsError, match="zork"):
        plan(SIMPLE, goal=["zork"], after=["a"])
    with pytest.raises(PlanningError, match=r"got the problem 'simple'; write plan\(problem.domain, problem.initial"):
        plan(load_bundled("simple"))


# ---------------------------------------------------------------------------------------------------------- matching


@pytest.mark.parametrize("name", PAPER_MAX_TRAIN_LENGTH)
@pytest.mark.parametrize("seed", [0, 1])
def test_renamed_and_shuffled_propositions_are_found(name, seed):
    problem = load_bundled(name)
    disguised, truth = disguise(problem.domain, seed)
    match = match_propositions(disguised, problem.domain, reachable_states(problem))
    assert match.names == truth
    assert match.complete
    renamed = match.rename(disguised)
    assert {a.name: a for a in renamed.actions} == {a.name: a for a in problem.domain.actions}


def test_duplicates_negations_and_what_has_no_counterpart():
    hidden = load_bundled("ferry-1c").domain

    def more(action: StripsAction) -> StripsAction:
        car = "at(c1,l1)"
        pre, add, delete = set(action.pre), set(action.add), set(action.delete)
        for copy in ("copy", "copy of the copy"):
            add |= {copy} if car in action.add else set()
            delete |= {copy} if car in action.delete else set()
        if action.name == "board(c1,l1)":
            pre.add("copy")
            add |= {"negation"}
            delete.add("once")
        elif action.name == "debark(c1,l1)":
            delete.add("negation")
        return StripsAction(action.name, pre, add | {"idle"}, delete)

    names = [p for p in hidden.propositions if p != "on(c1)"]
    actions = [
        StripsAction(a.name, a.pre - {"on(c1)"}, a.add - {"on(c1)"}, a.delete - {"on(c1)"})
        for a in map(more, hidden.actions)
    ]
    learned = StripsDomain((*names, "copy", "copy of the copy", "negation", "once", "idle"), tuple(actions))
    match = match_propositions(learned, hidden)
    assert match.names == {p: p for p in names}
    assert match.duplicates == {"copy": "at(c1,l1)", "copy of the copy": "at(c1,l1)"}
    assert match.negated == {"negation": "at(c1,l1)"}
    assert match.extra == ("once", "idle")
    assert match.idle == ("idle",)
    assert match.missing == ("on(c1)",)
    assert not match.complete
    assert match.rename(learned).propositions == (
        *names,
        "at(c1,l1)=2",
        "at(c1,l1)=3",
        "not-at(c1,l1)",
        "extra-once",
        "extra-idle",
    )
    assert "on(c1) was not learned" in str(match)
    assert "negation is the negation of at(c1,l1)" in str(match)


def known(domain: StripsDomain, trace: list[str]) -> dict[str, bool]:
    """The propositions that a trace has added or deleted, with their values: the last effect counts."""
    values: dict[str, bool] = {}
    for action in (domain.actions[i] for i in domain.encode(trace)):
        values.update(dict.fromkeys(action.add, True) | dict.fromkeys(action.delete, False))
    return values


@settings(max_examples=50)
@given(domains(actions=3), domains(actions=3), st.data())
def test_a_match_holds_after_every_trace(learned, hidden, data):
    match = match_propositions(learned, hidden)
    assert sorted([*match.names, *match.duplicates, *match.negated, *match.extra]) == sorted(learned.propositions)
    assert len(set(match.names.values())) == len(match.names)
    trace = []
    for choice in data.draw(st.lists(st.integers(0, 99), max_size=8)):
        both = [a for a in learned.next_actions(trace) if a in hidden.next_actions(trace)]
        if not both:
            break
        trace.append(both[choice % len(both)])
        ours, theirs = known(learned, trace), known(hidden, trace)
        for p, q in (*match.names.items(), *match.duplicates.items()):
            assert (ours.get(p) is False) == (theirs.get(q) is False)
        for p, q in match.negated.items():
            assert (ours.get(p) is False) == (theirs.get(q) is True)
        assert all(ours.get(p) is not False for p in match.idle)
        for q, value in match.translate(state_after(learned, trace)).items():
            assert theirs.get(q, True) == value


def test_a_trained_model_s_propositions_get_the_hidden_names(learned):
    match = match_propositions(learned, SIMPLE)
    assert set(match.names.values()) == set(SIMPLE.propositions)
    assert not match.missing
    assert len(match.names) + len(match.duplicates) + len(match.negated) + len(match.extra) == len(learned.propositions)
    assert match.translate(state_after(learned, ["a", "c"])) == {"p": False, "q": True, "r": True}
    assert find_distinguishing_trace(match.rename(learned), SIMPLE).equivalent
    if len(learned.propositions) == 3:
        assert match.complete
        assert match.rename(learned).actions == SIMPLE.actions


def test_a_model_with_the_hidden_weights_in_another_order():
    torch.manual_seed(3)
    problem = load_bundled("blocksworld-2b")
    model = StripsTransformer.from_domain(problem.domain)
    order = torch.randperm(len(problem.domain.propositions))
    model.theta.data = model.theta.data[:, order]
    match = match_propositions(model.to_domain(), problem.domain, reachable_states(problem))
    assert [match.names[p] for p in problem.domain.propositions] == [problem.domain.propositions[i] for i in order]


def test_what_cannot_be_matched_is_refused():
    with pytest.raises(PlanningError, match="Only domains over the same actions"):
        match_propositions(SIMPLE, load_bundled("ferry-1c").domain)
    with pytest.raises(PlanningError, match="initial_states is empty"):
        match_propositions(SIMPLE, SIMPLE, [])
    with pytest.raises(SearchBoundError, match=r"max_states=2 .* initial_states=reachable_states\(problem\)"):
        match_propositions(SIMPLE, SIMPLE, max_states=2)
