"""What the engine promises for every experiment: a run is done once, and an interrupted one is the same run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from hf_mech.hub import check_folder
from hf_mech.hub.environment import describe_machine, package_versions
from hf_mech.hub.files import held
from tests.training.cases import CASES, TRAINED, Case, few_rows, outcome_of, reset_process, weights_of
from training.engine.runner import run_one
from training.engine.settings import OPTION, Settings, SettingsError, names_of
from training.render_readme import experiments

ROOT = Path(__file__).parents[2]
WITH_OWN_COMMAND = ("strips", "formal_languages", "language_models", "templatic", "pargen", "lifted", "machines")
"""Quick tests of their own go from the command to the card; here they are slow."""
TOY_AND_SLOW = ["toy", *(pytest.param(name, marks=pytest.mark.slow) for name in TRAINED if name != "toy")]

CHILD = """
import sys
from pathlib import Path
import torch
from hf_mech.hub import check_folder
from hf_mech.hub.environment import describe_machine, package_versions
from hf_mech.hub.files import held
from tests.training.cases import CASES
from training.engine.runner import run_one
torch.set_num_threads(1)
case, output_dir = CASES[sys.argv[1]], Path(sys.argv[2])
settings = case.settings(output_dir)
run_one(case.experiment, settings, case.job(settings, output_dir))
"""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow) if name in WITH_OWN_COMMAND else name for name in CASES],
)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def straight(case: Case, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """The run in one go: its outcome and its folder."""
    output_dir = tmp_path_factory.mktemp(case.experiment.name)
    settings = case.settings(output_dir)
    job = case.job(settings, output_dir)
    with pytest.MonkeyPatch.context() as patch:
        few_rows(name_of(case), patch)
        outcome = run_one(case.experiment, settings, job)
    reset_process()
    return outcome, job.folder


def name_of(case: Case) -> str:
    return next(name for name, other in CASES.items() if other is case)


def assert_same_run(outcome: Any, folder: Path, straight: tuple[Any, Path]) -> None:
    expected, where = straight
    assert outcome_of(outcome) == outcome_of(expected)
    got, wanted = weights_of(folder), weights_of(where)
    assert got.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert torch.equal(got[name], tensor), name
    assert {path.name for path in folder.iterdir()} == {"run.json", "outcome.json", "model"}


def test_the_cases_are_all_experiments() -> None:
    assert {type(experiment) for experiment in experiments()} == {
        type(case.experiment) for name, case in CASES.items() if name != "toy"
    }


def test_a_finished_run_is_not_done_again(case: Case, straight: tuple[Any, Path]) -> None:
    outcome, folder = straight
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    again = run_one(case.experiment, outcome.settings, case.job(outcome.settings, _root(outcome, folder)))
    assert again == outcome
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before
    assert json.loads((folder / "run.json").read_text()) == outcome.settings.to_dict()


def test_another_runs_folder_is_refused(case: Case, straight: tuple[Any, Path]) -> None:
    outcome, folder = straight
    changed, other = next(_others(outcome.settings))
    job = replace(case.job(outcome.settings, _root(outcome, folder)), folder=folder)
    with pytest.raises(FileExistsError, match=rf"{changed} .*Remove the folder or choose another --output_dir"):
        run_one(case.experiment, other, job)


def _others(settings: Settings) -> Iterator[tuple[str, Settings]]:
    """The settings with one whole number changed, and its name, where that can be."""
    for name in names_of(settings, OPTION):
        if type(value := getattr(settings, name)) is int:
            with suppress(SettingsError):
                yield name, replace(settings, **{name: value + 1})


@pytest.mark.parametrize("case", TOY_AND_SLOW, indirect=True)
def test_stopped_and_started_again(case: Case, straight: tuple[Any, Path], tmp_path: Path) -> None:
    settings = case.settings(tmp_path)
    job = case.job(settings, tmp_path, stop_at=case.stop_at)
    assert run_one(case.experiment, settings, job) is None
    assert len(list(job.folder.glob("checkpoint-*"))) == 1
    for leftover in (".checkpoint-4.1.tmp", "model"):  # what a kill left half written
        (job.folder / leftover).mkdir()
        (job.folder / leftover / "model.safetensors").write_bytes(b"half a fi")
    torch.manual_seed(5)  # the process that goes on has other random numbers
    torch.rand(100)
    reset_process()
    resumed = run_one(case.experiment, settings, replace(job, stop_at=None))
    assert_same_run(resumed, job.folder, straight)


@pytest.mark.slow
@pytest.mark.parametrize("case", TOY_AND_SLOW, indirect=True)
def test_killed_and_started_again(case: Case, straight: tuple[Any, Path], tmp_path: Path) -> None:
    settings = case.settings(tmp_path)
    job = case.job(settings, tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, name_of(case), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not list(job.folder.glob("checkpoint-*")):
            assert child.poll() is None, child.communicate()[1]
            time.sleep(0.005)
        with held(job.folder) as alone:
            assert not alone
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stderr.close()
    with held(job.folder) as alone:
        assert alone  # the kill has freed it
    assert not list(job.folder.parent.glob(".*"))
    assert not (job.folder / "outcome.json").exists()
    assert_same_run(run_one(case.experiment, settings, job), job.folder, straight)


def test_its_card_can_be_written(case: Case, straight: tuple[Any, Path], tmp_path: Path) -> None:
    outcome, folder = straight
    card = case.experiment.card({folder: outcome})
    here = {"command": "python", "commit": "0" * 40, "machine": describe_machine(), "versions": package_versions()}
    for own in card.outcomes:
        own.origin = here
    card.write(case.experiment.folder / "card.md", tmp_path / card.name)
    check_folder(tmp_path / card.name)
    for preset in case.experiment.settings.PRESETS:  # before anything is trained: one card never replaces another
        with suppress(SettingsError):
            settings = replace(outcome.settings, preset=preset)
            if case.experiment.shares_card(settings) != case.experiment.shares_card(outcome.settings):
                assert case.experiment.card({folder: replace(outcome, settings=settings)}).name != card.name


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_setting_and_option_has_help(case: Case) -> None:
    for settings in (case.experiment.settings, *case.experiment.shared, case.experiment.options):
        for entry in fields(settings):
            assert len(entry.metadata.get("help", "")) > 2, entry.name


def _root(outcome: Any, folder: Path) -> Path:
    """The --output_dir of a run's folder."""
    return folder.parents[outcome.settings.name.count("/")]
