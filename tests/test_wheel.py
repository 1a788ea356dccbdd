"""What a wheel has inside: one package, with the builders and all data in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.wheel_check import TRAININGS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel() -> set[str]:
    """The paths of the files in the wheel, as the build backend lists them."""
    builder = WheelBuilder(str(ROOT))
    return {Path(file.distribution_path).as_posix() for file in builder.recurse_included_files()}


def test_it_installs_one_package(wheel: set[str]) -> None:
    assert {path.partition("/")[0] for path in wheel} == {"hf_mech"}


def test_the_builders_are_inside_the_package(wheel: set[str]) -> None:
    builders = {f"hf_mech/dataset_builders/{path.name}" for path in (ROOT / "dataset_builders").glob("*.py")}
    assert {path for path in wheel if "dataset_builders" in path} == builders


def test_the_training_is_inside_the_package(wheel: set[str]) -> None:
    files = {path for path in (ROOT / "training").rglob("*.*") if path.is_file() and "__pycache__" not in path.parts}
    expected = {f"hf_mech/{path.relative_to(ROOT).as_posix()}" for path in files}
    of_the_clone = {f"hf_mech/training/{name}.py" for name in ("make_checkpoints", "render_readme", "how_long")}
    assert {path for path in wheel if path.startswith("hf_mech/training")} == expected - of_the_clone


def test_the_published_times_are_in_it(wheel: set[str]) -> None:
    """`--dry_run` says how long a similar run took."""
    results = {
        f"hf_mech/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "docs/results").glob("*/results.json")
    }
    assert {path for path in wheel if path.startswith("hf_mech/docs")} == results


def test_every_file_of_the_package_is_in_it(wheel: set[str]) -> None:
    files = (path for path in (ROOT / "hf_mech").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    expected = {path.relative_to(ROOT).as_posix() for path in files}
    assert expected - wheel == {"hf_mech/dataset_builders.py", "hf_mech/training.py"}  # the folders come in their place
    assert {Path(path).suffix for path in wheel} >= {".bib", ".pddl", ".psl", ".lark", ".md", ".typed"}


def test_one_trained_model_of_each_family_is_in_it(wheel: set[str]) -> None:
    inside = [path for path in wheel if path.startswith("hf_mech/hub/checkpoints/")]
    folders = {path.split("/")[3] for path in inside}
    types = {json.loads((ROOT / "model_cards" / name / "config.json").read_text())["model_type"] for name in folders}
    assert types == {"strips_transformer", "stack_roberta", "dat", "belief_state", "msat_decision_transformer"}
    for name in folders:
        own = {path.rpartition("/")[2] for path in inside if path.split("/")[3] == name}
        assert own >= {"config.json", "model.safetensors", "checkpoint.json", "README.md"}
        assert not [file for file in own if file.endswith((".png", ".gif"))]
    sizes = [(ROOT / "model_cards" / path.partition("checkpoints/")[2]).stat().st_size for path in inside]
    assert sum(sizes) < 3e6


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel installs, without its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder), str(ROOT)], check=True, cwd=folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_the_wheel_alone_trains_a_model_of_each_family(name: str, installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-m", "hf_mech.cli", "train", name, *TRAININGS[name]]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    (card,) = (tmp_path / "runs" / "cards").glob("*/results.json")
    content = json.loads(card.read_text())
    assert f" train {name} " in content["command"]
    assert content["commit"] == f"hf_mech=={content['versions']['hf_mech']}"  # of the wheel, not of this checkout
    (config,) = (tmp_path / "runs" / name).glob("*/run.yaml")
    again = [*command[:5], "--config_file", str(config), "--output_dir", "again", "--dry_run"]
    told = subprocess.run(again, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert config.parent.name[:60] in told.stdout, told.stderr[-4000:]  # a table cuts long names
    assert "\n1 " in told.stdout  # this run and no other
