"""From finished runs to the card of a task, its results, its checkpoint, and the table that is printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from transformers import AutoModelForMaskedLM, AutoTokenizer

from hf_mech.hub import Results, check_folder
from hf_mech.hub.push import prepare_checkpoint
from tests.training.commands import printed_by
from tests.training.formal_languages.small import SMALL, outcome_of, run_of
from training.engine.card import render_blocks
from training.formal_languages.experiment import EXPERIMENT
from training.formal_languages.report import card, choose
from training.formal_languages.run import RunOutcome
from training.formal_languages.settings import Run
from training.formal_languages.tables import LONGEST, SCORE, table1, taught_table

TINY = SMALL | {"steps": 6}
SIZES = [part for name, value in TINY.items() for part in (f"--{name}", str(value))]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Tiny runs in two calls, of which the card holds both: the runs' folder, the card, and what the second printed.

    The second one pushes, to the folder `pushed` beside that of the runs.
    """
    root = tmp_path_factory.mktemp("report")
    folders = ["--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards"), "--jobs", "1"]
    common = ["--task", "reverse_string", *SIZES, *folders]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.formal_languages.report.figures_of", lambda *arguments: {})  # the second call draws
        printed_by(EXPERIMENT, *common, "--model", "stack", "--seeds", "0..1", "--encoding", "none,alibi")

    def prepare(model: Any, repo_id: str, **how: Any) -> None:
        prepare_checkpoint(model, root / "pushed" / repo_id, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.engine.card.push_checkpoint", prepare)
        pushing = ["--push_to_hub", "--hub_user", "me"]
        printed = printed_by(EXPERIMENT, *common, "--model", "vanilla,stack_rnn", "--layout", "all", *pushing)
    return root / "runs", root / "cards" / "stack-reverse-string", printed


@pytest.fixture(scope="module")
def outcomes(finished: tuple[Path, Path, str]) -> Mapping[Path, RunOutcome]:
    """The outcomes by folder."""
    files = sorted(finished[0].glob("*/outcome.json"))
    return {file.parent: EXPERIMENT.load(file.parent) for file in files}


def test_the_card_is_whole(finished: tuple[Path, Path, str]):
    _, card, _ = finished
    check_folder(card)
    text = yaml.safe_load((card / "card.yaml").read_text())
    pictures = {"accuracy_by_length.png", "encodings_by_length.png", "stack_attention.png"}
    assert {path.name for path in card.glob("*.png")} == set(text["captions"]) == pictures
    for name in pictures:
        assert (card / name).read_bytes().startswith(b"\x89PNG")
    assert "Figure 2 of the paper" in text["captions"]["stack_attention.png"]
    assert text["summary"].count("| mlm | stack num_hidden_layers=1 max_train_length=8 | none |") == 1


def test_the_results_are_those_of_the_runs(finished: tuple[Path, Path, str], outcomes: Mapping[Path, RunOutcome]):
    _, card, _ = finished
    results = Results.load(card / "results.json").results
    scores = {
        (m.setting["layout"], m.setting["model"], m.setting["encoding"]): m
        for m in results
        if m.metric == "token_accuracy"
    }
    assert len(outcomes) == 7
    for place, measured in scores.items():
        runs = {outcome.settings.seed: outcome for outcome in outcomes.values() if _place(outcome) == place}
        assert measured.values == [runs[seed].accuracy for seed in sorted(runs)]
        assert measured.setting["seeds"] == sorted(runs)
        assert measured.setting["steps"] == TINY["steps"]
    assert set(scores) == {
        ("mlm", "stack", "none"),
        ("mlm", "stack", "alibi"),
        ("mlm", "vanilla", "none"),
        ("alm", "vanilla", "none"),
        ("mlm", "stack_rnn", "none"),
    }
    lengths = json.loads((card / "accuracy_by_length.json").read_text())
    assert [entry["setting"] for entry in lengths] == [m.setting for m in results if m.metric == "token_accuracy"]
    for entry in lengths:
        assert list(entry["accuracy"]) == [str(length) for length in range(1, 101)]


def _place(outcome: RunOutcome) -> tuple[str, str, str]:
    run = outcome.settings
    return run.layout, run.model, run.encoding


def test_the_card_says_who_began_anew():
    run = run_of("stack_manipulation", model="vanilla", learned_loss=0.01)
    once = outcome_of(run, restarts=2)
    never, learned = replace(once, restarts=0), replace(once, losses=[1.0, 0.001, 0.02])
    assert "drew their weights anew" not in _summary(never)
    said = _summary(never, once, learned)
    assert "2 of the 3 runs drew their weights anew" in said
    assert "1 of them then did" in said


def test_the_card_speaks_of_vanilla_models_only_if_there_are_some():
    runs = [run_of("reverse_string", model=model) for model in ("vanilla", "rnn")]
    vanilla, rnn = map(outcome_of, runs)
    assert "beside the same transformers without a stack. Trained on" in _summary(vanilla, rnn)
    assert 'load_dataset("hf_mech/formal_languages", "reverse_string")`. Trained on' in _summary(rnn)


@pytest.mark.parametrize("task", ["reverse_string", "parity_check"])
def test_the_card_says_on_what_the_settings_of_taught_models_were_chosen(task: str):
    place = {"task": task, "layout": "mlm", "model": "rnn", "encoding": "none"}
    said = _summary(outcome_of(Run.of("taught", {"max_test_length": 100}, **place, seed=0)))
    assert ("chosen on the seeds 20 to 22" in said) == (task == "reverse_string")
    assert ("nothing was chosen for this one" in said) == (task == "parity_check")


@pytest.mark.parametrize(
    ("task", "layouts", "says"),
    [
        ("solve_equation", "mlm,alm", "on the token alone (`stack_actions_from`);"),
        ("modular_arithmetic", "mlm,alm", "on the token alone (`stack_actions_from`) where the layout is `alm`;"),
        ("modular_arithmetic", "mlm", ""),
    ],
)
def test_the_card_says_where_the_actions_depend_on_the_token(
    task: str, layouts: str, says: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("training.formal_languages.report.choose", lambda outcomes: None)  # nothing is trained here
    place = {"task": task, "model": "recurrent_stack", "encoding": "none", "seed": 0}
    runs = [Run.of("taught", {"max_test_length": 100}, **place, layout=layout) for layout in layouts.split(",")]
    said = _summary(*map(outcome_of, runs))
    assert says in said
    assert ("token alone" in said) == bool(says)


def test_the_card_of_the_preset_even_says_how_the_actions_begin(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("training.formal_languages.report.choose", lambda outcomes: None)  # nothing is trained here
    place = {"task": "reverse_string", "model": "recurrent_stack", "encoding": "none", "seed": 0}
    runs = [Run.of("even", {"max_test_length": 100}, **place, layout=layout) for layout in ("mlm", "alm")]
    said = _summary(*map(outcome_of, runs))
    assert "preset `even`" in said
    assert "on the token alone (`stack_actions_from`) where the layout is `mlm`;" in said
    assert "every token begins with the same probability of each action" in said
    assert "chosen on the seeds 20 to 29, 40 to 42, 100, 200 to 219, 230 to 239 and 902" in said
    assert "makes them certain (`entropy`); recurrent values are read with noise" in said


def _summary(*outcomes: RunOutcome) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.formal_languages.report.figures_of", lambda *arguments: {})
        made = card({Path(str(place)): own for place, own in enumerate(outcomes)})
    assert made.checkpoint is None  # of no vanilla transformer
    text = render_blocks(EXPERIMENT.folder / "card.md", {"name": made.name, **made.text})
    return " ".join(text["summary"].split())


def test_the_checkpoint_is_chosen_without_the_test_lengths(outcomes: Mapping[Path, RunOutcome]):
    chosen = choose(outcomes)
    assert chosen is not None
    assert outcomes[chosen].settings.model == "stack"
    perfect = {str(length): 1.0 for length in range(41, 101)}
    for folder, outcome in outcomes.items():
        better = replace(outcome, accuracy_by_length=outcome.accuracy_by_length | perfect)
        assert choose({**outcomes, folder: better}) == chosen
    assert choose({f: o for f, o in outcomes.items() if o.settings.model != "stack"}) is None


def test_the_saved_checkpoint_answers(finished: tuple[Path, Path, str]):
    runs, _, _ = finished
    folder = runs / "stack-reverse-string"
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    text = tokenizer("a b b [MASK] [MASK] [MASK]", return_tensors="pt")
    output = model(**text, output_stack_attentions=True)
    assert output.logits.shape == (1, 7, len(tokenizer))
    assert len(output.stack_attentions) == TINY["num_hidden_layers"]
    assert (folder / "modeling_stack_roberta.py").is_file()


def test_what_is_pushed(finished: tuple[Path, Path, str]):
    runs, _, _ = finished
    (pushed,) = (runs.parent / "pushed").glob("*/*")
    assert pushed.match("me/stack-reverse-string")
    files = {path.name for path in pushed.iterdir()}
    assert {"model.safetensors", "tokenizer.json", "README.md", "results.json", "accuracy_by_length.json"} <= files
    assert {"stack_attention.png", "modeling_stack_roberta.py", "stack_attention.py"} <= files


def test_the_table_is_printed(finished: tuple[Path, Path, str]):
    _, _, printed = finished
    rows = [line for line in printed.splitlines() if "reverse_string" in line]
    assert len(rows) == 5
    # A model of one layer is not the paper's, and strings of up to 8 symbols are not its task.
    assert not any(figure in printed for figure in ("54.8 ± 0.0", "81.0 ± 0.8", "100.0 ± 0.0"))
    assert any("stack_rnn" in row and "max_train_length 8" in row for row in rows)


@pytest.mark.slow
def test_the_card_and_the_table_of_taught_models(tmp_path: Path):
    """The recurrent stack goes with the card; no figure of the paper stands beside what was taught more."""
    folders = ["--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards"), "--jobs", "1"]
    asked = ["--task", "modular_arithmetic", "--preset", "taught", "--seeds", "0", "--max_test_length", "150"]
    printed_by(EXPERIMENT, *asked, *SIZES, *folders, "--model", "recurrent_stack,stack,vanilla")
    folder = tmp_path / "cards" / "stack-modular-arithmetic-taught"
    check_folder(folder)
    results = Results.load(folder / "results.json").results
    assert all(entry.paper is None for entry in results)
    scores = {entry.setting["model"]: entry.mean for entry in results if entry.metric == SCORE}
    longest = {entry.setting["model"]: entry.mean for entry in results if entry.metric == LONGEST}
    assert scores.keys() == longest.keys() == {"recurrent_stack", "stack", "vanilla"}
    (row,) = taught_table(tmp_path / "cards").rows
    shown = [f"{100 * value:.1f}" for value in (scores["recurrent_stack"], longest["recurrent_stack"], scores["stack"])]
    assert row[:2] == ["modular_arithmetic", "mlm"]
    assert [figure.split(" ")[0] for figure in (row[2], *row[4:6])] == shown
    assert row[3] == f"{int(scores['recurrent_stack'] >= 0.98)} of 1"
    text = yaml.safe_load((folder / "card.yaml").read_text())
    assert "recurrent_stack, mlm, encoding none, seed 0" in text["summary"].replace("\n", " ")
    assert "by the nesting of the expression" in text["summary"]
    assert not table1(tmp_path / "cards").rows
