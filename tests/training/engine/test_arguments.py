"""The command line of every experiment: one grammar, and one line and exit code 2 for values that make no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.training.cases import CASES, Case
from training.engine import main
from training.engine.arguments import config_of, parser_of, read


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def refused(case: Case, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that the command says before it ends with code 2."""
    with pytest.raises(SystemExit) as left:
        main(case.experiment, [*case.arguments, *arguments])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said


WRONG = (
    (["--seeds", "x"], "--seeds must be whole numbers such as 0,2 or ranges such as 0..4, got x"),
    (["--num_seeds", "0"], "--num_seeds must be 1 or more, got 0"),
    (["--seeds", "1", "--num_seeds", "2"], "Give --seeds, which names them, or --num_seeds"),
    (["--preset", "gpu"], "--preset must be of"),
    (["--jobs", "-1"], "--jobs must be 0 or more, got -1"),
    (["--push_to_hub"], "--push_to_hub needs --hub_user"),
    (["--report_to", "paper"], "--report_to must be of tensorboard, wandb, trackio, got paper"),
    (["--no_such_option"], "unrecognized arguments: --no_such_option"),
    (["--jobs", "many"], "argument --jobs: invalid int value: 'many'"),
)
"""Arguments that no experiment takes, and what the command says to them."""


@pytest.mark.parametrize(
    ("case", "arguments", "says"),
    [
        pytest.param(case, *wrong, marks=[] if place % len(WRONG) == number else pytest.mark.slow)
        for place, case in enumerate(CASES.values())
        for number, wrong in enumerate(WRONG)
    ],
)
def test_wrong_values_of_shared_options(
    case: Case, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Quick: each of them with an experiment or two."""
    own = [] if "--num_seeds" not in case.arguments else ["--num_seeds"]
    at = case.arguments.index("--num_seeds") if own else 0
    plain = Case(case.experiment, case.arguments[:at] + case.arguments[at + 2 :], 0, 0) if own else case
    if "--seeds" in plain.arguments:
        at = plain.arguments.index("--seeds")
        plain = Case(case.experiment, plain.arguments[:at] + plain.arguments[at + 2 :], 0, 0)
    assert says in refused(plain, capsys, *arguments)


def test_seeds_mean_the_same_everywhere(case: Case) -> None:
    def seeds(*arguments: str) -> list[int]:
        own = [a for a in case.arguments if a not in ("--seeds", "--num_seeds")]
        for option in ("--seeds", "--num_seeds"):
            if option in case.arguments:
                del own[case.arguments.index(option)]
        return read(case.experiment, parser_of(case.experiment, None), [*own, *arguments]).seeds

    assert seeds("--seeds", "5") == [5]
    assert seeds("--seeds", "0..2,7") == seeds("--seeds", "0..2", "7") == [0, 1, 2, 7]
    assert seeds("--num_seeds", "3") == [0, 1, 2]
    assert seeds() == list(range(case.experiment.seeds))


def test_help_names_every_option(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(case.experiment, ["--help"], about="The first lines.")
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert "The first lines." in said
    for action in parser_of(case.experiment, None)._actions:
        assert action.option_strings[0] in said
        assert action.help


def test_only_some_experiments_share_a_run_among_processes(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    if case.experiment.shares_runs:
        assert case.experiment.name in ("strips", "lm")
    else:
        assert "start this with python, and give --jobs" in refused(case, capsys)


def test_a_dry_run_trains_nothing(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments: list[Any] = [*case.arguments, "--output_dir", str(tmp_path / "runs"), "--dry_run"]
    main(case.experiment, arguments)
    said = capsys.readouterr().out
    assert "new" in said
    assert f" {case.experiment.unit}" in said
    assert not (tmp_path / "runs").exists()


def test_the_config_of_a_run_makes_it(case: Case, tmp_path: Path) -> None:
    request = case.request(tmp_path / "runs")
    run = next(run for stage in case.experiment.stages(request) for run in stage)
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(config_of(case.experiment, run, request)))
    line = ["--config_file", str(file), "--output_dir", str(tmp_path / "runs")]
    again = read(case.experiment, parser_of(case.experiment, None), line)
    made = [run for stage in case.experiment.stages(again) for run in stage]
    assert made[0] == run
    assert len(made) == 1 or case.experiment.name in ("pargen", "machines")  # all parts of the run's prompts


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("steps: [", "is no YAML"),
        ("steps", "must hold options and their values"),
        ("stepps: 3", "unrecognized arguments: --stepps 3"),
    ],
)
def test_a_wrong_config_is_refused(content: str, message: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(content)
    assert message in refused(CASES["toy"], capsys, "--config_file", str(file))


def test_a_config_that_is_not_there_is_named(tmp_path: Path, capsys: Any) -> None:
    said = refused(CASES["toy"], capsys, "--config_file", str(tmp_path / "none.yaml"))
    assert f"--config_file {tmp_path / 'none.yaml'} cannot be read: No such file" in said


def test_the_command_line_comes_before_the_config(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("steps: 3\ndropout: 0.5\nseeds: 4\nmodulus: [5, 7]\n")
    toy = CASES["toy"].experiment
    request = read(toy, parser_of(toy, None), ["--steps", "9", "--config_file", str(file)])
    assert request.overrides == {"steps": 9, "dropout": 0.5}
    assert (request.seeds, request.axes) == ([4], {"modulus": [5, 7]})
