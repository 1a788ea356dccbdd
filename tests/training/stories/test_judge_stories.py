"""The whole pipeline: two models are trained and complete held-out stories; a judge at an endpoint compares them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hf_mech.lookahead.stories.grammar import read
from tests.programs.llm_test.chat_server import ChatServer
from tests.training.cases import CASES
from training.engine.runner import run_one
from training.judge_stories import main
from training.stories.experiment import EXPERIMENT


def reads_further(request) -> str:
    """A judge that prefers the story that keeps to the grammar for longer, and likes nothing about the flow."""
    one, two = request["messages"][-1]["content"].removeprefix("Story 1:\n\n").split("\n\nStory 2:\n\n")
    shares = [read(" ".join(story.split())).read for story in (one, two)]
    better = "equal" if shares[0] == shares[1] else "1" if shares[0] > shares[1] else "2"
    return f"Grammar: {better}\nFlow: equal\nCohesiveness: {better}\nCreativity: {better}\nVerdict: {better}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    settings = replace(CASES["stories"].settings(folder), num_train=100)
    both = [replace(settings, model=model) for model in ("bst", "fim")]
    for run in both:
        assert run_one(EXPERIMENT, run, CASES["stories"].job(run, folder)) is not None
    first, second = (folder / run.name for run in both)
    return first, second


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ChatServer() as server:
        server.answer = reads_further
        yield server


def test_the_baseline_runs_and_says_what_it_wrote(runs) -> None:
    outcome = EXPERIMENT.load(runs[1])
    assert len(outcome.completions) == len(outcome.continuations) == outcome.settings.eval_stories
    assert 0 <= outcome.joined <= outcome.grammatical <= 1
    assert min(outcome.contradictions, outcome.contradictions_unknown) >= 0
    assert outcome.held_out_loss == pytest.approx(6.9, abs=0.3)  # a model that knows nothing: ln 1,000
    assert json.loads((runs[1] / "outcome.json").read_text())["exact_match"] == outcome.exact_match
    assert "fim" in EXPERIMENT.report.table([outcome]).markdown()


@pytest.mark.parametrize("goal", ["known", "unknown"])
def test_the_judge_sees_whole_stories_and_counts_add_up(goal: str, runs, judge: ChatServer, tmp_path: Path, capsys):
    output = tmp_path / "judged.json"
    options = ["--judge", "local", "--base_url", judge.url, "--goal", goal, "--output", str(output)]
    main([*map(str, runs), *options])
    outcomes = [EXPERIMENT.load(folder) for folder in runs]
    count = outcomes[0].settings.eval_stories
    assert len(judge.requests) == 6 * count
    result = json.loads(output.read_text())
    assert result["models"] == [folder.name for folder in runs]
    overall = result["win_rates_of_the_first"]["verdict"]
    assert overall["wins"] + overall["losses"] + overall["ties"] == count
    assert result["win_rates_of_the_first"]["flow"]["ties"] == count
    seen = judge.requests[0][1]["messages"][-1]["content"]
    written = (outcomes[0].completions if goal == "known" else outcomes[0].continuations)[0]
    assert written in seen
    assert "overall" in capsys.readouterr().out
    main([*map(str, runs), *options])
    assert len(judge.requests) == 6 * count  # all answers are there


def test_runs_of_other_stories_are_not_compared(runs, judge: ChatServer, tmp_path: Path, capsys) -> None:
    other = runs[1].parent / "other"
    other.mkdir()
    content = json.loads((runs[1] / "outcome.json").read_text())
    content["settings"]["data_seed"] += 1
    (other / "outcome.json").write_text(json.dumps(content))
    with pytest.raises(SystemExit, match="2"):
        main([str(runs[0]), str(other), "--judge", "local", "--base_url", judge.url])
    assert "have completed other stories" in capsys.readouterr().err
    assert not judge.requests


def test_a_folder_without_a_finished_run_is_named(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), str(tmp_path), "--judge", "local"])
    assert f"{tmp_path} is no finished run" in capsys.readouterr().err
