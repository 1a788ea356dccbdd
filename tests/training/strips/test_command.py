"""The command as a user runs it: from the options to a card that the Hub's checks accept."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import pytest
import yaml

from hf_mech.hub import Results, check_folder
from hf_mech.models.strips import StripsTransformer
from tests.training.commands import printed_by, stages_of
from tests.training.strips.conftest import theta_of
from training.engine import main
from training.engine.settings import OPTION, names_of
from training.strips.experiment import EXPERIMENT, StripsOptions
from training.strips.report import assumptions_table, table1
from training.strips.run import CellOutcome
from training.strips.settings import PAPER, Cell

SIZES = (50, 200)


@dataclass
class Finished:
    """A command that has ended: its outcomes and their folders by size, its checkpoint, its card, its print."""

    outcomes: dict[int, CellOutcome]
    folders: dict[int, Path]
    checkpoint: Path
    card: Path
    printed: str


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Two tiny cells trained and reported."""
    root = tmp_path_factory.mktemp("report")
    options = [*("--domain", "simple", "--sizes", "50", "200", "--num_seeds", "3", "--num_test", "100")]
    options += [
        *("--max_steps", "60", "--eval_steps", "20", "--checkpoint_steps", "40", "--output_dir", str(root / "runs"))
    ]
    printed = printed_by(EXPERIMENT, *options, "--jobs", "1", "--cards_dir", str(root / "cards"))
    (cells,) = stages_of(EXPERIMENT, *options)
    folders = {cell.num_train: root / "runs" / cell.name for cell in cells}
    outcomes = {size: EXPERIMENT.load(folder) for size, folder in folders.items()}
    return Finished(outcomes, folders, root / "runs" / "strips-simple", root / "cards" / "strips-simple", printed)


def test_the_card_is_whole(finished: Finished):
    card = finished.card
    check_folder(card)
    captions = yaml.safe_load((card / "card.yaml").read_text())["captions"]
    assert {path.name for path in card.glob("*.png")} == set(captions)
    assert {"figure2_learned_domain.png", "figure3_valid_trace.png", "figure3_invalid_trace.png"} <= set(captions)
    for name in captions:
        assert (card / name).read_bytes().startswith(b"\x89PNG")
    assert "(define (domain" in (card / "learned_domain.pddl").read_text()


def test_the_results_stand_beside_the_papers(finished: Finished):
    results = {(m.setting["num_train"], m.metric): m for m in Results.load(finished.card / "results.json").results}
    for size, outcome in finished.outcomes.items():
        for metric in ("train_trace_accuracy", "test_trace_accuracy"):
            measured = results[size, metric]
            assert measured.values == getattr(outcome, metric)
            assert len(measured.values) == 3
            assert measured.paper == PAPER.figure(metric, domain="simple", num_train=size)
            assert measured.paper is not None
            assert measured.paper.where == "Table 1"
        assert results[size, "proved_on_all_sequences"].values == [float(v is True) for v in outcome.equivalent]
        assert results[size, "steps"].values == [outcome.steps]
    figure = results[200, "test_trace_accuracy"].paper
    assert figure is not None
    assert (figure.mean, figure.std) == (0.983, 0.052)  # as Table 1 has it
    figure = results[200, "train_trace_accuracy"].paper
    assert figure is not None
    assert (figure.mean, figure.std) == (0.98, 0.063)


def test_the_checkpoint_is_the_best_member_of_the_largest_cell(finished: Finished):
    outcome = finished.outcomes[200]
    best = outcome.train_trace_accuracy.index(max(outcome.train_trace_accuracy))
    model = StripsTransformer.from_pretrained(finished.checkpoint)
    assert model.theta.detach().equal(theta_of(finished.folders[200])[best : best + 1])
    assert model.to_domain(name=outcome.domains[best]["name"]).to_dict() == outcome.domains[best]


def test_the_table_is_printed(finished: Finished):
    rows = [line for line in finished.printed.splitlines() if line.startswith(" simple")]
    assert len(rows) == 2
    assert "1.000 ± 0.000" in rows[0]
    assert "0.983 ± 0.052" in rows[1]  # the paper's, for 200 traces


def test_other_traces_have_a_table_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A row a departure; the paper's figure stands beside other tests, not beside other training."""
    monkeypatch.setitem(Cell.PRESETS, "two_part_code", {"learner": "two_part_code", "sweeps": 40})
    monkeypatch.setattr("training.strips.report.figures_of", lambda *arguments: {})
    folders = ["--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards"), "--jobs", "1"]
    asked = ["--domain", "simple", "--sizes", "50", "--preset", "two_part_code", "--num_seeds", "2", *folders]
    asked += ["--num_test", "200"]
    printed_by(EXPERIMENT, *asked, "--negative_fraction", "0")
    printed_by(EXPERIMENT, *asked, "--test_negatives", "first_inapplicable")
    printed_by(EXPERIMENT, *asked, "--head_factor", "2")
    columns, rows = assumptions_table(tmp_path / "cards").columns, assumptions_table(tmp_path / "cards").rows
    shown = [dict(zip(columns, row, strict=True)) for row in rows]
    named = {row["departure"]: row for row in shown}
    fewer, fraction, tests, heads = "num_test 200", "negative_fraction 0.0", "first_inapplicable", "head_factor 2.0"
    assert named.keys() == {f"{fewer}, {fraction}", f"{fewer}, test_negatives {tests}", f"{fewer}, {heads}"}
    assert [name for name in named if named[name]["the paper's"]] == [f"{fewer}, test_negatives {tests}"]
    assert all(row[">proved: two_part_code"].endswith(" of 2") for row in shown)
    assert [name for name in named if named[name][">right number: two_part_code"]] == [f"{fewer}, {heads}"]
    assert not table1(tmp_path / "cards").rows


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main(EXPERIMENT, ["--help"])
    assert left.value.code == 0
    printed = capsys.readouterr().out
    names = [*names_of(Cell, OPTION), *(entry.name for entry in fields(StripsOptions))]
    for name in ["domain", "sizes", "head_factor", *names]:
        assert f"--{name} " in printed


def test_table_1_has_28_cells():
    (cells,) = stages_of(EXPERIMENT, "--domain", "all")
    assert len(cells) == len({cell.name for cell in cells}) == 28
    assert {cell.seeds for cell in cells} == {"0..9"}
    assert {cell.preset for cell in cells} == {"redraw"}


def test_the_largest_cell_with_more_heads():
    (cells,) = stages_of(EXPERIMENT, "--domain", "simple", "ferry-1c", "--head_factor_at_largest", "2")
    more = [(cell.domain, cell.num_train) for cell in cells if cell.head_factor == 2]
    assert sorted(more) == [("ferry-1c", 2000), ("simple", 500)]
    assert len(cells) == 4 + 6 + 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--domain", "pddl", "--domain_file", "a.pddl"], "--domain pddl goes with --domain_file and --problem_file"),
        (["--domain", "simple", "--domain_file", "a.pddl", "--problem_file", "b.pddl"], "and they with it"),
        (["--domain", "hanoi"], "--domain must be of blocksworld-2b,"),
        (["--domain", "simple", "--sizes", "many"], "--sizes must be whole numbers, got many"),
        (["--domain", "simple", "--sizes", "0"], "--sizes must be 1 or more, got 0"),
        (["--domain", "simple", "--max_steps", "0"], "--max_steps must be 1 or more, got 0"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main(EXPERIMENT, [*arguments, "--dry_run", "--output_dir", str(tmp_path)])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
