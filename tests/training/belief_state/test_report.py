"""The table, the card's text and the choice of the checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from hf_mech.hub import Results
from tests.training.belief_state.small import outcome_of, run_of, small
from training.belief_state.figures import figures_of
from training.belief_state.report import (
    BEYOND,
    NAME,
    OBJECTIVES_NAME,
    OTHERS,
    choose,
    knowledge_table,
    measurements,
    order,
    results,
    summary,
    table,
)
from training.belief_state.run import RunOutcome

CHANCE_BITS = [5.64] * 21


def test_the_table_has_a_row_a_model_over_its_seeds() -> None:
    outcomes = [outcome_of(run_of(seed=seed), right) for seed, right in enumerate((9_900, 9_800, 10_000))]
    outcomes.append(outcome_of(run_of("forward_only"), 5_000))
    rows = table(reversed(outcomes)).rows
    assert [row[1] for row in rows] == ["bst", "forward_only"]
    assert rows[0][3:7] == ["99.0 ± 0.8", "50", "100.0", "3"]
    assert rows[1][3:7] == ["50.0", "50", "", "1"]


def test_other_settings_stand_apart_and_other_names_beside_no_figure_of_the_paper() -> None:
    rows = table([outcome_of(run_of(num_nodes=12), 10_000), outcome_of(run_of(), 9_900)]).rows
    assert [(row[2], row[5]) for row in rows] == [("", "100.0"), ("num_nodes 12", "")]


def test_the_order_is_that_of_the_figures() -> None:
    models = ("fim", "bst_without_prev", "bst", "forward_only")
    ordered = sorted((outcome_of(run_of(model), 1) for model in models), key=order)
    assert [outcome.settings.model for outcome in ordered] == ["bst", "forward_only", "fim", "bst_without_prev"]


def test_the_checkpoint_is_chosen_by_the_training_loss() -> None:
    """Not by the test: the better one there has the higher loss."""
    outcomes = {
        Path("a"): outcome_of(run_of(seed=0), 9_999, losses=[0.2]),
        Path("b"): outcome_of(run_of(seed=1), 9_000, losses=[0.1]),
        Path("c"): outcome_of(run_of("forward_only"), 9_999, losses=[0.01]),
    }
    assert choose(outcomes) == Path("b")
    del outcomes[Path("a")], outcomes[Path("b")]
    assert choose(outcomes) == Path("c")


def test_one_number_says_what_the_belief_state_knows_more() -> None:
    sure = [{"step": 1, "accuracy": [1.0] * 5 + [0.4] * 16, "bits": [0.0] * 21}]
    chance = [{"step": 1, "accuracy": [0.02] * 21, "bits": CHANCE_BITS}]
    outcomes = [outcome_of(run_of(seed=seed), 1, probes=probes) for seed, probes in enumerate((sure, sure, chance))]
    outcomes += [outcome_of(run_of("forward_only", seed=seed), 1, probes=chance) for seed in (1, 2)]
    outcomes.append(outcome_of(run_of("forward_only", steps=9), 1, probes=chance))  # another setting
    measured = measurements(outcomes)
    (beyond,) = (entry for entry in measured if entry.metric == BEYOND)
    assert beyond.values == pytest.approx([28.2, 0.0], abs=0.05)
    assert beyond.setting["seeds"] == [1, 2]
    shown = knowledge_table(measured)
    assert [row[1:] for row in shown.rows] == [
        ["bst", "18.8 ± 13.3", "67 67 67 67 67", "27", "3"],
        ["forward_only", "0.0 ± 0.0", "2 2 2 2 2", "2", "2"],
        ["forward_only", "0.0", "2 2 2 2 2", "2", "1"],
    ]
    assert shown.notes == [
        "G(2,5): the state of BST tells probes 14.1 ± 14.1 bits of the path more than that of forward-only; the nodes "
        "have 28.2 bits, each by itself."
    ]
    assert knowledge_table(measurements([outcome_of(run_of(), 1)])).rows == []


def test_there_are_figures_of_runs_alone() -> None:
    moment = {"step": 3, "accuracy": [0.5] * 21, "bits": CHANCE_BITS}
    methods = [outcome_of(run_of(), 9_900), outcome_of(run_of("forward_only"), 5_000)]
    assert set(figures_of(methods)) == {"path_accuracy.png", "path_accuracy_over_training.png"}
    more = [*methods, outcome_of(run_of("bst_without_prev"), 5_000), outcome_of(run_of(seed=1), 1, probes=[moment])]
    assert set(figures_of(more)) - set(figures_of(methods)) == {
        "ablations.png",
        "ablations_over_training.png",
        "probes.png",
    }


def test_without_a_card_there_is_no_number(tmp_path: Path) -> None:
    assert set(results(tmp_path).values()) == {""}
    assert summary(tmp_path) == []


def test_the_summary_has_forward_only_beside_the_belief_state(tmp_path: Path) -> None:
    outcomes = [outcome_of(run_of(), 9_900), outcome_of(run_of("forward_only"), 5_000), outcome_of(run_of("fim"), 1)]
    (tmp_path / NAME).mkdir()
    Results.collect(NAME, seconds=1.0, results=measurements(outcomes)).save(tmp_path / NAME / "results.json")
    ((_, _, ours, papers, _),) = summary(tmp_path)
    assert (ours, papers) == ("99.0 ± 0.0 (50.0 ± 0.0)", "100.0")


def test_other_graphs_have_a_card_of_their_own_and_one_table_with_the_papers(tmp_path: Path) -> None:
    runs = [
        run_of(),
        run_of("forward_only"),
        run_of("next_latent"),
        run_of(graph="g-2-8"),
        run_of("next_latent", "g-2-8"),
    ]
    by_card: dict[str, list[RunOutcome]] = {}
    for run in runs:
        by_card.setdefault(NAME + run.card, []).append(outcome_of(run, 9_000))
    assert list(by_card) == [NAME, OBJECTIVES_NAME, NAME + OTHERS]
    for name, outcomes in by_card.items():
        (tmp_path / name).mkdir()
        Results.collect(name, seconds=1.0, results=measurements(outcomes)).save(tmp_path / name / "results.json")
    rows = [line.split(" | ")[:2] for line in results(tmp_path)[NAME + OTHERS].splitlines()[2:]]
    lengths = [["| g-2-5", "bst"], ["| g-2-5", "next_latent"], ["| g-2-8", "bst"], ["| g-2-8", "next_latent"]]
    assert rows == lengths  # forward_only has no run on others


def test_a_share_of_the_graphs() -> None:
    assert outcome_of(small(), 5).path_accuracy == pytest.approx(0.25)
