"""Learned baselines of templatic generation: layouts, the six models, resumed runs, what counts as right, the card."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoTokenizer, GPT2LMHeadModel, HfArgumentParser, PreTrainedModel

from hf_mech.hub import PaperFigure, Results, check_folder, measurement
from hf_mech.templatic.grammar import generate
from hf_mech.templatic.tasks import SPLITS
from hf_mech.templatic.tokenization import word_tokenizer, words_of
from tests.training.conftest import TRAINING

MODELS = ("transformer", "nano_gpt", "nano_gpt_attn_only", "cnn", "lstm_attn", "mamba")
SMALL: dict[str, Any] = {
    **{"steps": 12, "batch_size": 4, "layers": 1, "hidden": 16, "filter": 16, "state": 4, "warmup_steps": 2},
    **{"eval_prompts": 3, "data": '{"num_train": 200, "num_eval": 8}'},
}
TINY = [
    *("--steps", "6", "--batch_size", "4", "--layers", "1", "--hidden", "16", "--filter", "16", "--state", "4"),
    *("--eval_prompts", "2", "--num_train", "100", "--num_eval", "4", "--jobs", "1"),
]


@pytest.fixture(scope="module")
def data(scripts: Path) -> ModuleType:
    return importlib.import_module("templatic_data")


@pytest.fixture(scope="module")
def models(scripts: Path) -> ModuleType:
    return importlib.import_module("templatic_models")


@pytest.fixture(scope="module")
def runs(scripts: Path) -> ModuleType:
    return importlib.import_module("templatic_run")


@pytest.fixture(scope="module")
def table(scripts: Path) -> ModuleType:
    return importlib.import_module("templatic_table")


@pytest.fixture(scope="module")
def script(scripts: Path) -> ModuleType:
    return importlib.import_module("train_templatic")


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The data sets of these tests go to a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))
        yield


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """Prompts of many lengths, and their completions."""
    examples = list(generate("1_shot_rlw", "train", seed=3, stop=60))
    return {"prompt": [e.prompt for e in examples], "completion": [e.completion for e in examples]}


@pytest.fixture(scope="module")
def tokenizer(rows: dict[str, list[str]]) -> Any:
    return word_tokenizer(words_of(rows["prompt"] + rows["completion"]))


def small(runs: ModuleType, model: str = "nano_gpt", **instead: Any) -> Any:
    return runs.Run.of("1_shot_rlw", model, 0, "cpu", **SMALL | instead)


def call(script: ModuleType, *arguments: str) -> str:
    """What the script prints."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr("sys.argv", ["train_templatic.py", *arguments])
        script.main()
    return printed.getvalue()


# ------------------------------------------------------------------------------------------------------- the tokenizer


def test_words_are_tokens_and_strangers_unknown(tokenizer: Any, rows: dict[str, list[str]], tmp_path: Path):
    for prompt, completion in zip(*rows.values(), strict=True):
        ids = tokenizer(prompt, completion)["input_ids"]
        assert tokenizer.decode(ids) == f"{prompt} {completion} <eos>"
        assert len(ids) == len(prompt.split()) + len(completion.split()) + 1
    assert tokenizer("Q qqq A")["input_ids"][1] == tokenizer.unk_token_id == 1
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again(rows["prompt"], padding=True)["input_ids"] == tokenizer(rows["prompt"], padding=True)["input_ids"]


@pytest.mark.parametrize(
    ("words", "message"), [([], "no words"), (["a b"], "'a b'"), (["<eos>"], "<eos>"), (["a", "b", "a"], "2 differ")]
)
def test_a_vocabulary_that_is_none(words: list[str], message: str):
    with pytest.raises(ValueError, match=message):
        word_tokenizer(words)


# ------------------------------------------------------------------------------------------------------------- batches


def test_an_epoch_has_every_prompt_once_by_length(data: ModuleType):
    lengths = np.random.default_rng(0).integers(5, 90, 1_003)
    batches = data.batches_of_epoch(lengths, 4, seed=1, epoch=2)
    assert batches.shape == (250, 4)
    assert len(np.unique(batches)) == 1_000
    assert np.array_equal(batches, data.batches_of_epoch(lengths, 4, seed=1, epoch=2))
    assert not np.array_equal(batches, data.batches_of_epoch(lengths, 4, seed=1, epoch=3))
    spread = np.ptp(lengths[batches], axis=1)
    assert spread.mean() < 5 < np.ptp(lengths[batches].reshape(-1), axis=0)  # little padding
    assert abs(np.corrcoef(lengths[batches].mean(1), np.arange(250))[0, 1]) < 0.2  # and no order in time
    with pytest.raises(ValueError, match=r"batch of 4 needs .* got 3"):
        data.batches_of_epoch(lengths[:3], 4, seed=0, epoch=0)


@pytest.mark.parametrize("model", MODELS)
def test_what_a_model_is_taught(data: ModuleType, tokenizer: Any, rows: dict[str, list[str]], model: str):
    """The labels are the completions with the end behind them, and nothing of the prompt."""
    batch = data.Layout(tokenizer, model).training({name: texts[:5] for name, texts in rows.items()})
    for row in range(5):
        labels = batch["labels"][row]
        assert tokenizer.decode(labels[labels != -100]) == f"{rows['completion'][row]} <eos>"
        text = tokenizer.decode(batch["input_ids"][row][batch["attention_mask"][row].bool()])
        if model in ("transformer", "cnn", "lstm_attn"):
            assert text == rows["prompt"][row]
        else:
            assert text == f"{rows['prompt'][row]} {rows['completion'][row]} <eos>"
            # The label of a column is that column's token; the model shifts them by one.
            kept = batch["input_ids"][row][-batch.get("logits_to_keep", 0) :]
            assert torch.equal(labels[labels != -100], kept[labels != -100])
            assert model != "mamba" or batch["attention_mask"][row, 0] == 1


# -------------------------------------------------------------------------------------------------------------- models


def made(runs: ModuleType, models: ModuleType, tokenizer: Any, name: str, **instead: Any) -> nn.Module:
    torch.manual_seed(0)
    model = models.make_model(small(runs, name, **{"layers": 2, "initializer_range": 0.5} | instead), tokenizer)
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_is_its_rows_and_generation_is_the_forward(
    data: ModuleType, runs: ModuleType, models: ModuleType, tokenizer: Any, rows: dict[str, list[str]], name: str
):
    """Padding changes neither loss nor answer; each generated word is what the forward finds most probable there."""
    model, layout = made(runs, models, tokenizer, name), data.Layout(tokenizer, name)
    batch = layout.training(rows)
    with torch.no_grad():
        whole = model(**batch).loss
        count, total = 0, 0.0
        for row in range(len(rows["prompt"])):
            one = layout.training({key: texts[row : row + 1] for key, texts in rows.items()})
            words = int((one["labels"] != -100).sum())
            count, total = count + words, total + words * float(model(**one).loss)
        torch.testing.assert_close(float(whole), total / count, rtol=1e-4, atol=0)

        said = models.answers(model, layout.prompts(rows), 9)
        assert said.shape == (60, 9)
        known = [[t for t in row if t != tokenizer.pad_token_id] for row in said.tolist()]
        answers = [tokenizer.decode([t for t in row if t != tokenizer.eos_token_id]) for row in known]
        lengths = [row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else 9 for row in known]
        for row in range(0, 60, 7):
            again = layout.training({"prompt": [rows["prompt"][row]], "completion": [answers[row]]})
            shift = name not in ("transformer", "cnn", "lstm_attn")  # a decoder's logits are of the next column's word
            asked = again["labels"][0, shift:] != -100
            forward = model(**again).logits[0, : len(asked)].argmax(-1)[asked][: lengths[row]]
            assert forward.tolist() == said[row, : lengths[row]].tolist()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_one_batch(
    data: ModuleType, runs: ModuleType, models: ModuleType, tokenizer: Any, rows: dict[str, list[str]], name: str
):
    few = {key: texts[:4] for key, texts in rows.items()}
    layout = data.Layout(tokenizer, name)
    model = made(runs, models, tokenizer, name, hidden=32, filter=32, layers=1, initializer_range=0.1).train()
    optimizer, batch = torch.optim.Adam(model.parameters(), lr=1e-2), layout.training(few)
    for _ in range(400 if name == "lstm_attn" else 120):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        unused = [n for n, p in model.named_parameters() if p.grad is None]
        assert not unused
        optimizer.step()
    assert loss.item() < 0.1
    right = list(runs.exact_matches(model.eval(), layout, datasets.Dataset.from_dict(few), 3, torch.device("cpu")))
    assert right == [True] * 4


def test_without_mlps_only_attention_writes_to_the_residual_stream(
    runs: ModuleType, models: ModuleType, tokenizer: Any, tmp_path: Path
):
    with_mlps = made(runs, models, tokenizer, "nano_gpt")
    without = made(runs, models, tokenizer, "nano_gpt_attn_only")
    assert isinstance(without, GPT2LMHeadModel)
    names = {name for name, _ in without.named_parameters()}
    assert names == {n for n, _ in with_mlps.named_parameters() if ".mlp." not in n and ".ln_2." not in n}
    with torch.no_grad():  # GPT-2 itself, if its MLPs say nothing
        with_mlps.load_state_dict(without.state_dict(), strict=False)
        for block in with_mlps.transformer.h:
            block.mlp.c_proj.weight.zero_()
            block.mlp.c_proj.bias.zero_()
        ids = torch.randint(4, len(tokenizer), (2, 9))
        assert torch.equal(without(ids).logits, with_mlps(ids).logits)
        models.save_model(without, tokenizer, tmp_path)
        again = models.AttentionOnlyGPT2LMHeadModel.from_pretrained(tmp_path)
        assert torch.equal(again(ids).logits, without(ids).logits)


def test_the_presets_are_of_table_11_and_12(runs: ModuleType, models: ModuleType, tokenizer: Any):
    def paper(model: str) -> Any:
        return runs.Run.of("1_shot_rlw", model, 0, "paper")

    for name in MODELS:
        run = paper(name)
        assert (run.learning_rate, run.weight_decay, run.dropout, run.steps) == (1e-4, 0, 0, 120_000)
        assert (run.hidden, run.batch_size) == (
            512,
            256 if name in ("nano_gpt", "nano_gpt_attn_only", "mamba") else 128,
        )
        with torch.device("meta"):
            model = models.make_model(run, tokenizer)
        if isinstance(model, PreTrainedModel):
            assert model.config.hidden_size == 512
    with torch.device("meta"):
        gpt, mamba = (models.make_model(paper(name), tokenizer) for name in ("nano_gpt", "mamba"))
        bart, lstm = (models.make_model(paper(name), tokenizer) for name in ("transformer", "lstm_attn"))
    assert (gpt.config.n_layer, gpt.config.n_head, gpt.config.n_inner) == (6, 1, 512)
    assert gpt.transformer.h[0].mlp.c_fc.weight.shape == (512, 512)
    mixer = mamba.backbone.layers[0].mixer
    assert (len(mamba.backbone.layers), mixer.intermediate_size, mixer.ssm_state_size) == (18, 512, 16)
    assert (bart.config.encoder_layers, bart.config.decoder_layers, bart.config.encoder_ffn_dim) == (3, 3, 512)
    assert (lstm.encoder.num_layers, lstm.decoder.num_layers, lstm.encoder.bidirectional) == (3, 3, False)


def test_sizes_that_do_not_fit(runs: ModuleType, models: ModuleType, tokenizer: Any):
    with pytest.raises(ValueError, match="multiple of 16"):
        models.make_model(small(runs, "mamba", filter=24), tokenizer)
    with pytest.raises(ValueError, match="odd"):
        models.make_model(small(runs, "cnn", kernel=4), tokenizer)


# ------------------------------------------------------------------------------------------------------ what is right


class Says(nn.Module):
    """Answers every prompt with the next of its answers."""

    def __init__(self, said: Tensor) -> None:
        super().__init__()
        self.said = said

    def generate(self, input_ids: Tensor, attention_mask: Tensor, max_new_tokens: int) -> Tensor:
        self.said, now = self.said[len(input_ids) :], self.said[: len(input_ids), : max_new_tokens + 1]
        return now


def test_a_completion_is_right_if_all_of_it_is(data: ModuleType, runs: ModuleType):
    tokenizer = word_tokenizer(["Q", "A", "a", "b", "."])
    rows = datasets.Dataset.from_dict({"prompt": ["Q a A"] * 6, "completion": ["a b ."] * 5 + ["a X ."]})
    a, b, stop, eos, unknown = 6, 7, 8, 3, 1
    said = [[a, b, stop, eos], [a, b, stop, b], [b, b, stop, eos], [a, b, eos, 0], [a, stop, eos, 0]]
    model = Says(torch.tensor([[2, *answer] for answer in [*said, [a, unknown, stop, eos]]]))
    layout = data.Layout(tokenizer, "cnn")
    right = list(runs.exact_matches(model, layout, rows, 6, torch.device("cpu")))
    assert right == [True, False, False, False, False, False]


def test_training_accuracy_is_of_what_was_trained_on(data: ModuleType, runs: ModuleType):
    run = small(runs)
    splits = data.load_splits("1_shot_rlw", json.loads(run.data))
    assert list(splits) == list(SPLITS)
    batches = data.TrainingBatches(splits["train"], data.Layout(None, "cnn"), 4, 0)
    seen = {row for step in range(3) for row in batches.indices(step).tolist()}
    chosen = runs.measured_rows(replace(run, eval_prompts=0), splits, batches, 3)
    assert [splits["train"][i] for i in sorted(seen)] == chosen["train"].to_list()
    assert {split: len(rows) for split, rows in chosen.items()} == dict.fromkeys(SPLITS, 8) | {"train": 12}
    few = runs.measured_rows(run, splits, batches, 3)
    assert {len(rows) for rows in few.values()} == {3}
    assert few["test"].to_list() == runs.measured_rows(replace(run, model="cnn"), splits, batches, 9)["test"].to_list()
    assert few["test"].to_list() != runs.measured_rows(replace(run, eval_seed=1), splits, batches, 3)["test"].to_list()


def test_training_batches_go_to_other_processes(data: ModuleType, tokenizer: Any, rows: dict[str, list[str]]):
    """As a DataLoader's workers get them; and the same prompts stand in a step, however one comes to it."""
    batches = data.TrainingBatches(datasets.Dataset.from_dict(rows), data.Layout(tokenizer, "nano_gpt"), 8, 0)
    again = pickle.loads(pickle.dumps(batches))
    for step in (30, 0, 6, 7, 14, 30):  # seven batches an epoch
        epoch, place = divmod(step, 7)
        expected = data.batches_of_epoch(batches.lengths, 8, 0, epoch)[place]
        assert again.indices(step).tolist() == batches.indices(step).tolist() == expected.tolist()
        assert torch.equal(again[step]["input_ids"], batches[step]["input_ids"])


# ---------------------------------------------------------------------------------------------------------------- runs


def untimed(outcome: Any) -> dict[str, Any]:
    """Without times, and without the origin, which a commit between two runs changes."""
    return asdict(outcome) | {"seconds": 0, "seconds_of_test": 0, "origin": {}}


@pytest.mark.parametrize("model", ["nano_gpt", "lstm_attn"])
def test_stopped_and_started_again(runs: ModuleType, tmp_path: Path, model: str):
    run = small(runs, model, dropout=0.2)
    straight = runs.train_run(run, tmp_path / "straight")
    assert straight.steps == 12
    assert straight.losses[-1] < straight.losses[0]
    assert set(straight.exact_match) == set(SPLITS)
    assert runs.train_run(run, tmp_path / "cut", checkpoint_steps=5, stop_at=8) is None
    assert [path.name for path in (tmp_path / "cut").glob("checkpoint-*")] == ["checkpoint-5"]
    assert untimed(runs.train_run(run, tmp_path / "cut", checkpoint_steps=5)) == untimed(straight)
    got, wanted = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("cut", "straight"))
    assert got.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert torch.equal(got[name], tensor), name
    assert not list((tmp_path / "cut").glob("checkpoint-*"))
    assert runs.train_run(run, tmp_path / "cut").seconds > 0  # it is there: not trained again
    with pytest.raises(FileExistsError, match="other settings"):
        runs.train_run(replace(run, hidden=32), tmp_path / "cut")


def test_a_time_limit_ends_the_training_and_not_the_run(runs: ModuleType, tmp_path: Path):
    run = small(runs, steps=100_000, max_minutes=0.02)
    outcome = runs.train_run(run, tmp_path)
    assert 0 < outcome.steps < 100_000
    assert outcome.seconds < 30
    assert outcome.measured["test"] == 3
    assert "max_minutes=0.02" in run.name


@pytest.mark.parametrize("model", ["nano_gpt", "nano_gpt_attn_only"])
def test_bfloat16(runs: ModuleType, tmp_path: Path, model: str):
    outcome = runs.train_run(small(runs, model, mixed_precision="bf16"), tmp_path)
    assert outcome.losses[-1] < outcome.losses[0]
    weights = load_file(tmp_path / "model" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}  # the arithmetic is bf16, the weights not


# ---------------------------------------------------------------------------------------------- the script, the card


def parsed(script: ModuleType, *arguments: str) -> Any:
    (args,) = HfArgumentParser(script.Arguments).parse_args_into_dataclasses(list(arguments))
    return args


def test_what_the_arguments_ask_for(script: ModuleType):
    asked = script.runs_of(parsed(script, "--model", "all", "--seeds", "0..1"))
    assert [(run.model, run.seed) for run in asked] == [(m, s) for s in (0, 1) for m in MODELS]
    assert all(not run.departures for run in asked)
    (gpu,) = script.runs_of(
        parsed(script, "--model", "nano_gpt", "--preset", "paper", "--mixed_precision", "bf16", "--max_minutes", "240")
    )
    assert gpu.departures == {"mixed_precision": "bf16", "max_minutes": 240.0}
    assert gpu.name == "1_shot_rlw-nano_gpt-paper-mixed_precision=bf16-max_minutes=240.0-seed0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "gru"], "--model must be of transformer, .* got gru"),
        (["--model", "cnn", "--task", "4_shot"], "--task must be of"),
        (["--model", "cnn", "--preset", "gpu"], "--preset must be of paper, cpu"),
        (["--model", "cnn", "--mixed_precision", "fp8"], "--mixed_precision must be of no, bf16"),
        (["--model", "cnn", "--steps", "0"], "--steps must be 1 or more, got 0"),
        (["--model", "cnn", "--max_minutes", "-1"], "--max_minutes must be 0 or more"),
        (["--model", "cnn", "--seeds", "x"], "--seeds must be whole numbers"),
    ],
)
def test_arguments_that_make_no_sense(script: ModuleType, arguments: list[str], message: str):
    with pytest.raises(SystemExit, match=message):
        call(script, *arguments)


def test_from_the_script_to_the_card(script: ModuleType, table: ModuleType, tmp_path: Path):
    where = ["--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")]
    printed = call(script, "--model", "cnn,nano_gpt", *TINY, *where)
    assert "nano_gpt" in printed
    card = tmp_path / "cards" / "templatic-baselines"
    check_folder(card)
    results = Results.load(card / "results.json")
    exact = [entry for entry in results.results if entry.metric == "exact_match"]
    assert len(exact) == 2 * len(SPLITS)
    assert all(entry.paper is None for entry in exact)  # these are other models than the paper's
    assert {entry.setting["seeds"][0] for entry in exact} == {0}
    assert table.markdown(tmp_path / "cards") in (card / "README.md").read_text()
    assert {path.name for path in card.glob("*.png")} == {"exact_match_by_split.png", "training_loss.png"}
    call(script, "--model", "nano_gpt", "--seeds", "1", *TINY, *where)  # what is there stays in the card
    gpt = [e for e in Results.load(card / "results.json").results if e.setting["model"] == "nano_gpt"]
    assert {entry.n for entry in gpt} == {2}
    assert gpt[0].setting["seeds"] == [0, 1]
    check_folder(card)


def test_the_table_has_ours_above_the_papers(table: ModuleType, tmp_path: Path):
    assert table.markdown(tmp_path) == ""

    def entry(model: str, split: str, values: list[float], paper: float | None = None) -> Any:
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
    _, _, *rows = table.markdown(tmp_path).splitlines()
    assert rows == [
        "| nano_gpt | 95.0 ± 5.0 |  |  |  |  |  |  |  |  |  | 0.0 |  | 3,000 |",
        "| *in the paper* | 100.0 |  |  |  |  |  |  |  |  |  | 22.5 |  | |",
        "| mamba |  |  | 50.0 |  |  |  |  |  |  |  |  |  | 3,000 |",
    ]


def test_the_papers_table(scripts: Path, table: ModuleType):
    paper = json.loads((scripts / "templatic_table3_paper.json").read_text())
    assert tuple(paper["models"]) == MODELS
    assert set(paper["splits"]) <= set(table.SPLITS) == set(SPLITS)
    assert {len(figures) for figures in paper["models"].values()} == {5}


@pytest.mark.slow
def test_as_a_user_calls_it(tmp_path: Path):
    """Two processes, as a program of its own, and in the GPU's manner."""
    command = [sys.executable, str(TRAINING / "train_templatic.py"), "--model", "nano_gpt,nano_gpt_attn_only"]
    command += [*TINY, "--preset", "paper", "--mixed_precision", "bf16", "--max_minutes", "5", "--jobs", "2"]
    command += ["--data_workers", "1", "--eval_batch", "50", "--output_dir", "runs", "--cards_dir", "cards"]
    subprocess.run(command, cwd=tmp_path, check=True)
    check_folder(tmp_path / "cards" / "templatic-baselines-paper")
