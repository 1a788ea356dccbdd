"""From finished runs to the card, its checkpoint, and Table 3 with ours in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from hf_mech.hub import Measurement, PaperFigure, Results, check_folder, measurement
from hf_mech.hub.push import prepare_checkpoint
from hf_mech.programs.templatic.tasks import SPLITS
from tests.training.commands import printed_by
from tests.training.templatic.small import made, run_of, small
from training.templatic.experiment import EXPERIMENT
from training.templatic.models import save_model
from training.templatic.report import TABLES, _checkpoint, choose, measurements, summary
from training.templatic.report import results as tables
from training.templatic.run import RunOutcome
from training.templatic.settings import Run

ROOT = Path(__file__).parents[3]
TINY = [
    *("--steps", "6", "--batch_size", "4", "--layers", "1", "--hidden", "16", "--filter", "16", "--state", "4"),
    *("--eval_prompts", "2", "--num_train", "100", "--num_eval", "4", "--jobs", "1"),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Tiny runs of two models: the folder of runs/, cards/ and pushed/, and what the command printed."""
    root = tmp_path_factory.mktemp("report")

    def prepare(model: Any, repo_id: str, **how: Any) -> None:
        prepare_checkpoint(model, root / "pushed" / repo_id, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.engine.card.push_checkpoint", prepare)
        pushing = ["--push_to_hub", "--hub_user", "me"]
        return root, printed_by(EXPERIMENT, "--model", "cnn,nano_gpt", *TINY, *where(root), *pushing)


def where(root: Path) -> list[str]:
    return ["--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards")]


def outcome_of(run: Run, right: dict[str, int] | None = None) -> RunOutcome:
    """An outcome of the run, as if it had been trained, with ten prompts measured of each split."""
    usual: dict[str, Any] = {
        **{"origin": {}, "seconds": 1.0, "seconds_of_test": 0.1, "parameters": 7, "vocabulary": 9},
        **{"training_prompts": 8, "steps": run.steps, "losses": [1.0, 0.5]},
    }
    return RunOutcome(
        **usual,
        settings=run,
        right=dict.fromkeys(SPLITS, 5) | (right or {}),
        measured=dict.fromkeys(SPLITS, 10),
    )


# --------------------------------------------------------------------------------------------------------------- card


def test_from_the_command_to_the_card(finished: tuple[Path, str]):
    root, printed = finished
    assert "nano_gpt" in printed
    card = root / "cards" / "templatic-baselines"
    check_folder(card)
    results = Results.load(card / "results.json")
    exact = [entry for entry in results.results if entry.metric == "exact_match"]
    assert len(exact) == 2 * len(SPLITS)
    assert all(entry.paper is None for entry in exact)  # these are other models than the paper's
    assert {entry.setting["seeds"][0] for entry in exact} == {0}
    assert tables(root / "cards")["templatic-table-3"] in (card / "README.md").read_text()
    assert {path.name for path in card.glob("*.png")} == {"exact_match_by_split.png", "training_loss.png"}


@pytest.mark.slow
def test_finished_runs_stay_in_the_card(finished: tuple[Path, str]):
    root, _ = finished
    printed_by(EXPERIMENT, "--model", "nano_gpt", "--seeds", "1", *TINY, *where(root))
    card = root / "cards" / "templatic-baselines"
    results = Results.load(card / "results.json").results
    assert {entry.setting["model"] for entry in results} == {"cnn", "nano_gpt"}
    gpt = [entry for entry in results if entry.setting["model"] == "nano_gpt"]
    assert {entry.n for entry in gpt} == {2}
    assert gpt[0].setting["seeds"] == [0, 1]
    check_folder(card)


@pytest.mark.parametrize(
    ("departures", "has"),
    [({}, True), ({"steps": 7}, True), ({"hidden": 32}, False), ({"num_eval": 8}, False), ({"data_seed": 1}, False)],
)
def test_the_paper_stands_beside_its_own_models_and_task(departures: dict[str, Any], has: bool):
    measured = {m.setting.get("split"): m for m in measurements([outcome_of(run_of("mamba", **departures))])}
    paper = measured["dev"].paper
    assert (paper is not None) is has
    assert paper is None or (paper.mean, paper.where) == (0.9136, "Table 3")
    assert measured["test"].paper is None  # a split that the paper does not report


# --------------------------------------------------------------------------------------------------------- checkpoint


def test_the_checkpoint_is_the_best_on_dev_of_transformers_own_models():
    names = ("cnn", "lstm_attn", "nano_gpt_attn_only", "nano_gpt", "mamba", "transformer")
    scores = {
        **{"cnn": {"dev": 10}, "lstm_attn": {"dev": 10}, "nano_gpt_attn_only": {"dev": 10}},
        **{"nano_gpt": {"dev": 6}, "mamba": {"dev": 7}, "transformer": {"dev": 2, "test": 10, "train": 10}},
    }
    outcomes = {Path(name): outcome_of(run_of(name), scores[name]) for name in names}
    assert choose(outcomes) == Path("mamba")
    assert choose({folder: outcomes[folder] for folder in map(Path, names[:3])}) is None


def test_the_saved_checkpoint_is_that_of_the_run(finished: tuple[Path, str]):
    root, _ = finished
    folder = root / "runs" / "templatic-baselines"
    readme = (root / "cards" / "templatic-baselines" / "README.md").read_text()
    named = re.search(r"The checkpoint is `nano_gpt`, seed (\d): of transformers' own models", readme)
    assert named is not None
    (run,) = (root / "runs").glob(f"1_shot_rlw-nano_gpt-*-seed{named[1]}")
    saved, own = (load_file(path / "model.safetensors") for path in (folder, run / "model"))
    assert saved.keys() == own.keys()
    assert all(torch.equal(saved[name], tensor) for name, tensor in own.items())
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer("Q aa bb A", add_special_tokens=False, return_tensors="pt")
    said = model.generate(**prompt, max_new_tokens=3, do_sample=False)
    assert said.shape[1] <= prompt["input_ids"].shape[1] + 3
    assert len(tokenizer) == model.config.vocab_size


@pytest.mark.parametrize("name", ["transformer", "nano_gpt", "mamba"])
def test_a_checkpoint_is_the_model_that_was_trained(tokenizer: PreTrainedTokenizerFast, tmp_path: Path, name: str):
    model = made(tokenizer, name)
    save_model(model, tokenizer, tmp_path)
    checkpoint = _checkpoint(small(name), tmp_path)
    assert type(checkpoint.model) is type(model)
    assert type(AutoModel.from_pretrained(tmp_path)).__module__.startswith("transformers.models")
    ids = torch.randint(4, len(tokenizer), (2, 9))
    with torch.no_grad():
        assert torch.equal(checkpoint.model(ids).logits, model(ids).logits)
    assert checkpoint.processing_class("Q a A")["input_ids"] == tokenizer("Q a A")["input_ids"]


def test_what_is_pushed(finished: tuple[Path, str]):
    root, _ = finished
    (pushed,) = (root / "pushed").glob("*/*")
    assert pushed.match("me/templatic-baselines")
    files = {path.name for path in pushed.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "README.md", "results.json"} <= files
    assert {"exact_match_by_split.png", "training_loss.png"} <= files


def test_without_a_model_of_transformers_there_is_no_checkpoint(finished: tuple[Path, str], tmp_path: Path):
    (run,) = (finished[0] / "runs").glob("1_shot_rlw-cnn-*")
    shutil.copytree(run, tmp_path / "runs" / run.name)
    printed_by(EXPERIMENT, "--model", "cnn", *TINY, *where(tmp_path))
    check_folder(tmp_path / "cards" / "templatic-baselines")
    assert "The checkpoint is" not in (tmp_path / "cards" / "templatic-baselines" / "README.md").read_text()
    assert not (tmp_path / "runs" / "templatic-baselines").exists()


# -------------------------------------------------------------------------------------------------------------- table


def test_the_table_has_ours_above_the_papers(tmp_path: Path):
    assert tables(tmp_path)["templatic-table-3"] == ""

    def entry(model: str, split: str, values: list[float], paper: float | None = None) -> Measurement:
        setting = {"model": model, "preset": "cpu", "steps_done": [3000, 3000][: len(values)], "split": split}
        figure = None if paper is None else PaperFigure(paper, where="Table 3")
        return measurement("hf_mech/templatic_generation", "1_shot_rlw", setting, "exact_match", values, figure)

    entries = [
        entry("mamba", "test", [0.5]),
        entry("nano_gpt", "train", [0.9, 1.0], 0.9997),
        entry("nano_gpt", "ood_cons_count_7", [0.0, 0.0], 0.2247),
    ]
    folder = tmp_path / "templatic-baselines"
    folder.mkdir()
    Results.collect("templatic-baselines", seconds=1.0, results=entries).save(folder / "results.json")
    _, _, *rows = tables(tmp_path)["templatic-table-3"].splitlines()
    assert rows == [
        "| nano_gpt | 95.0 ± 5.0 |  |  |  |  |  |  |  |  |  | 0.0 |  | 3,000 |",
        "| *in the paper* | 100.0 |  |  |  |  |  |  |  |  |  | 22.5 |  |  |",
        "| mamba |  |  | 50.0 |  |  |  |  |  |  |  |  |  | 3,000 |",
    ]


def test_the_summary_is_of_the_model_that_is_best_on_dev(tmp_path: Path):
    assert summary(tmp_path) == []
    scores = {"mamba": [0.5, 1.0, 1.0], "nano_gpt": [0.9, 0.25, 0.0]}
    entries = [
        measurement("data", "1_shot_single", {"model": model, "split": split}, "exact_match", [value])
        for model, values in scores.items()
        for split, value in zip(("dev", "ood_lexical", "ood_cons_len_7"), values, strict=True)
    ]
    file = tmp_path / TABLES["templatic-single"] / "results.json"
    file.parent.mkdir()
    Results.collect(file.parent.name, seconds=1.0, results=entries).save(file)
    ((name, measured, ours, *_),) = summary(tmp_path)
    assert name.endswith("`1_shot_single`, `nano_gpt`")
    assert (measured, ours) == ("per cent completed exactly, `dev` (lexical; length 7)", "90.0 (25.0; 0.0)")


@pytest.mark.slow
def test_as_a_user_calls_it(tmp_path: Path):
    """Two processes, as a program of its own, and in the GPU's manner."""
    command = [sys.executable, "-m", "training.train_templatic", "--model", "nano_gpt,nano_gpt_attn_only"]
    command += [*TINY, "--preset", "paper", "--mixed_precision", "bf16", "--max_minutes", "5", "--jobs", "2"]
    command += ["--data_workers", "1", "--eval_batch", "50", "--output_dir", "runs", "--cards_dir", "cards"]
    subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    check_folder(tmp_path / "cards" / "templatic-baselines-paper")
