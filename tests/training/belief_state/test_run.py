"""Runs: probes at their moments, bf16, and a batch seen by stock code."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, GPT2LMHeadModel

from tests.training.belief_state.small import small
from tests.training.cases import reset_process
from tests.training.jobs import job_in
from training.belief_state import probes
from training.belief_state.batches import StarGraphBatches, held_out
from training.belief_state.experiment import EXPERIMENT
from training.belief_state.models import forward_encoder, make_model
from training.belief_state.run import RunOutcome, right_paths, train_run
from training.belief_state.settings import OBJECTIVES, Run
from training.engine import probes as engine_probes


@pytest.mark.parametrize("model_name", ["forward_only", *OBJECTIVES])
def test_a_baselines_checkpoint_gives_the_figure_of_its_outcome(tmp_path: Path, model_name: str) -> None:
    run = small(model_name, steps=4)
    outcome = train_run(run, job_in(tmp_path / "run", EXPERIMENT))
    assert outcome is not None
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "model").eval()
    assert type(model) is GPT2LMHeadModel
    assert int(right_paths(run, model, held_out(run, run.eval_graphs), 100).sum()) == outcome.right
    assert outcome.generated_alike == run.generated
    assert [point[0] for point in outcome.curve] == [4]
    # The outcome counts what was trained; the checkpoint has what is needed to answer.
    assert (outcome.parameters > model.num_parameters()) == (model_name in OBJECTIVES)


def straight_and_resumed(run: Run, folder: Path) -> tuple[RunOutcome, RunOutcome]:
    """The run in one go, and stopped between two saved states and gone on with."""
    straight = train_run(run, job_in(folder / "straight", EXPERIMENT))
    reset_process()
    assert train_run(run, job_in(folder / "stopped", EXPERIMENT, checkpoint_steps=5, stop_at=7)) is None
    reset_process()
    resumed = train_run(run, job_in(folder / "stopped", EXPERIMENT))
    assert straight is not None
    assert resumed is not None
    return straight, resumed


@pytest.mark.parametrize(
    ("model_name", "options"), [*((name, {}) for name in OBJECTIVES), ("bst", {"layers": 4, "shared_from": 1})]
)
def test_what_stands_around_or_in_a_model_resumes(tmp_path: Path, model_name: str, options: dict[str, int]) -> None:
    run = small(model_name, **options)
    straight, resumed = straight_and_resumed(run, tmp_path)
    assert resumed.losses == straight.losses
    ours, theirs = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("stopped", "straight"))
    assert all(torch.equal(ours[name], part) for name, part in theirs.items())


def test_probes_are_trained_at_their_moments_and_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TRAINED", 64), ("CHOSEN", 16), ("TESTED", 16)):
        monkeypatch.setattr(probes, name, value)
    monkeypatch.setattr(engine_probes, "EPOCHS", 1)
    run = small(probes=3)
    straight, resumed = straight_and_resumed(run, tmp_path)
    assert [moment["step"] for moment in straight.probes] == [4, 8, 12]
    assert resumed.probes == straight.probes
    assert resumed.curve == straight.curve


def test_the_gpus_preset_trains_in_bf16(tmp_path: Path) -> None:
    """Here on the CPU, and small."""
    run = small(preset="gpu-10min", growth=0.5, first_length=3, steps=6)
    assert run.mixed_precision == "bf16"
    outcome = train_run(run, job_in(tmp_path / "run", EXPERIMENT))
    assert outcome is not None
    assert outcome.steps == run.steps


def test_the_papers_preset_trains_with_adamw_on_its_examples(tmp_path: Path) -> None:
    run = small("forward_only", preset="paper", examples=8)
    outcome = train_run(run, job_in(tmp_path / "run", EXPERIMENT))
    assert outcome is not None
    assert outcome.losses[-1] < outcome.losses[0]


@pytest.mark.parametrize("model_name", ["bst", "forward_only"])
def test_rows_of_first_graphs_are_read_at_the_positions_of_the_last(model_name: str) -> None:
    """A row of a smaller graph gets the states of the same tokens at the end of a longer row, nothing before them."""
    run = small(model_name, "g-2-20", growth=0.5, first_length=5)
    torch.manual_seed(0)
    model, batch = make_model(run).eval(), StarGraphBatches(run)[0]
    width = batch["input_ids"].shape[1]
    padded = torch.nn.functional.pad(batch["input_ids"], (run.final.row_length - width, 0))
    real = (torch.arange(run.final.row_length) >= run.final.row_length - width).long().expand(len(padded), -1)
    positions = torch.arange(run.final.row_length).expand(len(padded), -1)
    with torch.no_grad():
        short = model(batch["input_ids"], position_ids=batch["position_ids"]).logits
        long = model(padded, attention_mask=real, position_ids=positions).logits[:, -width:]
        elsewhere = model(batch["input_ids"]).logits
    torch.testing.assert_close(short, long, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(short, elsewhere, atol=1e-3)
    assert model(**batch).loss.isfinite()


def test_a_batch_trains_bst() -> None:
    """The loss of one batch falls, so gradients reach the model through the batch's arguments."""
    run = small(batch_size=16)
    torch.manual_seed(0)
    model, batch = make_model(run), StarGraphBatches(run)[0]
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses = []
    for _ in range(20):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_shared_blocks_are_saved_as_blocks_of_their_own(tmp_path: Path) -> None:
    run = small(layers=4, shared_from=1)
    outcome = train_run(run, job_in(tmp_path / "run", EXPERIMENT))
    assert outcome is not None
    assert outcome.generated_alike == run.generated  # with a cache of four blocks, and without one
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "model").eval()
    assert int(right_paths(run, model, held_out(run, run.eval_graphs), 100).sum()) == outcome.right
    weights = [block.attn.c_attn.weight for block in forward_encoder(model).h]
    assert torch.equal(weights[1], weights[3])
    assert not torch.equal(weights[0], weights[1])
    block = sum(part.numel() for part in forward_encoder(model).h[0].parameters())
    assert model.num_parameters() == outcome.parameters + 2 * block
