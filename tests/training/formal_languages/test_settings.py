"""The runs that the options ask for: the presets, departures in the names, values that are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hf_mech.languages import TASKS
from tests.training.jobs import refusal_of, runs_of
from training.engine.arguments import config_of, parser_of, read
from training.formal_languages.experiment import EXPERIMENT


def test_the_papers_preset():
    """App. B.1 to the letter, in every run of Tables 1 and 2."""
    everything = [part for option in ("--task", "--layout", "--model") for part in (option, "all")]
    runs = runs_of(EXPERIMENT, *everything, "--seeds", "0..4", "--preset", "paper")
    assert len(runs) == len({run.name for run in runs}) == 4 * 5 * (2 * 2 + 2)
    papers = ["reverse_string", "stack_manipulation", "modular_arithmetic", "solve_equation"]
    assert [run.task for run in runs] == sorted((run.task for run in runs), key=papers.index)
    for run in runs:
        large = run.task in ("modular_arithmetic", "solve_equation")
        assert (run.steps, run.batch_size) == ((1_000_000, 128) if large else (100_000, 32))
        assert (run.learning_rate, run.max_grad_norm, run.dropout, run.test_samples) == (1e-4, 1.0, 0.1, 512)
        assert (run.max_train_length, run.multi_pop, run.stack_gate, run.num_hidden_layers) == (40, 1, False, 5)
        assert not run.departures
        assert run.layout == "mlm" or run.model in ("stack", "vanilla")


def test_departures_from_the_preset_are_in_the_name():
    asked = "--task reverse_string --model stack,vanilla --encoding all --steps 7 --multi_pop 2 --seeds 1,3"
    runs = runs_of(EXPERIMENT, *asked.split())
    assert len(runs) == 2 * 2 * 5
    for run in runs:
        expected = {"steps": 7} | ({"multi_pop": 2} if run.model == "stack" else {})
        assert run.departures == expected
    assert runs[0].name == "reverse_string-mlm-stack-none-cpu-steps=7-multi_pop=2-seed1"


def test_recurrent_models_run_once_whatever_the_encodings():
    asked = "--task reverse_string --model vanilla,rnn --layout all --encoding alibi,rotary --num_hidden_layers 2"
    runs = runs_of(EXPERIMENT, *asked.split())
    assert [(run.layout, run.model, run.encoding) for run in runs] == [
        *(("mlm", "vanilla", "alibi"), ("mlm", "vanilla", "rotary"), ("mlm", "rnn", "none")),
        *(("alm", "vanilla", "alibi"), ("alm", "vanilla", "rotary")),
    ]
    assert [bool(run.departures) for run in runs] == [True, True, False, True, True]


def test_every_task_has_its_runs():
    """Not the paper's four alone."""
    assert [run.task for run in runs_of(EXPERIMENT, "--task", *TASKS)] == list(TASKS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--task reverse", "--task must be of .*reverse_string.*, got reverse"),
        ("--task all --layout clm", "--layout must be of mlm, alm, got clm"),
        ("--task all --model gpt", "--model must be of stack, recurrent_stack, vanilla, .* got gpt"),
        ("--task all --encoding sincos", "--encoding must be of none, sinusoidal, .* got sincos"),
        ("--task all --layout alm --model rnn", "--model rnn needs --layout mlm, .* got alm"),
        ("--task all --model rnn --dropout 0.2", "--dropout has no effect on --model rnn"),
        ("--task all --model rnn --encoding rotary", "--encoding has no effect on --model rnn"),
        ("--task all --model vanilla,rnn --stack_gate", "--stack_gate has no effect on --model vanilla, rnn"),
        ("--task all --preset paper --restart_after 5", "--restart_after 5 needs a --learned_loss above 0"),
    ],
)
def test_values_that_make_no_sense(arguments: str, says: str):
    assert re.search(says, refusal_of(EXPERIMENT, *arguments.split()))


@pytest.mark.parametrize("model", ["vanilla", "stack", "rnn"])
def test_the_options_of_a_run_make_it_whatever_its_model_has(model: str, tmp_path: Path):
    """`run.yaml` names all of them, also those without an effect."""
    request = read(
        EXPERIMENT, parser_of(EXPERIMENT, None), f"--task reverse_string --model {model} --preset even".split()
    )
    ((run,),) = EXPERIMENT.stages(request)
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(config_of(EXPERIMENT, run, request)), "utf-8")
    assert runs_of(EXPERIMENT, "--config_file", str(file)) == [run]
