"""Texts that grow with what has been learned, and the losses of a taught run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.formal_languages.small import SMALL
from tests.training.jobs import job_in
from training.engine import SettingsError
from training.engine.optimizers import Together
from training.formal_languages.experiment import EXPERIMENT
from training.formal_languages.models import FreshBatches, Growth, Taught, make_model, make_optimizer
from training.formal_languages.run import train_run
from training.formal_languages.settings import Run


@pytest.fixture(autouse=True)
def untested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the training matters here: nothing is measured at the lengths of the score."""
    monkeypatch.setattr("training.formal_languages.run.accuracy_at", lambda *arguments: 0.5)
    monkeypatch.setattr("training.formal_languages.run.accuracy_by_nesting", lambda *arguments: {})


def taught(task: str, layout: str = "mlm", model: str = "recurrent_stack", **overrides: object) -> Run:
    settings = SMALL | {"max_train_length": 20} | overrides
    return Run.of("taught", settings, task=task, layout=layout, model=model, encoding="none", seed=0)


def test_texts_grow_when_they_are_learned():
    growth = Growth(9)
    for _ in range(50):
        growth.see(1.0, 12, 0.95)
    assert growth.longest == 9  # not before it has been right for a while
    while growth.longest == 9:
        growth.see(1.0, 12, 0.95)
    assert (growth.longest, growth.since) == (12, 0)  # at most the longest of all
    for _ in range(500):
        growth.see(1.0, 12, 0.95)
    assert growth.longest == 12
    assert Growth.of(taught("reverse_string", max_train_length=5)).longest == 5  # first_train_length is 9
    batches = FreshBatches(taught("reverse_string", batch_size=1), growth)
    assert max(batches[step]["input_ids"].shape[1] for step in range(99)) == 1 + 2 * 12


@pytest.mark.parametrize("layout", ["mlm", "alm"])
def test_the_loss_is_that_of_all_lessons(layout: str):
    run = taught("modular_arithmetic", layout)
    batch = FreshBatches(run, Growth(9))[0]
    losses = {}
    for name in ("nothing", "partial_results", "balance", "least_push"):
        told = {"partial_results": False, "balance": 0.0, "least_push": 0.0}
        if name != "nothing":
            told[name] = True if name == "partial_results" else 1.0
        one = taught("modular_arithmetic", layout, **told)
        torch.manual_seed(0)
        losses[name] = float(Taught(make_model(one), one, Growth(9))(**batch).loss.detach())
    torch.manual_seed(0)
    answer = batch["labels"].clone()
    answer[:, :-1] = -100
    plain = make_model(run)(**{**batch, "labels": answer}).loss
    torch.testing.assert_close(losses["nothing"], float(plain.detach()))
    assert all(losses[name] > losses["nothing"] for name in ("partial_results", "balance", "least_push"))


def test_the_stacks_text_of_an_equation_may_end_before_its_sign():
    """What stands behind the `=` has no say in the losses of the stacks, and other tasks have no such symbol."""
    losses = {}
    for task in ("solve_equation", "modular_arithmetic"):
        for ends in ("", "="):
            run = taught(task, balance_ends=ends, first_train_length=0, max_train_length=9)
            torch.manual_seed(0)
            model = Taught(make_model(run), run, Growth(9))
            batch = FreshBatches(run, Growth(9))[0]
            losses[task, ends] = float(model(**batch).loss.detach())
    assert losses["solve_equation", ""] != losses["solve_equation", "="]
    assert losses["modular_arithmetic", ""] == losses["modular_arithmetic", "="]


def test_uncertain_actions_cost_once_texts_are_read_right():
    losses = {}
    for weight in (0.0, 1.0):
        run = taught("reverse_string", least_push=0.5, entropy=weight)
        torch.manual_seed(0)
        growth = Growth(9)
        model, batch = Taught(make_model(run), run, growth).eval(), FreshBatches(run, growth)[0]
        for right in (0.0, 1.0):
            growth.right = right
            losses[weight, right] = float(model(**batch).loss.detach())
    assert losses[1.0, 0.0] == losses[0.0, 0.0] == losses[0.0, 1.0]
    assert losses[0.0, 1.0] < losses[1.0, 1.0] <= losses[0.0, 1.0] + math.log(3)


def test_muon_trains_the_matrices_of_the_layers_but_the_actions():
    run = taught("solve_equation", optimizer="muon")
    model = make_model(run)
    together = make_optimizer(model, run)
    assert isinstance(together, Together)
    rest = {id(weight) for weight in together.optimizers[1].param_groups[0]["params"]}
    by_muon = {name for name, weight in model.named_parameters() if id(weight) not in rest}
    assert {
        "roberta.encoder.layer.0.stack.values.state_weight",
        "roberta.encoder.layer.0.output.dense.weight",
    } < by_muon
    assert all(".layer." in name and name.endswith("weight") and "action" not in name for name in by_muon)
    for model_of_adam, options in (("recurrent_stack", {}), ("rnn", {"optimizer": "muon"})):
        other = taught("solve_equation", model=model_of_adam, **options)
        assert isinstance(make_optimizer(make_model(other), other), torch.optim.Adam)


def test_the_share_of_right_answers_is_what_the_model_says():
    run, growth = taught("modular_arithmetic", "alm"), Growth(9)
    batch = FreshBatches(run, growth)[0]
    model = make_model(run)
    Taught(model, run, growth)(**batch)
    right = (model(batch["input_ids"]).logits[:, -2].argmax(-1) == batch["labels"][:, -1]).float().mean()
    assert growth.right == pytest.approx(0.02 * float(right))


@pytest.mark.slow
def test_a_killed_run_goes_on_with_texts_as_long(tmp_path: Path):
    """The texts grow between the last checkpoint and the end of the run."""
    run = taught("even_pairs", steps=90, batch_size=8, learning_rate=0.01, first_train_length=2, least_push=0.5)
    whole = train_run(run, job_in(tmp_path / "whole", EXPERIMENT))
    assert train_run(run, job_in(tmp_path / "cut", EXPERIMENT, checkpoint_steps=50, stop_at=70)) is None
    cut = train_run(run, job_in(tmp_path / "cut", EXPERIMENT))
    assert whole is not None
    assert cut is not None
    assert cut.losses == whole.losses
    weights = [load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "cut")]
    assert all(torch.equal(weights[0][name], tensor) for name, tensor in weights[1].items())


def test_texts_that_grow_are_not_made_ahead(tmp_path: Path):
    job = job_in(tmp_path, EXPERIMENT)
    ahead = replace(job, options=replace(job.options, data_workers=1))
    with pytest.raises(SettingsError, match="--first_train_length needs --data_workers 0, got 1"):
        train_run(taught("reverse_string"), ahead)


@pytest.mark.parametrize("model", ["vanilla", "rnn", "stack_rnn"])
def test_a_model_without_such_stacks_is_taught_the_rest(model: str, tmp_path: Path):
    outcome = train_run(taught("modular_arithmetic", model=model), job_in(tmp_path, EXPERIMENT))
    assert outcome is not None
    assert outcome.settings.is_taught
