"""What the walks support besides the shortest code."""

from __future__ import annotations

import numpy as np

from hf_mech.models.strips import StripsAction, StripsDomain
from hf_mech.planning.problem import StripsProblem
from hf_mech.planning.traces import TraceSettings, generate_traces
from hf_mech.planning.two_part_code import Guess, TwoPartCode, complete, inapplicable, positions_of
from hf_mech.planning.two_part_code.kernel import ADD, DELETE, NOTHING

LAMP = StripsProblem(
    StripsDomain(
        ("dark", "plugged"),
        (
            StripsAction("on", pre=frozenset({"dark", "plugged"}), delete=frozenset({"dark"})),
            StripsAction("off", add=frozenset({"dark"})),
            StripsAction("pull", pre=frozenset({"plugged"}), delete=frozenset({"plugged"}), add=frozenset({"dark"})),
            StripsAction("push", add=frozenset({"plugged"})),
        ),
    ),
    frozenset({"dark", "plugged"}),
    frozenset(),
)
"""The lamp is dark wherever it is not plugged in."""


def walks(number: int):
    made = generate_traces(LAMP, TraceSettings(seed=2, num_train=number, num_test=2, negative_fraction=0.0)).train
    return positions_of([t.actions for t in made], [t.labels for t in made], LAMP.domain.action_names)


def guess_of(domain: StripsDomain, traces: int) -> Guess:
    pre = [[p in a.pre for a in domain.actions] for p in domain.propositions]
    effect = [
        [ADD if p in a.add else DELETE if p in a.delete else NOTHING for a in domain.actions]
        for p in domain.propositions
    ]
    initial = np.zeros((1, len(pre)), np.uint8)
    return Guess(np.array(pre, np.uint8), np.array(effect, np.uint8), initial, np.zeros(traces, np.int64))


def test_a_precondition_that_the_guess_lacks_is_not_invented():
    """By the guess "pull" is applicable everywhere, so no walk shows that it needs the plug; the code must say that."""
    data = walks(200)
    guess = guess_of(LAMP.domain, len(data.starts))
    guess.pre[1, 2] = 0
    assert (data.actions == 2).sum() > 100
    assert complete(guess, data, TwoPartCode()).pre[1, 2] == 0


def test_a_redundant_precondition_and_a_redundant_delete_come_back():
    twice = StripsDomain(
        ("free", "clear"),
        (
            StripsAction("take", pre=frozenset({"free", "clear"}), delete=frozenset({"free", "clear"})),
            StripsAction("put", add=frozenset({"free", "clear"})),
            StripsAction("look", pre=frozenset({"clear"})),
        ),
    )
    problem = StripsProblem(twice, frozenset({"free", "clear"}), frozenset())
    made = generate_traces(problem, TraceSettings(seed=2, num_train=60, num_test=2, negative_fraction=0.5)).train
    data = positions_of([t.actions for t in made], [t.labels for t in made], twice.action_names)
    guess = guess_of(twice, len(made))
    guess.pre[0, 0] = 0  # the shortest code names one of the two
    guess.pre[0, 2] = 1
    guess.pre[1, 2] = 0
    whole = complete(guess, data, TwoPartCode())
    assert whole.pre.tolist() == [[1, 0, 1], [1, 0, 1]]
    assert not (inapplicable(whole, data) != data.labels).any()


def test_few_walks_show_no_invariant():
    data = walks(4)
    guess = guess_of(LAMP.domain, len(data.starts))
    guess.pre[0, 0] = 0
    whole = complete(guess, data, TwoPartCode())
    assert (whole.pre == guess.pre).all()
    assert (whole.effect == guess.effect).all()


def test_no_walk_that_begins_before_an_atom_is_touched_becomes_impossible():
    """From then on one of the two is false; but in the first state both are true, and "poke" comes before "use"."""
    door = StripsDomain(
        ("open", "shut"),
        (
            StripsAction("open", pre=frozenset({"shut"}), add=frozenset({"open"}), delete=frozenset({"shut"})),
            StripsAction("shut", pre=frozenset({"open"}), add=frozenset({"shut"}), delete=frozenset({"open"})),
            StripsAction("use", pre=frozenset({"open"})),
            StripsAction("poke", pre=frozenset({"shut"})),
        ),
    )
    problem = StripsProblem(door, frozenset({"open", "shut"}), frozenset())
    made = generate_traces(problem, TraceSettings(seed=2, num_train=300, num_test=2, negative_fraction=0.5)).train
    data = positions_of([t.actions for t in made], [t.labels for t in made], door.action_names)
    assert sum(list(t.actions[:2]) == [3, 2] and not any(t.labels[:2]) for t in made) > 5
    guess = guess_of(door, len(made))
    whole = complete(guess, data, TwoPartCode())
    assert not (inapplicable(whole, data) != data.labels).any()
    assert (whole.effect == guess.effect).all()
    # Where labels may be wrong, no more of them are than the noise explains.
    noisy = complete(guess, data, TwoPartCode(label_noise=0.01))
    assert (inapplicable(noisy, data) != data.labels).sum() <= 3
