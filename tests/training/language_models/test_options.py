"""From the command line to the runs: every cell of the paper's table, its settings, and the wrong options."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.commands import stages_of
from training.engine import main
from training.language_models import experiment
from training.language_models.experiment import EXPERIMENT
from training.language_models.settings import Run


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch):
    """The runs of a command on the standard library, whose data is not prepared."""
    monkeypatch.setattr(experiment, "prepared_data", lambda options, settings: Path("data"))
    return lambda *arguments: stages_of(EXPERIMENT, "--corpus", "stdlib", *arguments)


def test_the_table_has_every_cell_of_the_papers(stages):
    first, rest = stages("--pretrain", "--stack_gate", "false", "true")
    assert [run.name for run in first] == [
        "data/mlm-pretraining-vanilla-cpu-seed0",
        "data/clm-pretraining-vanilla-cpu-seed0",
    ]
    cells = {(run.objective, run.start, run.form, run.seed) for run in rest}
    assert len(cells) == len({run.name for run in rest}) == len(rest) == 2 * 2 * 3 * 5
    assert {run.checkpoint for run in rest if run.start == "scratch"} == {None}
    for run in rest:
        if run.start == "pretrained":
            assert run.checkpoint == f"{run.objective}-pretraining-vanilla-cpu-seed0"


def test_the_papers_settings(stages):
    runs = [run for stage in stages("--preset", "paper", "--pretrain") for run in stage]
    assert len(runs) == 2 + 2 * 2 * 2 * 5
    for run in runs:
        assert (run.learning_rate, run.batch_size, run.epochs, run.patience) == (2e-5, 32, 100, 5)
        assert (run.layers, run.hidden, run.heads) == (12, 768, 12)


def rates(stages: list[list[Run]]) -> dict[tuple[str, str], set[float]]:
    """The learning rates by objective and start."""
    found: dict[tuple[str, str], set[float]] = {}
    for run in (run for stage in stages for run in stage):
        found.setdefault((run.objective, run.start), set()).add(run.learning_rate)
    return found


def test_trained_weights_and_masked_models_have_lower_rates(stages):
    assert rates(stages("--pretrain")) == {
        ("clm", "pretraining"): {2e-3},
        ("mlm", "pretraining"): {6e-4},
        ("clm", "scratch"): {2e-3},
        ("mlm", "scratch"): {6e-4},
        ("clm", "pretrained"): {5e-4},
        ("mlm", "pretrained"): {1.5e-4},
    }
    assert rates(stages("--objective", "clm", "--model_name_or_path", "gpt2")) == {("clm", "checkpoint"): {5e-4}}


def test_a_rate_that_is_given_is_that_of_every_run(stages):
    given = stages("--pretrain", "--learning_rate", "0.001")
    assert set(map(frozenset, rates(given).values())) == {frozenset({1e-3})}
    assert all("-learning_rate=0.001-" in run.name for stage in given for run in stage)


def test_only_models_with_a_stack_pop_more(stages):
    first, rest = stages("--pretrain", "--multi_pop", "3")
    assert {(run.form, run.multi_pop) for run in first + rest} == {("vanilla", 1), ("stack", 3)}


def test_the_pretraining_has_its_own_epochs(stages):
    first, rest = stages("--pretrain", "--pretraining_epochs", "7", "--epochs", "2")
    assert {run.epochs for run in first} == {7}
    assert {run.epochs for run in rest} == {2}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Name one corpus"),
        (["--corpus", "stdlib", "--dataset_name", "x"], "Name one corpus"),
        (["--corpus", "novels"], "--corpus must be 'stdlib', got 'novels'"),
        (["--train_file", "a.txt"], "--train_file goes with"),
        (["--corpus", "stdlib", "--objective", "alm"], "--objective must be of mlm, clm, got alm"),
        (["--corpus", "stdlib", "--use_stack", "maybe"], "--use_stack must be of true, false, between, got maybe"),
        (["--corpus", "stdlib", "--stack_gate", "open"], "--stack_gate must be of true, false, got open"),
        (["--dataset_name", "x", "--pretrain"], "--pretrain needs --corpus stdlib"),
        (["--corpus", "stdlib", "--pretrain", "--model_name_or_path", "gpt2"], "leave out --model_name_or_path"),
        (["--corpus", "stdlib", "--model_name_or_path", "gpt2"], "has one objective"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(EXPERIMENT, arguments)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())
