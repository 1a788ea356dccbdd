"""The command as a user runs it: tiny cells of every learner, their card and their tables."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from hf_mech.hub import Results, check_folder
from hf_mech.planning.lifted.domains import lifted_domain
from tests.training.commands import printed_by, stages_of
from training.engine import main
from training.lifted.data import Log, favoured_actions, judges_of, log_of
from training.lifted.experiment import EXPERIMENT
from training.lifted.learners import learn, time_limit
from training.lifted.models import arguments_found, names_of_figures, syntax
from training.lifted.report import models_table, peers_table, rows_of, summary_table, verdicts_table
from training.lifted.run import is_right, share_right
from training.lifted.settings import LEARNERS, Cell

SMALL = {"actions": 400, "walks": 30, "problems": 1}


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every learner on two logs of ferry, and AMLGym's figures of one."""
    root = tmp_path_factory.mktemp("lifted")
    folders = ["--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards")]
    asked = ["--domain", "ferry", "--seeds", "1", "--jobs", "1", *folders]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Cell.PRESETS, "usual", SMALL)
        printed_by(EXPERIMENT, *asked, "--condition", "clean", "wrong_label_2", "--learner", *LEARNERS)
        said = printed_by(EXPERIMENT, *asked, "--condition", "goals", "--models", "true")
    assert "ferry" in said
    return root / "cards" / "lifted-domains"


def test_the_card_is_whole(card: Path):
    check_folder(card)
    assert {path.name for path in card.glob("*.png")} == {f"verdicts_{learner}.png" for learner in LEARNERS}


def test_the_figures_of_every_learner_stand_there(card: Path):
    measured = Results.load(card / "results.json").results
    clean = {(m.setting["learner"], m.metric): m.mean for m in measured if m.setting["condition"] == "clean"}
    for learner in LEARNERS:
        assert clean[learner, "learned"] == 1
        assert clean[learner, "actions"] == 400
        assert clean[learner, "walks_right"] == 1
    assert clean["code", "contradictions_right"] == clean["alternation", "contradictions_right"] == 1
    assert clean["locm", "contradictions_right"] < 1
    assert clean["code", "exceptions"] == 0
    goals = {m.metric for m in measured if m.setting["condition"] == "goals"}
    assert goals >= set(names_of_figures())


def test_the_tables_have_a_row_a_domain(card: Path):
    rows = rows_of(Results.load(card / "results.json").results)
    assert verdicts_table(rows).rows[0][0] == "ferry *"
    assert verdicts_table(rows).rows[0][-1] == "100 / 100"
    assert peers_table(rows).rows[0][1] == "100 / 100"
    assert [row[:4] for row in summary_table(rows).rows if row[1] == "clean"] == [
        ["code", "clean", "1 / 0", "1 / 0"],
        ["alternation", "clean", "1 / 0", "1 / 0"],
        ["locm", "clean", "1 / 0", "0 / 0"],
    ]
    assert [row[0] for row in models_table(rows).rows] == ["ferry *", "**mean**"]


def test_a_whole_table_has_a_cell_for_every_domain():
    (cells,) = stages_of(EXPERIMENT, "--domain", "all", "--condition", "all", "--learner", "all", "--seeds", "101")
    assert len(cells) == len({cell.name for cell in cells}) == 26 * 8 * 3


def cell_of(condition: str = "clean", learner: str = "code", **overrides: int) -> Cell:
    return Cell.of("usual", SMALL | overrides, domain="ferry", condition=condition, learner=learner, seed=1)


def test_instances_share_no_objects_and_habits_are_those_of_the_whole_log():
    log = log_of(cell_of("habits", actions=2_000))
    objects = [{each for action in trace for each in action.objects} for trace in log.traces]
    assert len({each.partition("@")[2] for own in objects for each in own}) == 4
    assert all(len({each.partition("@")[2] for each in own}) == 1 for own in objects)
    favoured = favoured_actions("ferry", 1)
    assert len(favoured) == 1
    share = sum(action.name in favoured for trace in log.traces for action in trace) / sum(map(len, log.traces))
    clean = log_of(cell_of(actions=2_000))
    usual = sum(action.name in favoured for trace in clean.traces for action in trace) / sum(map(len, clean.traces))
    assert share > usual


def test_goal_seeking_traces_have_5_to_30_steps():
    log = log_of(cell_of("goals"))
    lengths = [len(trace) for trace in log.traces]
    assert sum(lengths) == 400
    assert max(lengths) <= 30
    assert len(set(lengths)) > 5


def test_failed_actions_are_left_out_for_those_who_cannot_read_them():
    log = log_of(cell_of("failures"))
    failed = sum(map(sum, log.labels))
    assert 0 < failed < 400
    assert sum(map(len, log.done)) == 400 - failed


def test_the_hidden_domain_is_right_everywhere():
    judges, hidden = judges_of("ferry", 1, 30), lifted_domain("ferry")
    assert len(judges.walks) == len(judges.contradictions) == 30
    assert share_right(hidden, judges.walks, 0) == share_right(hidden, judges.contradictions, 1) == 1
    assert share_right(hidden, judges.contradictions, 0) == 0
    for trace in judges.walks + judges.contradictions:
        assert is_right(hidden, trace, last=sum(hidden.labels(trace)))
    assert set(syntax(hidden, hidden).values()) == {1.0}
    assert set(arguments_found(hidden, hidden).values()) == {1.0}


def test_a_learner_that_fails_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "macq.extract.locm", None)
    learned = learn(cell_of(learner="locm"), Log([], []))
    assert learned.domain is None
    assert "pip install macq" in str(learned.note)


def test_a_limit_ends_what_takes_too_long():
    with time_limit(0.01), pytest.raises(TimeoutError, match="not done after"):
        time.sleep(5)


def test_wrong_options_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(EXPERIMENT, ["--domain", "tyreworld", "--dry_run", "--output_dir", str(tmp_path)])
    assert "--domain must be of blocksworld, " in capsys.readouterr().err
