"""Random walks over lifted domains, checked by a simulation over sets of atoms, and logs with noise."""

from collections import Counter
from itertools import pairwise

import pytest

from hf_mech.data.random_numbers import Die
from hf_mech.models.strips.strips_lifted import GroundAction
from hf_mech.planning.lifted.domains import DOMAINS, instance
from hf_mech.planning.lifted.pddl import LiftedProblem
from hf_mech.planning.lifted.walks import LiftedTrace, LiftedWalks, LogSettings
from hf_mech.planning.problem import PlanningError


def allowed(problem: LiftedProblem, state: set, action: GroundAction) -> bool:
    atoms = {atom.ground(action.objects) for atom in problem.domain.by_name[action.name].pre}
    return atoms <= state | problem.facts


def done(problem: LiftedProblem, state: set, action: GroundAction) -> set:
    schema = problem.domain.by_name[action.name]
    deleted = {atom.ground(action.objects) for atom in schema.delete}
    return state - deleted | {atom.ground(action.objects) for atom in schema.add}


def simulate(problem: LiftedProblem, trace: LiftedTrace) -> bool:
    """Whether exactly the rows labelled 0 are possible; the others change nothing."""
    state = set(problem.initial)
    for action, label in zip(trace.actions, trace.labels, strict=True):
        if allowed(problem, state, action) == bool(label):
            return False
        state = state if label else done(problem, state, action)
    return True


@pytest.mark.parametrize("name", DOMAINS)
def test_walks_are_possible_and_contradictions_contradict(name: str) -> None:
    problem = instance(name, "small", seed=2)
    walks, domain = LiftedWalks(problem), problem.domain
    for trace in walks.traces(200, 40, seed=3, settings=LogSettings(failure_rate=0.1)):
        assert simulate(problem, trace)
        assert not any(
            found
            for found, label in zip(domain.labels(trace.actions, trace.labels), trace.labels, strict=True)
            if not label
        )
        wrong = set(walks.contradictions(trace.actions, trace.labels))
        for action in walks.actions[:: max(1, len(walks.actions) // 50)]:
            labels = domain.labels([*trace.actions, action], [*trace.labels, 0])
            assert labels[-1] == (action in wrong)
        assert wrong <= set(walks.inapplicable(trace.actions, trace.labels))


def test_the_applicable_actions_are_all_of_them() -> None:
    for name in ("depots", "tpp", "elevators", "freecell"):
        problem = instance(name, "small")
        walks, state = LiftedWalks(problem), set(problem.initial)
        mask = walks.initial
        for number in walks.walk(30, Die(0)):
            expected = [i for i, action in enumerate(walks.actions) if allowed(problem, state, action)]
            assert list(walks.applicable(mask)) == expected
            mask, state = walks.apply(mask, number), done(problem, state, walks.actions[number])
            assert walks.true_atoms(mask) == {atom for atom in state if atom[0] not in problem.domain.static}
    assert list(walks.problem.domain.ground_actions(walks.problem.objects, walks.problem.facts)) == walks.actions


def test_negatives() -> None:
    problem = instance("blocksworld")
    walks, die, kinds = LiftedWalks(problem), Die(5), Counter()
    for _ in range(50):
        for kind in ("contradiction", "inapplicable"):
            trace = walks.negative(8, die, kind)
            assert trace is not None
            assert trace.labels == (0,) * 7 + (1,)
            assert simulate(problem, trace)
            kinds[kind] += problem.domain.labels(trace.actions)[-1]
    assert kinds["contradiction"] == 50 > kinds["inapplicable"] > 0
    assert walks.negative(1, die) is None  # nothing is known to be false
    with pytest.raises(PlanningError, match="must be one of contradiction, inapplicable"):
        walks.negative(8, die, "wrong")


def test_the_same_logs_for_the_same_seed() -> None:
    settings = LogSettings(
        walk_bias=4, burn_in=9, failure_rate=0.1, wrong_action=0.1, missing_step=0.1, wrong_label=0.1
    )
    walks = LiftedWalks(instance("ferry"))
    logs = walks.traces(300, 25, 7, settings)
    assert logs == LiftedWalks(instance("ferry")).traces(300, 25, 7, settings) != walks.traces(300, 25, 8, settings)
    assert [len(trace.actions) for trace in logs] == [25] * 12
    assert walks.traces(3, 25)[0].texts == ["sail l2 l1", "sail l1 l2", "sail l2 l3"]


def test_noise_is_as_much_as_asked_for() -> None:
    walks = LiftedWalks(instance("logistics"))

    def labels(**rates: float) -> list[int]:
        return [label for trace in walks.traces(4000, 100, 1, LogSettings(**rates)) for label in trace.labels]

    def rows(**rates: float) -> list[LiftedTrace]:
        return walks.traces(4000, 100, 1, LogSettings(**rates))

    assert sum(labels()) == 0
    assert 340 < sum(labels(failure_rate=0.1)) < 460
    assert 340 < sum(labels(wrong_label=0.1)) < 460
    clean, wrong = rows(), rows(wrong_action=0.1)
    differ = sum(a != b for c, w in zip(clean, wrong, strict=True) for a, b in zip(c.actions, w.actions, strict=True))
    assert 340 < differ < 460  # the walk beneath is the same
    assert all(simulate(walks.problem, trace) for trace in clean)
    assert not all(simulate(walks.problem, trace) for trace in rows(missing_step=0.1))


def test_habits() -> None:
    walks = LiftedWalks(instance("ferry"))
    counts = Counter(a.name for t in walks.traces(3000, 100, 0, LogSettings(weights={"sail": 20})) for a in t.actions)
    assert counts["sail"] > 10 * counts["board"]
    bias = walks.weights(LogSettings(walk_bias=4), seed=0)
    assert bias is not None
    assert set(bias) == {1, 5}
    assert len({weight for weight, action in zip(bias, walks.actions, strict=True) if action.name == "sail"}) == 1
    with pytest.raises(PlanningError, match="no actions"):
        walks.traces(10, 10, 0, LogSettings(weights={"fly": 2}))


def test_random_starts() -> None:
    walks = LiftedWalks(instance("hanoi"))
    first = {trace.actions[0] for trace in walks.traces(200, 10, 0, LogSettings(burn_in=30))}
    assert len({trace.actions[0] for trace in walks.traces(200, 10)}) == 2 < len(first)


def test_plans() -> None:
    """Possible, aimed, and with random steps if asked for."""
    walks = LiftedWalks(instance("driverlog"))

    def idle(**settings: float) -> float:
        """The share of steps that the next one undoes: loads and unloads of one thing."""
        made = walks.traces(2000, 50, 1, LogSettings(**settings))
        assert all(simulate(walks.problem, trace) for trace in made)
        pairs = [pair for trace in made for pair in pairwise(trace.actions)]
        return sum(a.objects == b.objects and a.name != b.name for a, b in pairs) / len(pairs)

    assert idle(policy="expert") < 0.8 * idle()
    assert idle(policy="expert", random_share=0.9) > idle(policy="expert")
    assert idle(policy="expert", failure_rate=0.2) > 0


def test_wrong_settings_and_actions_are_refused() -> None:
    for name, value in (
        ("walk_bias", -1),
        ("burn_in", True),
        ("failure_rate", 1),
        ("wrong_label", "x"),
        ("policy", "plan"),
        ("random_share", -0.1),
        ("weights", {"a": 0}),
    ):
        with pytest.raises(PlanningError, match="must be"):
            LogSettings(**{name: value})
    walks = LiftedWalks(instance("ferry"))
    with pytest.raises(PlanningError, match="position 1"):
        walks.contradictions(["sail l1 l2", "sail l1 l1"])
    with pytest.raises(PlanningError, match="not possible at position 1"):
        walks.inapplicable(["sail l2 l1", "sail l2 l1"])
    still = LiftedProblem(walks.problem.domain, walks.problem.objects, [])
    with pytest.raises(PlanningError, match="allows no action"):
        LiftedWalks(still).traces(10, 10)
