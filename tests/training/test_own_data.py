"""Every experiment that takes a data set of the user's trains on one, and refuses one that does not fit at once."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from hf_mech.hub import Results, check_folder
from tests.training.cases import CASES, Case, reset_process
from tests.training.commands import printed_by
from training.engine import main
from training.engine.runner import claim


def _pairs(number: int) -> dict[str, Any]:
    words = [f"w{(number + step) % 7}" for step in range(3)]
    return {"prompt": " ".join(words), "completion": " ".join(reversed(words))}


def _traces(number: int) -> dict[str, Any]:
    light = [{"name": "switch", "arguments": ["on" if (number + step) % 2 else "off"]} for step in range(4)]
    return {"actions": [*light, light[-1]], "labels": [0, 0, 0, 0, 1]}


def _texts(number: int) -> dict[str, Any]:
    return {"text": f"Once there were {number} cats. They sat. They slept. They ate. They ran. They were happy. " * 3}


def _steps(number: int) -> dict[str, Any]:
    """A step of an episode of four, with the observations and the actions of CartPole-v1."""
    episode, step = divmod(number, 4)
    side = (-1) ** episode
    return {
        "episode": f"play {episode}",
        "observation": [0.1 * step, side, 0, 0],
        "action": [int(side > 0)],
        "reward": 1,
    }


def _reversed(number: int) -> dict[str, Any]:
    """Up to four symbols, of which none is white space."""
    text = f"{number:b}"[-4:].replace("0", "a").replace("1", "b")
    return {"inputs": text, "outputs": text[::-1]}


def _judged(number: int) -> dict[str, Any]:
    """Text with a rule; a text has A if there is a cat."""
    text, rule = ("a cat and a dog", "a dog")[number % 2], ("A", "( A or not A )")[number % 3 == 0]
    return {"prompt": f"{text} : {rule}", "label": int(number % 2 == 0 or number % 3 == 0)}


SMALL = ("--layers", "1", "--hidden", "16", "--heads", "2")
STORY = (*SMALL, "--inner", "16", "--head_width", "4", "--vocabulary", "300", "--eval_stories", "2", "--steps", "4")
PLAYER = (*SMALL, "--context", "2", "--batch_size", "4", "--steps", "60", "--mixed_precision", "no")
STORY += ("--prefix_tokens", "4", "--suffix_tokens", "4", "--num_rollouts", "0", "--batch_size", "2")
ROWS: dict[str, tuple[Callable[[int], dict[str, Any]], tuple[str, ...], set[str]]] = {
    "templatic": (
        _pairs,
        ("--model", "nano_gpt", *SMALL, "--steps", "4", "--batch_size", "2"),
        {"exact_match on train", "exact_match on test"},
    ),
    "nested_functions": (
        _pairs,
        ("--model", "gpt2", *SMALL, "--steps", "4", "--batch_size", "2"),
        {"exact_match on train", "exact_match on test"},
    ),
    "stories": (_texts, ("--model", "bst", *STORY), {"held_out_loss", "exact_match"}),
    "strips": (
        _traces,
        ("--domain", "own", "--num_propositions", "2", "--num_seeds", "3", "--preset", "two_part_code"),
        {"train", "test"},
    ),
    "formal_languages": (
        _reversed,
        ("--task", "own", "--steps", "4", "--batch_size", "4", "--num_hidden_layers", "1"),
        {"accuracy"},
    ),
    "belief_state": (
        _pairs,
        (
            "--model",
            "bst",
            "--seeds",
            "0",
            *SMALL,
            "--backward_layers",
            "1",
            "--head_width",
            "16",
            "--steps",
            "4",
            "--batch_size",
            "4",
        ),
        {"exact_match"},
    ),
    "semi_formal": (
        _judged,
        ("--model", "semi_formal", "--seeds", "0", "--steps", "4", "--batch_size", "2", "--hidden", "8"),
        {"accuracy", "accuracy at temperature 0"},
    ),
    "msat": (_steps, PLAYER, {"held_out_loss", "action_accuracy"}),
}


def write_rows(folder: Path, name: str, count: int = 40) -> Path:
    file = folder / "mine.jsonl"
    file.write_text("".join(json.dumps(ROWS[name][0](number)) + "\n" for number in range(count)))
    return file


def folders(tmp_path: Path) -> list[str]:
    return ["--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards"), "--jobs", "1"]


@pytest.mark.parametrize("name", ROWS)
def test_a_run_on_a_file_ends_with_a_card_of_its_own(name: str, tmp_path: Path) -> None:
    _, options, figures = ROWS[name]
    experiment = CASES[name].experiment
    said = printed_by(experiment, *options, "--train_file", str(write_rows(tmp_path, name)), *folders(tmp_path))
    reset_process()
    card = tmp_path / "cards" / f"{experiment.name.replace('_', '-')}-mine"
    assert str(card) in said
    check_folder(card)
    found = Results.load(card / "results.json").results
    assert {entry.metric for entry in found} == figures
    assert {entry.task for entry in found} == {"mine.jsonl"}
    assert (tmp_path / "runs" / card.name / "config.json").is_file()


def test_strips_learns_the_users_domain(tmp_path: Path) -> None:
    """A light that cannot be switched on, or off, twice."""
    file = write_rows(tmp_path, "strips")
    _, options, _ = ROWS["strips"]
    main(CASES["strips"].experiment, [*options, "--train_file", str(file), *folders(tmp_path)])
    reset_process()
    found = {e.metric: e.mean for e in Results.load(tmp_path / "cards" / "strips-mine" / "results.json").results}
    assert found == {"train": 1.0, "test": 1.0}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # datasets leaves a CSV open
@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_csv_parquet_and_folders_are_read_with_columns_of_any_name(kind: str, tmp_path: Path) -> None:
    rows = datasets.Dataset.from_list([{"q": _pairs(n)["prompt"], "a": _pairs(n)["completion"]} for n in range(20)])
    if kind == "csv":
        rows.to_csv(tmp_path / "mine.csv")
    else:
        rows.to_parquet(tmp_path / "data" / "train.parquet" if kind == "folder" else tmp_path / "mine.parquet")
    where = {"dataset_name": str(tmp_path / "data")} if kind == "folder" else {"train_file": f"{tmp_path}/mine.{kind}"}
    given = {**where, "columns": "prompt=q,completion=a"}
    run = CASES["templatic"].experiment.settings.of("cpu", given, task="1_shot_rlw", model="nano_gpt", seed=0)
    run.check_own_data()
    gc.collect()
    splits = run.own_splits()
    assert [rows.column_names for rows in splits.values()] == [["prompt", "completion"]] * 2
    assert (len(splits["train"]), len(splits["test"])) == (18, 2)
    assert not {*splits["train"]["prompt"]} - {_pairs(n)["prompt"] for n in range(20)}


WRONG = (
    ("templatic", ["--test_file", "x"], "--test_file goes with --dataset_name or --train_file."),
    ("templatic", ["--train_file", "nowhere.jsonl"], "nowhere.jsonl cannot be read as a data set"),
    ("templatic", ["--train_file", "a.txt"], "all of one kind, .jsonl, .json, .csv, .parquet; got a.txt"),
    ("templatic", ["--train_file", "{}", "--columns", "prompt=question"], "has no column question: expected question"),
    ("templatic", ["--train_file", "{}", "--columns", "answer=a"], "--columns names prompt, completion, got answer"),
    ("templatic", ["--train_file", "{}", "--dataset_name", "x"], "not both"),
    ("templatic", ["--train_file", "{}", "--num_train", "3"], "--num_train is of the generated data"),
    ("templatic", ["--train_file", "{}", "--task", "1_shot_eng"], "--task is of the generated data"),
    ("stories", ["--train_file", "{}", "--columns", "text=prompt"], None),
    ("strips", ["--domain", "own", "--num_propositions", "2", "--train_file", "{}"], "has no column actions"),
    ("strips", ["--domain", "simple", "--train_file", "{}"], "--domain own goes with --dataset_name or --train_file"),
    ("formal_languages", ["--task", "reverse_string", "--train_file", "{}"], "--task own goes with --dataset_name"),
    (
        "formal_languages",
        ["--task", "own", "--model", "rnn", "--encoding", "none", "--train_file", "{}"],
        "trains transformers",
    ),
    (
        "formal_languages",
        ["--task", "own", "--partial_results", "--train_file", "{}"],
        "--partial_results is of the generated data",
    ),
    ("formal_languages", ["--task", "own", "--train_file", "{}"], "has no column inputs"),
    (
        "belief_state",
        ["--model", "fim", "--train_file", "{}"],
        "Your data trains --model bst, forward_only, next_latent, multi_token, joint_multi_token, bst_without",
    ),
    ("belief_state", ["--preset", "probes", "--train_file", "{}"], "a preset without probes"),
    ("semi_formal", ["--train_file", "{}"], "has no column label"),
    ("semi_formal", ["--train_file", "{}", "--columns", "label=completion"], "must hold values of type int, got 'w2"),
    ("msat", ["--train_file", "{}"], "has no column episode"),
    ("msat", ["--environment", "CartPole-v1"], "--environment goes with --dataset_name or --train_file"),
    ("nested_functions", ["--model", "dat", "--train_file", "{}"], "the compiled program is not trained: --model gpt2"),
)


@pytest.mark.parametrize(("name", "options", "message"), WRONG)
def test_data_that_does_not_fit_is_refused(
    name: str, options: list[str], message: str | None, tmp_path: Path, capsys: Any
) -> None:
    file = write_rows(tmp_path, "templatic")
    arguments = [option.format(file) for option in options]
    usual = {"templatic": ["--model", "nano_gpt"], "stories": ["--model", "bst"]}.get(name, [])
    line = [*usual, *arguments, *folders(tmp_path), "--dry_run"]
    if message is None:
        main(CASES[name].experiment, line)
        return
    with pytest.raises(SystemExit) as left:
        main(CASES[name].experiment, line)
    said = capsys.readouterr().err
    assert (left.value.code, said.count("\n")) == (2, 1)
    assert message in said
    assert not (tmp_path / "runs").exists()


def test_a_run_goes_on_whose_settings_had_no_data_of_the_users_yet(tmp_path: Path) -> None:
    run = CASES["msat"].settings(tmp_path)
    before = {name: value for name, value in run.to_dict().items() if name not in ("train_file", "environment")}
    (tmp_path / "run.json").write_text(json.dumps(before))
    claim(tmp_path, run)
    (tmp_path / "run.json").write_text(json.dumps(before | {"train_file": "x"}))
    with pytest.raises(FileExistsError, match="train_file x"):
        claim(tmp_path, run)


def test_labels_that_are_none_are_refused_with_their_row(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"actions": ["a"], "labels": [0]}\n{"actions": ["a", "b"], "labels": [2, 0]}\n' * 3)
    with pytest.raises(SystemExit):
        main(CASES["strips"].experiment, [*ROWS["strips"][1], "--train_file", str(file), *folders(tmp_path)])
    assert "expected as many labels 0 and 1 as actions" in capsys.readouterr().err


def test_a_language_model_trains_on_json_lines(tmp_path: Path) -> None:
    file = write_rows(tmp_path, "stories", 60)
    lines = [part for split in ("train", "validation", "test") for part in (f"--{split}_file", str(file))]
    case: Case = CASES["language_models"]
    arguments = [*lines, *case.arguments[6:], "--max_train_characters", "4000"]
    main(case.experiment, [*arguments, *folders(tmp_path)])
    assert [path.name for path in (tmp_path / "cards").glob("*/results.json")] == ["results.json"]
