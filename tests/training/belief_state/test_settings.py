"""The presets are those of the paper and of the machines; settings that make no sense are refused."""

from __future__ import annotations

import pytest

from tests.training.belief_state.small import run_of
from tests.training.jobs import refusal_of, runs_of
from training.belief_state.experiment import EXPERIMENT
from training.belief_state.settings import GRAPHS, MODELS, Run
from training.engine import SettingsError


@pytest.mark.parametrize("preset", Run.PRESETS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_preset_has_every_run(preset: str, graph: str) -> None:
    for model in MODELS:
        assert run_of(model, graph, preset=preset).departures == {}


def test_the_papers_preset_is_appendix_c() -> None:
    runs = [run_of(graph=graph, preset="paper") for graph in GRAPHS]
    assert [run.learning_rate for run in runs] == [3e-4, 1e-4, 1e-4]
    for run in runs:
        assert (run.layers, run.backward_layers, run.hidden, run.heads, run.weight_decay) == (6, 6, 768, 8, 0.1)
        assert (run.optimizer, run.num_nodes, run.eval_graphs) == ("adamw", 50, 10_000)
        assert run.steps * run.batch_size == 100 * run.examples == 100 * 8_000_000


def test_the_command_alone_runs_three_seeds_of_bst_and_forward_only() -> None:
    runs = runs_of(EXPERIMENT)
    assert {(run.preset, run.graph, run.num_nodes) for run in runs} == {("cpu", "g-2-5", 50)}
    assert sorted((run.model, run.seed) for run in runs) == [
        (model, seed) for model in ("bst", "forward_only") for seed in range(3)
    ]


def test_all_models_of_a_preset_share_the_recipe() -> None:
    for preset in Run.PRESETS:
        recipes = [run_of(model, preset=preset).to_dict() | {"model": ""} for model in MODELS]
        assert recipes == recipes[:1] * len(MODELS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--num_nodes", "8"), "names"),
        (("--num_nodes", "9"), "181,440 graphs g-2-5 with --num_nodes 9, and 217,600 are trained: more than 1%"),
        (("--num_nodes", "10", "--examples", "64000"), "1,814,400 graphs g-2-5 with --num_nodes 10, and 64,000"),
        (("--first_length", "6"), "--first_length must be 2 to 5 for g-2-5, or 0, got 6"),
        (("--first_degree", "3"), "--first_degree must be 1 to 2"),
        (("--growth", "0.5", "--first_nodes", "8"), "names"),
        (("--growth_after", "0.5"), "give a --growth above 0, together at most 1, got 0.5 and 0.0"),
        (("--growth_after", "0.5", "--growth", "0.6"), "together at most 1, got 0.5 and 0.6"),
        (("--heads", "5"), "--hidden must be a multiple of 5"),
        (("--examples", "100"), "--examples must be a multiple of 64"),
        (("--model", "gpt"), "--model must be of bst, forward_only"),
        (
            ("--graph", "stars"),
            "--graph must be g-D-L for D arms and paths of L nodes, such as g-2-5, g-5-5, g-2-20, got",
        ),
        (("--graph", "g-02-5"), "--graph must be g-D-L"),
        (("--graph", "g-0-5"), "degree must be a whole number, 1 or more, got 0"),
        (("--graph", "g-2-1"), "length must be a whole number, 2 or more, got 1"),
        (("--graph", "g-5-20"), "G(5,20) has 96 nodes, more than the 50 names; give num_nodes of at least that"),
        (("--graph", "g-3-2", "--model", "augmented"), "a length of 3 or more, got 2"),
        (("--graph", "g-1-3", "--model", "augmented", "--num_nodes", "5"), "There are 60 graphs g-1-3"),
        (("--decay", "1.5"), "--decay must be 1 or less"),
    ],
)
def test_refusals(arguments: tuple[str, ...], said: str) -> None:
    assert said in refusal_of(EXPERIMENT, *arguments)


@pytest.mark.parametrize("preset", Run.PRESETS)
def test_any_graph_has_every_preset(preset: str) -> None:
    for graph in ("g-3-4", "g-7-3", "g-1-30", "g-5-20"):
        (run,) = runs_of(
            EXPERIMENT, "--graph", graph, "--preset", preset, "--num_nodes", "100", "--seeds", "0", "--model", "bst"
        )
        assert (run.final.degree, run.final.length) == tuple(map(int, graph.split("-")[1:]))
        assert run.departures == {"num_nodes": 100}
        assert run.grown(0.0) == run.final


def test_all_graphs_are_the_papers() -> None:
    assert {run.graph for run in runs_of(EXPERIMENT, "--graph", "all", "--seeds", "0")} == set(GRAPHS)


def test_graphs_do_not_grow_without_growth() -> None:
    assert run_of(first_length=3).grown(0.0) == run_of().final
    with pytest.raises(SettingsError):
        run_of(first_length=1)


def test_graphs_grow_after_a_share_of_the_steps() -> None:
    run = run_of(graph="g-5-5", preset="cpu-long")
    degrees = {done: run.grown(done).degree for done in (0.0, 0.55, 0.58, 0.6, 0.64, 0.68, 0.71, 1.0)}
    assert degrees == {0.0: 2, 0.55: 2, 0.58: 2, 0.6: 3, 0.64: 4, 0.68: 5, 0.71: 5, 1.0: 5}
