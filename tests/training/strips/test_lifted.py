"""The learner `lifted`: `learn_lifted_domain` on ground actions and their labels."""

from __future__ import annotations

import pytest

from hf_mech.models.strips import StripsAction, StripsTransformer
from hf_mech.planning import find_distinguishing_trace, load_bundled, reachable_states
from hf_mech.planning.traces import TraceSettings, generate_traces
from training.engine import SettingsError
from training.strips.fit import trace_accuracy
from training.strips.lifted import lifted_domain
from training.strips.run import load_traces
from training.strips.settings import Cell

AXES = {"domain": "ferry-2c", "num_train": 200, "head_factor": 1.0, "data_seed": 3}


@pytest.mark.parametrize("failure_rate", [0.0, 0.1])
def test_it_proves_a_domain_equal_to_the_hidden_one(failure_rate: float) -> None:
    problem = load_bundled("ferry-2c")
    train = generate_traces(problem, TraceSettings(seed=3, num_train=200, num_test=2, failure_rate=failure_rate)).train
    names = problem.domain.action_names
    learned = lifted_domain([trace.actions for trace in train], [trace.labels for trace in train], names)
    assert learned.action_names == names
    assert find_distinguishing_trace(learned, problem.domain, initial_states=reachable_states(problem)).equivalent


def test_an_action_seen_in_no_trace_is_free() -> None:
    actions = ("light(x)", "douse(x)", "light(y)", "douse(y)", "paint(x)")
    learned = lifted_domain([[0, 1] * 40, [2, 3] * 40] * 3, [[0] * 80] * 6, actions)
    assert learned.actions[-1] == StripsAction("paint(x)", frozenset(), frozenset(), frozenset())


def test_its_cells_have_no_options_of_other_learners() -> None:
    assert Cell.of("lifted", **AXES).name == "ferry-2c-200-data3-lifted"
    with pytest.raises(SettingsError, match="--sweeps is an option of --learner two_part_code, not of lifted"):
        Cell.of("lifted", {"sweeps": 7}, **AXES)


def test_plans_and_failed_actions_are_data_of_a_cell() -> None:
    cell = Cell.of("lifted", {"policy": "expert", "failure_rate": 0.1, "num_test": 50}, **AXES)
    assert (cell.data["policy"], cell.data["failure_rate"]) == ("expert", 0.1)
    assert "policy" not in Cell.of("lifted", **AXES).data
    data = load_traces(cell)
    traces, hidden = data.splits, data.hidden
    ids, labels = traces["train"]
    assert ((labels[:, :-1] == 1) & (labels[:, 1:] >= 0)).any()
    domain = lifted_domain(
        *([row[told >= 0].tolist() for row, told in zip(own, labels, strict=True)] for own in (ids, labels)),
        hidden.action_names,
    )
    theta = StripsTransformer.from_domain(domain).theta
    assert trace_accuracy(theta, ids, labels, failures=True) == 1
    assert trace_accuracy(theta, ids, labels) < 1
