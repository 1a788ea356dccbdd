"""results.json: every figure follows from its values, and nothing else is saved or loaded."""

import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hf_mech.hub import HubError, Measurement, Results, measurement, validate
from hf_mech.hub.environment import code_version


def test_mean_std_and_n_follow_from_the_values() -> None:
    got = measurement("task", "config", {}, "accuracy", [1, 2, 3, 4])
    assert (got.mean, got.n, got.values) == (2.5, 4, [1.0, 2.0, 3.0, 4.0])
    assert got.std == pytest.approx(1.25**0.5)
    assert measurement("task", None, {}, "loss", [0.25]).std == 0.0


def test_saved_and_loaded_are_equal(results: Results, tmp_path: Path) -> None:
    path = results.save(tmp_path / "results.json")
    assert Results.load(path) == results
    entry = json.loads(path.read_text())["results"][0]
    assert list(entry) == ["task", "config", "setting", "metric", "values", "mean", "std", "n", "paper"]
    assert entry["paper"] == {"mean": 0.9, "std": 0.1, "where": "Table 1"}
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_collect_fills_in_where_the_run_was_made() -> None:
    got = Results.collect("toy", seconds=1.5, results=[measurement("task", None, {}, "accuracy", [1.0])])
    validate(got)
    assert {"python", "torch", "transformers", "hf_mech"} <= got.versions.keys()
    assert got.command.startswith("python ")
    assert got.machine["cores"] >= 1


def test_a_command_names_no_folders_of_this_machine(tmp_path: Path) -> None:
    command = "python /opt/me/train.py --output_dir=/home/me/runs --data runs/rows --url https://a/b && python /b/c.py"
    kept = "python train.py --output_dir=runs --data runs/rows --url https://a/b && python c.py"
    got = Results.collect(
        "toy", seconds=1.5, command=command, results=[measurement("task", None, {}, "accuracy", [1.0])]
    )
    assert got.command == kept
    assert json.loads(got.save(tmp_path / "results.json").read_text())["command"] == kept


def _changed(**changes: Any) -> Callable[[Results], Results]:
    return lambda results: dataclasses.replace(results, **changes)


def _measured(**changes: Any) -> Callable[[Results], Results]:
    def change(results: Results) -> Results:
        first: Measurement = results.results[0]
        return dataclasses.replace(results, results=[dataclasses.replace(first, **changes)])

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_changed(command=""), "command is ''"),
        (_changed(commit=" "), "commit is ' '"),
        (_changed(machine={}), "machine must have cpu, gpu, cores"),
        (_changed(versions={"python": "3"}), "versions must have python, torch, transformers"),
        (_changed(seconds=float("nan")), "seconds must be a positive time"),
        (_changed(results=[]), "no measurements"),
        (_measured(values=[], n=0), "has no values"),
        (_measured(values=[1.0, float("nan")]), r"values\[1\] of accuracy is nan"),
        (_measured(mean=0.99), "mean of accuracy is 0.99, but 0.75 follows"),
        (_measured(std=0.0), "std of accuracy is 0.0, but 0.25 follows"),
        (_measured(n=10), "n of accuracy is 10, but 2 follows"),
    ],
)
def test_a_figure_without_a_run_is_refused(
    results: Results, change: Callable[[Results], Results], message: str, tmp_path: Path
) -> None:
    with pytest.raises(HubError, match=message):
        change(results).save(tmp_path / "results.json")
    assert not list(tmp_path.iterdir())


def test_the_same_figure_twice_is_refused(results: Results) -> None:
    with pytest.raises(HubError, match="as an earlier entry does"):
        validate(dataclasses.replace(results, results=[results.results[0]] * 2))


def test_no_values_no_measurement() -> None:
    with pytest.raises(HubError, match="one figure per seed"):
        measurement("task", None, {}, "accuracy", [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"name": "toy"}', "lacks command, commit"),
    ],
)
def test_a_faulty_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(HubError, match=message):
        Results.load(path)


def test_an_unknown_key_is_refused(results: Results, tmp_path: Path) -> None:
    path = results.save(tmp_path / "results.json")
    path.write_text(path.read_text().replace('"metric"', '"best": 1, "metric"', 1))
    with pytest.raises(HubError, match=r"results\[0\] has unknown keys best"):
        Results.load(path)


def test_the_commit_tells_whether_the_code_differs_from_it(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@t"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True)

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert code_version(package).startswith("hf_mech==")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    clean = code_version(package)
    assert len(clean) == 40
    (tmp_path / "results.json").write_text("{}")
    assert code_version(package) == clean
    for name in ("new.py", "new.pddl"):
        (package / name).write_text("")
        assert code_version(package) == f"{clean}-dirty"
        (package / name).unlink()
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "__init__.py").write_text("")
    assert code_version(tmp_path / "installed").startswith("hf_mech==")
