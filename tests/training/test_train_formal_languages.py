"""Training on the formal languages: resumed runs, what is scored, the baselines, and the card of a task."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM, AutoTokenizer, HfArgumentParser

from hf_mech.formal_languages import test_batch
from hf_mech.hub import Results, check_folder
from hf_mech.hub.push import prepare_checkpoint
from tests.training.conftest import TRAINING

SMALL = {"steps": 30, "batch_size": 2, "max_train_length": 8, "test_samples": 1, "num_hidden_layers": 1}

CHILD = """
import json, sys
from pathlib import Path
import torch
from formal_run import Run, train_run
torch.set_num_threads(1)
train_run(Run(**json.loads(sys.argv[1])), Path(sys.argv[2]), checkpoint_steps=20)
"""


@pytest.fixture(scope="session")
def formal_run(scripts: Path) -> ModuleType:
    return importlib.import_module("formal_run")


@pytest.fixture(scope="session")
def formal_report(scripts: Path) -> ModuleType:
    return importlib.import_module("formal_report")


@pytest.fixture(scope="session")
def script(scripts: Path) -> ModuleType:
    return importlib.import_module("train_formal_languages")


def parsed(script: ModuleType, *arguments: str) -> Any:
    (args,) = HfArgumentParser(script.Arguments).parse_args_into_dataclasses(list(arguments))
    return args


def call(script: ModuleType, *arguments: str) -> str:
    """What the script prints."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr("sys.argv", ["train_formal_languages.py", *arguments])
        script.main()
    return printed.getvalue()


# ------------------------------------------------------------------------------------------------------- resuming


@pytest.fixture(scope="module")
def small(formal_run: ModuleType) -> Any:
    """A run with all that a checkpoint must hold: dropout, a warm-up, losses between two points, a second attempt."""
    settings = SMALL | {"dropout": 0.2, "warmup_steps": 30, "steps": 120, "restart_after": 50}
    return formal_run.Run.of("stack_manipulation", "alm", "stack", "none", 3, "cpu", **settings)


@pytest.fixture(scope="module")
def straight(formal_run: ModuleType, small: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("straight")
    return formal_run.train_run(small, folder), folder


def assert_same_run(outcome: Any, folder: Path, straight: tuple[Any, Path]) -> None:
    expected, where = straight
    untimed = {"seconds": 0, "seconds_of_test": 0}
    assert asdict(outcome) | untimed == asdict(expected) | untimed
    got, wanted = (load_file(f / "model" / "model.safetensors") for f in (folder, where))
    assert got.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert torch.equal(got[name], tensor), name
    assert {path.name for path in folder.iterdir()} == {"run.json", "outcome.json", "model"}


def test_a_run_ends_when_it_has_learned(formal_run: ModuleType, tmp_path: Path):
    """So many steps after the training loss has fallen below a number, or at its last step."""
    settings = SMALL | {"steps": 200, "steps_after": 30}
    run = formal_run.Run.of("reverse_string", "mlm", "stack", "none", 0, "cpu", learned_loss=100.0, **settings)
    assert formal_run.train_run(run, tmp_path / "whole").steps == 2 + 30  # a hundredth of the steps are two
    assert formal_run.train_run(run, tmp_path / "cut", checkpoint_steps=10, stop_at=15) is None
    assert formal_run.train_run(run, tmp_path / "cut").steps == 32
    never = formal_run.Run.of("reverse_string", "mlm", "stack", "none", 0, "cpu", **settings | {"steps": 40})
    assert formal_run.train_run(never, tmp_path / "never").steps == 40


def test_a_run_that_does_not_learn_begins_anew(formal_run: ModuleType, straight: tuple[Any, Path], tmp_path: Path):
    """With other weights, without what the optimizer knew; but not once it has learned, nor at its end."""
    assert straight[0].restarts == 2
    settings = SMALL | {"steps": 100, "restart_after": 50, "learning_rate": 0.0, "dropout": 0.0}

    def weights(name: str, **others: Any) -> tuple[int, Tensor]:
        run = formal_run.Run.of("reverse_string", "mlm", "stack", "none", 0, "cpu", **settings | others)
        outcome = formal_run.train_run(run, tmp_path / name)
        state = load_file(tmp_path / name / "model" / "model.safetensors")
        return outcome.restarts, state["lm_head.dense.weight"]

    once, first = weights("once", restart_after=0)
    twice, second = weights("twice")
    learned, kept = weights("learned", learned_loss=100.0, steps_after=99)
    assert (once, twice, learned) == (0, 1, 0)
    torch.testing.assert_close(kept, first)
    assert not torch.allclose(second, first)

    knowing = formal_run.Run.of("reverse_string", "mlm", "stack", "none", 0, "cpu", **settings | {"learning_rate": 0.1})
    for name, restart_after, known in (("anew", 50, False), ("on", 0, True)):
        run = replace(knowing, restart_after=restart_after)
        assert formal_run.train_run(run, tmp_path / name, checkpoint_steps=50, stop_at=50) is None
        checkpoint = tmp_path / name / "checkpoint-50"
        states = [torch.load(file, weights_only=True) for file in sorted(checkpoint.glob("custom_checkpoint_*.pkl"))]
        assert bool(states[0]["state"]) is known  # what Adam remembers
        assert states[1]["last_epoch"] == (50 if known else 0)


def test_stopped_and_started_again(formal_run: ModuleType, small: Any, straight: tuple[Any, Path], tmp_path: Path):
    assert formal_run.train_run(small, tmp_path, checkpoint_steps=16, stop_at=70) is None
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-64"]
    (tmp_path / "saving").mkdir()  # what a kill left half written
    (tmp_path / "saving" / "model.safetensors").write_bytes(b"half a fi")
    torch.rand(100)  # the process that goes on has other random numbers
    assert_same_run(formal_run.train_run(small, tmp_path, checkpoint_steps=50), tmp_path, straight)


def test_killed_and_started_again(formal_run: ModuleType, small: Any, straight: tuple[Any, Path], tmp_path: Path):
    folder = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(asdict(small)), str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TRAINING), str(TRAINING.parent)])},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not list(folder.glob("checkpoint-*")):
            assert child.poll() is None, child.communicate()[1]
            time.sleep(0.005)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert not (folder / "outcome.json").exists()
    assert_same_run(formal_run.train_run(small, folder), folder, straight)


def test_a_finished_run_is_not_trained_again(formal_run: ModuleType, small: Any, straight: tuple[Any, Path]):
    outcome, folder = straight
    before = (folder / "model" / "model.safetensors").stat().st_mtime_ns
    assert formal_run.train_run(small, folder) == outcome
    assert (folder / "model" / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(FileExistsError, match="other settings"):
        formal_run.train_run(replace(small, seed=4), folder)


def test_batches_of_workers_are_the_same(formal_run: ModuleType, small: Any):
    short = replace(small, steps=5)
    for alone, beside in zip(formal_run._batches(short, 2, 0), formal_run._batches(short, 2, 1), strict=True):
        assert all(torch.equal(alone[name], beside[name]) for name in alone)


# ---------------------------------------------------------------------------------------------------------- score


class Oracle(nn.Module):
    """Says at every position what `say(input_ids)` returns."""

    def __init__(self, say: Any) -> None:
        super().__init__()
        self.say, self.weight = say, nn.Parameter(torch.zeros(1))

    def forward(self, input_ids: torch.Tensor) -> Any:
        return SimpleNamespace(logits=nn.functional.one_hot(self.say(input_ids), 32).float())


@pytest.mark.parametrize("task", ["reverse_string", "stack_manipulation"])
def test_alm_is_scored_on_the_next_true_symbol(formal_run: ModuleType, task: str):
    run = formal_run.Run.of(task, "alm", "stack", "none", 0, "cpu", test_samples=70)
    reads_ahead = Oracle(lambda ids: ids.roll(-1, 1))
    assert formal_run.accuracy_at(reads_ahead, run, 9) == 1
    assert formal_run.accuracy_at(Oracle(lambda ids: ids), run, 9) < 0.8


def test_mlm_is_scored_at_the_masks_that_count(formal_run: ModuleType):
    run = formal_run.Run.of("stack_manipulation", "mlm", "stack", "none", 0, "cpu", test_samples=70, test_seed=7)
    labels = test_batch("stack_manipulation", "mlm", seed=7, length=12, count=70)["labels"]
    said = 4
    expected = float((labels == said).sum() / (labels >= 0).sum())
    assert 0 < expected < 1
    assert formal_run.accuracy_at(Oracle(lambda ids: torch.full_like(ids, said)), run, 12) == pytest.approx(expected)


def test_the_score_is_the_mean_over_the_test_lengths(formal_run: ModuleType, straight: tuple[Any, Path]):
    outcome = replace(straight[0], accuracy_by_length={str(n): float(n > 40) / 2 + (n > 8) / 4 for n in range(1, 101)})
    assert outcome.accuracy == 0.75
    assert outcome.trained_length_accuracy == 0


def test_a_loss_that_is_no_number_stops_the_run(formal_run: ModuleType, small: Any, tmp_path: Path):
    with pytest.raises(FloatingPointError, match=r"is nan at step .*--learning_rate"):
        formal_run.train_run(replace(small, learning_rate=1e30, max_grad_norm=1e30, warmup_steps=0), tmp_path)


# ------------------------------------------------------------------------------------------------------ baselines


def test_the_stack_rnn_keeps_a_stack(scripts: Path):
    rnn = importlib.import_module("formal_rnn")
    model = rnn.FormalRNN(6, use_stack=True).double()
    ids = torch.randint(6, (3, 7))
    weight, bias = model.rnn.weight_ih_l0, model.rnn.bias_ih_l0 + model.rnn.bias_hh_l0
    for row in range(3):
        state, stack = torch.zeros(rnn.HIDDEN).double(), [torch.zeros(rnn.CELL).double()] * 9
        for step in range(7):
            token = torch.eye(6).double()[ids[row, step]]
            state = torch.tanh(weight @ torch.cat([token, stack[0]]) + model.rnn.weight_hh_l0 @ state + bias)
            push, pop, no_op = model.actions(state).softmax(0)
            below = [*stack[1:], torch.zeros(rnn.CELL).double()]
            above = [model.cell(state), *stack[:-1]]
            stack = [push * a + pop * b + no_op * s for a, b, s in zip(above, below, stack, strict=True)]
            torch.testing.assert_close(model(ids).logits[row, step], model.output(state))


def test_both_rnns_learn_from_every_parameter(scripts: Path):
    rnn = importlib.import_module("formal_rnn")
    batch = test_batch("reverse_string", "mlm", seed=0, length=4, count=2)
    for use_stack in (False, True):
        model = rnn.FormalRNN(6, use_stack)
        model(batch["input_ids"], labels=batch["labels"]).loss.backward()
        assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


# -------------------------------------------------------------------------------------------------- what is asked


def test_the_papers_preset(script: ModuleType):
    everything = [part for option in ("--task", "--layout", "--model") for part in (option, "all")]
    runs = script.runs_of(parsed(script, *everything, "--seeds", "0..4", "--preset", "paper"))
    assert len(runs) == len({run.name for run in runs}) == 4 * 5 * (2 * 2 + 2)
    assert [run.task for run in runs] == sorted((run.task for run in runs), key=list(script.TASKS).index)
    for run in runs:
        large = run.task in ("modular_arithmetic", "solve_equation")
        assert (run.steps, run.batch_size) == ((1_000_000, 128) if large else (100_000, 32))
        assert (run.learning_rate, run.max_grad_norm, run.dropout, run.test_samples) == (1e-4, 1.0, 0.1, 512)
        assert (run.max_train_length, run.multi_pop, run.stack_gate, run.num_hidden_layers) == (40, 1, False, 5)
        assert not run.departures
        assert run.layout == "mlm" or run.model in ("stack", "vanilla")


def test_what_departs_from_the_preset_is_in_the_name(script: ModuleType):
    asked = "--task reverse_string --model stack,vanilla --encoding all --steps 7 --multi_pop 2 --seeds 1,3"
    runs = script.runs_of(parsed(script, *asked.split()))
    assert len(runs) == 2 * 2 * 5
    for run in runs:
        expected = {"steps": 7} | ({"multi_pop": 2} if run.model == "stack" else {})
        assert run.departures == expected
    assert runs[0].name == "reverse_string-mlm-stack-none-cpu-steps=7-multi_pop=2-seed1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--task reverse", "--task must be of .*reverse_string.*, got reverse"),
        ("--task all --layout clm", "--layout must be of mlm, alm, got clm"),
        ("--task all --model gpt", "--model must be of stack, vanilla"),
        ("--task all --encoding sincos", "--encoding must be of none, sinusoidal"),
        ("--task all --preset gpu", "--preset must be of paper, cpu, got gpu"),
        ("--task all --seeds 0-4", r"--seeds must be whole numbers, or ranges such as 0\.\.4, got 0-4"),
        ("--task all --push_to_hub", "--push_to_hub needs --hub_user"),
    ],
)
def test_wrong_arguments_are_refused(script: ModuleType, arguments: str, says: str):
    with pytest.raises(SystemExit, match=says):
        call(script, *arguments.split())


def test_one_run_is_not_shared_by_processes(script: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit, match="give --jobs"):
        call(script, "--task", "all")


# -------------------------------------------------------------------------------------------------------- nesting


@pytest.mark.parametrize(
    ("expression", "levels"),
    [("3", 0), ("-3", 0), ("(-3)", 0), ("(1+2)", 1), ("((-1)+2)", 1), ("((1+2)*3)", 2), ("(1-((2*3)+(4-x)))=2", 3)],
)
def test_how_deep_an_expression_is_nested(scripts: Path, expression: str, levels: int):
    nesting = importlib.import_module("formal_nesting")
    assert nesting.nesting(list(expression)) == levels


@pytest.mark.parametrize(("task", "four", "five"), [("modular_arithmetic", 34.6, 49.2), ("solve_equation", 26.0, 44.2)])
def test_what_levels_are_worth(scripts: Path, task: str, four: float, five: float):
    """Each of them something, all of them everything, none as much as one answer; the README has these figures."""
    nesting = importlib.import_module("formal_nesting")
    worth = [nesting.accuracy_of_levels(task, levels) for levels in (0, 4, 5, 6, 99)]
    assert worth == sorted(worth)
    assert worth[-1] == 1
    assert [round(100 * share, 1) for share in worth[1:3]] == [four, five]
    readme = (TRAINING.parent / "hf_mech" / "models" / "stack" / "README.md").read_text()
    assert f"{four} %" in readme
    assert str(five) in readme
    answers = nesting._examples(task)[1]
    assert worth[0] == pytest.approx(max((answers == answer).mean() for answer in range(5)))


# ----------------------------------------------------------------------------------------------------------- card


@pytest.fixture(scope="module")
def finished(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Tiny runs in two calls, of which the card holds both: the runs' folder, the card, and what the second printed."""
    root = tmp_path_factory.mktemp("report")
    sizes = [part for name, value in SMALL.items() for part in (f"--{name}", str(value))]
    folders = ["--output_dir", str(root / "runs"), "--cards_dir", str(root / "cards"), "--jobs", "1"]
    common = ["--task", "reverse_string", *sizes, *folders]
    call(script, *common, "--model", "stack", "--seeds", "0..1", "--encoding", "none,alibi")
    printed = call(script, *common, "--model", "vanilla,stack_rnn", "--layout", "all")
    return root / "runs", root / "cards" / "stack-reverse-string", printed


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


def test_the_results_are_those_of_the_runs(finished: tuple[Path, Path, str], formal_run: ModuleType):
    runs, card, _ = finished
    results = Results.load(card / "results.json").results
    scores = {
        (m.setting["layout"], m.setting["model"], m.setting["encoding"]): m
        for m in results
        if m.metric == "token_accuracy"
    }
    outcomes = [formal_run.Outcome.load(file.parent) for file in sorted(runs.glob("*/outcome.json"))]
    assert len(outcomes) == 7
    for (layout, model, encoding), measured in scores.items():
        own = [o for o in outcomes if (o.run["layout"], o.run["model"], o.run["encoding"]) == (layout, model, encoding)]
        assert measured.values == [outcome.accuracy for outcome in own]
        assert measured.setting["seeds"] == [outcome.run["seed"] for outcome in own]
        assert measured.setting["steps"] == SMALL["steps"]
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


def test_the_card_says_who_began_anew(straight: tuple[Any, Path], formal_report: ModuleType):
    once = straight[0]
    never, learned = replace(once, restarts=0), replace(once, losses=[1.0, 0.001, 0.02])
    assert formal_report._restarts([never]) == ""
    said = formal_report._restarts([never, once, learned])
    assert "2 of the 3 runs" in said
    assert "1 of them then did" in said


def test_the_checkpoint_is_chosen_without_the_test_lengths(finished: tuple[Path, Path, str], formal_report: ModuleType):
    runs, _, _ = finished
    outcomes = formal_report.finished_runs(runs, "cpu")
    chosen = formal_report.choose(outcomes)
    assert chosen is not None
    assert outcomes[chosen].run["model"] == "stack"
    perfect = {str(length): 1.0 for length in range(41, 101)}
    for folder in outcomes:
        better = replace(outcomes[folder], accuracy_by_length=outcomes[folder].accuracy_by_length | perfect)
        assert formal_report.choose(outcomes | {folder: better}) == chosen
    assert formal_report.choose({f: o for f, o in outcomes.items() if o.run["model"] != "stack"}) is None


def test_the_saved_checkpoint_answers(finished: tuple[Path, Path, str]):
    runs, _, _ = finished
    folder = runs / "stack-reverse-string"
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    text = tokenizer("a b b [MASK] [MASK] [MASK]", return_tensors="pt")
    output = model(**text, output_stack_attentions=True)
    assert output.logits.shape == (1, 7, len(tokenizer))
    assert len(output.stack_attentions) == SMALL["num_hidden_layers"]
    assert (folder / "modeling_stack_roberta.py").is_file()


def test_what_is_pushed(
    finished: tuple[Path, Path, str], script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    runs, card, _ = finished
    names = []

    def prepare(model: Any, repo_id: str, **how: Any) -> None:
        names.append(repo_id)
        prepare_checkpoint(model, tmp_path, **how)

    monkeypatch.setattr(script, "push_checkpoint", prepare)
    sizes = [part for name, value in SMALL.items() for part in (f"--{name}", str(value))]
    asked = ["--task", "reverse_string", *sizes, "--jobs", "1", "--push_to_hub", "--hub_user", "me"]
    call(script, *asked, "--output_dir", str(runs), "--cards_dir", str(card.parent))
    assert names == ["me/stack-reverse-string"]
    files = {path.name for path in tmp_path.iterdir()}
    assert {"model.safetensors", "tokenizer.json", "README.md", "results.json", "accuracy_by_length.json"} <= files
    assert {"stack_attention.png", "modeling_stack_roberta.py", "stack_attention.py"} <= files


def test_the_table_is_printed(finished: tuple[Path, Path, str]):
    _, _, printed = finished
    rows = [line for line in printed.splitlines() if "reverse_string" in line]
    assert len(rows) == 5
    # A model of one layer is not the paper's, and strings of up to 8 symbols are not its task.
    assert not any(figure in printed for figure in ("54.8 ± 0.0", "81.0 ± 0.8", "100.0 ± 0.0"))
    assert any("stack_rnn" in row and "max_train_length 8" in row for row in rows)


@pytest.mark.parametrize(
    ("task", "group", "mean", "where"),
    [
        ("stack_manipulation", ("mlm", "stack", "none", "{}"), 0.931, "Table 1"),
        ("stack_manipulation", ("alm", "vanilla", "none", "{}"), 0.504, "Table 1; Table 2b: 64.9 ± 2.0 %"),
        ("solve_equation", ("mlm", "stack", "rotary", "{}"), 0.30, "Table 2a"),
        ("solve_equation", ("mlm", "stack_rnn", "none", '{"steps": 5}'), 0.899, "Table 1"),
    ],
)
def test_the_papers_figures(formal_report: ModuleType, task: str, group: Any, mean: float, where: str):
    figure = formal_report.paper_figure(task, group)
    assert (figure.mean, figure.where) == (pytest.approx(mean), where)


def test_other_models_and_tasks_have_no_figure_of_the_paper(formal_report: ModuleType):
    assert formal_report.paper_figure("reverse_string", ("mlm", "stack", "none", '{"multi_pop": 2}')) is None
    assert formal_report.paper_figure("reverse_string", ("mlm", "stack", "none", '{"max_train_length": 13}')) is None
    assert formal_report.paper_figure("reverse_string", ("mlm", "stack", "learned", "{}")) is None
    assert formal_report.paper_figure("parity_check", ("mlm", "stack", "none", "{}")) is None


@pytest.mark.parametrize("layout", ["mlm", "alm"])
@pytest.mark.parametrize("task", ["stack_manipulation", "modular_arithmetic", "solve_equation", "bucket_sort"])
def test_every_task_has_its_picture(scripts: Path, formal_run: ModuleType, task: str, layout: str):
    models, pictures = importlib.import_module("formal_models"), importlib.import_module("formal_pictures")
    run = formal_run.Run.of(task, layout, "stack", "none", 0, "cpu", num_hidden_layers=2, multi_pop=2)
    figure, caption = pictures.stack_picture(task, models.make_model(run).eval())
    assert len(figure.axes) == 2
    answer = caption.partition("The model answers: ")[2].split()
    assert len(answer) == pictures.example_of(task)[1]
    vanilla = models.make_model(replace(run, model="vanilla"))
    assert pictures.stack_picture(task, vanilla) is None
