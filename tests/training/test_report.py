"""The script as a user runs it: from the command line to a card that the Hub's checks accept."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from transformers import HfArgumentParser

from hf_mech.hub import Results, check_folder
from hf_mech.models.strips.modeling_strips import StripsTransformer
from tests.training.conftest import TRAINING, theta_of

SIZES = (50, 200)
PAPER = json.loads((TRAINING / "strips_table1_paper.json").read_text())


def run(train_strips: ModuleType, *arguments: str) -> str:
    """What the script prints."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr("sys.argv", ["train_strips.py", *arguments])
        train_strips.main()
    return printed.getvalue()


@pytest.fixture(scope="module")
def finished(train_strips: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Two tiny cells trained and reported: the folder of the runs, the card's folder, and what was printed."""
    root = tmp_path_factory.mktemp("report")
    printed = run(
        train_strips,
        *("--domain", "simple", "--sizes", "50", "200", "--seeds", "3", "--num_test", "100"),
        *("--max_steps", "1000", "--jobs", "1"),
        *("--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards")),
    )
    return root / "runs", root / "cards" / "strips-simple", printed


def test_the_card_is_whole(finished: tuple[Path, Path, str]):
    _, card, _ = finished
    check_folder(card)
    captions = yaml.safe_load((card / "card.yaml").read_text())["captions"]
    assert {path.name for path in card.glob("*.png")} == set(captions)
    assert {"figure2_learned_domain.png", "figure3_valid_trace.png", "figure3_invalid_trace.png"} <= set(captions)
    for name in captions:
        assert (card / name).read_bytes().startswith(b"\x89PNG")
    assert "(define (domain" in (card / "learned_domain.pddl").read_text()


def test_the_results_stand_beside_the_papers(finished: tuple[Path, Path, str]):
    runs, card, _ = finished
    results = {(m.setting["num_train"], m.metric): m for m in Results.load(card / "results.json").results}
    for size in SIZES:
        outcome = json.loads((runs / f"simple-{size}-redraw" / "outcome.json").read_text())
        paper = PAPER["cells"]["simple"][str(size)]
        for metric, mean, std in (("train_trace_accuracy", 0, 1), ("test_trace_accuracy", 3, 4)):
            measured = results[size, metric]
            assert measured.values == outcome[metric]
            assert measured.paper is not None
            assert (measured.paper.mean, measured.paper.std) == (paper[mean], paper[std])
            assert measured.paper.where == PAPER["where"]
        assert results[size, "proved_on_all_sequences"].values == [float(v is True) for v in outcome["equivalent"]]
        assert results[size, "steps"].values == [outcome["steps"]]


def test_the_checkpoint_is_the_best_member_of_the_largest_cell(finished: tuple[Path, Path, str]):
    runs, _, _ = finished
    folder = runs / "simple-200-redraw"
    outcome = json.loads((folder / "outcome.json").read_text())
    best = outcome["train_trace_accuracy"].index(max(outcome["train_trace_accuracy"]))
    model = StripsTransformer.from_pretrained(runs / "strips-simple")
    assert model.theta.detach().equal(theta_of(folder)[best : best + 1])
    assert model.to_domain(name=outcome["domains"][best]["name"]).to_dict() == outcome["domains"][best]


def test_the_table_is_printed(finished: tuple[Path, Path, str]):
    _, _, printed = finished
    rows = [line for line in printed.splitlines() if "simple" in line]
    assert len(rows) == 2
    assert "1.000 ± 0.000" in rows[0]
    assert "0.983 ± 0.052" in rows[1]  # the paper's, for 200 traces


def test_help_names_every_argument(train_strips: ModuleType):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as left:
        HfArgumentParser(train_strips.Arguments).parse_args_into_dataclasses(["--help"])
    assert left.value.code == 0
    for name in train_strips.Arguments.__dataclass_fields__:
        assert f"--{name}" in printed.getvalue()


def test_table_1_has_28_cells(train_strips: ModuleType):
    cells = train_strips.cells_of(train_strips.Arguments(domain=["all"]))
    assert len(cells) == len({cell.name for cell in cells}) == 28
    assert {cell.seeds for cell in cells} == {10}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--domain", "simple", "--push_to_hub"], "--push_to_hub needs --hub_user"),
    ],
)
def test_wrong_arguments_are_refused(train_strips: ModuleType, arguments: list[str], says: str):
    with pytest.raises(SystemExit, match=says):
        run(train_strips, *arguments)
