"""The runs that the options ask for, Tables 11 and 12 in the preset, Table 3, and values that are refused."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from hf_mech.programs.templatic.tasks import SPLITS
from tests.training.jobs import refusal_of, runs_of
from tests.training.templatic.small import ENCODER_DECODERS, MODELS, run_of
from training.templatic import settings
from training.templatic.experiment import EXPERIMENT
from training.templatic.models import make_model
from training.templatic.report import HEADS
from training.templatic.settings import PAPER


def test_the_presets_are_of_tables_11_and_12(tokenizer: PreTrainedTokenizerFast):
    def made(name: str) -> Any:
        with torch.device("meta"):
            return make_model(run_of(name, preset="paper"), tokenizer)

    for name in MODELS:
        run = run_of(name, preset="paper")
        assert (run.learning_rate, run.weight_decay, run.dropout, run.steps) == (1e-4, 0, 0, 120_000)
        assert (run.hidden, run.batch_size) == (512, 128 if name in ENCODER_DECODERS else 256)
        model = made(name)
        if isinstance(model, PreTrainedModel):
            assert model.config.hidden_size == 512
    gpt, mamba, bart, lstm = map(made, ("nano_gpt", "mamba", "transformer", "lstm_attn"))
    assert (gpt.config.n_layer, gpt.config.n_head, gpt.config.n_inner) == (6, 1, 512)
    assert gpt.transformer.h[0].mlp.c_fc.weight.shape == (512, 512)
    mixer = mamba.backbone.layers[0].mixer
    assert (len(mamba.backbone.layers), mixer.intermediate_size, mixer.ssm_state_size) == (18, 512, 16)
    assert (bart.config.encoder_layers, bart.config.decoder_layers, bart.config.encoder_ffn_dim) == (3, 3, 512)
    assert (lstm.encoder.num_layers, lstm.decoder.num_layers, lstm.encoder.bidirectional) == (3, 3, False)


def test_the_papers_table():
    """Table 3 has five splits of each model, all of them ours too."""
    assert tuple(PAPER.values("model")) == settings.MODELS == MODELS
    assert set(PAPER.values("split")) <= set(HEADS) == set(SPLITS)
    places = [(row.setting["model"], row.setting["split"]) for row in PAPER.rows]
    assert len(set(places)) == len(places)
    assert Counter(model for model, _ in places) == dict.fromkeys(MODELS, 5)


def test_the_runs_that_are_asked_for():
    asked = runs_of(EXPERIMENT, "--model", "all", "--seeds", "0..1")
    assert [(run.model, run.seed) for run in asked] == [(m, s) for s in (0, 1) for m in MODELS]
    assert all(not run.departures for run in asked)
    (gpu,) = runs_of(
        EXPERIMENT,
        *("--model", "nano_gpt", "--preset", "paper", "--mixed_precision", "bf16", "--max_minutes", "240"),
    )
    assert gpu.departures == {"mixed_precision": "bf16", "max_minutes": 240.0}
    assert gpu.name == "1_shot_rlw-nano_gpt-paper-mixed_precision=bf16-max_minutes=240.0-seed0"


def test_other_data_are_another_run():
    usual, other = run_of(), run_of(data_seed=3, num_eval=8)
    assert (usual.data, other.data) == ({}, {"seed": 3, "num_eval": 8})
    assert other.name == "1_shot_rlw-nano_gpt-cpu-data_seed=3-num_eval=8-seed0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--model gru", "--model must be of transformer, .* got gru"),
        ("--model cnn --task 4_shot", "--task must be of"),
        ("--model cnn --mixed_precision fp8", "--mixed_precision must be of no, bf16"),
        ("--model cnn --steps 0", "--steps must be 1 or more, got 0"),
        ("--model cnn --max_minutes -1", "--max_minutes must be 0 or more"),
    ],
)
def test_values_that_make_no_sense(arguments: str, message: str):
    assert re.search(message, refusal_of(EXPERIMENT, *arguments.split()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--model mamba --hidden 16 --filter 24", "must be a multiple of 16, .* got 24"),
        ("--model cnn --kernel 4", "kernel must be odd, .* got 4"),
        ("--model cnn --batch_size 400", "batch of 400 needs .* got 100"),
    ],
)
def test_sizes_that_do_not_fit_are_one_line(tmp_path: Path, arguments: str, message: str):
    data = ["--num_train", "100", "--num_eval", "4", "--jobs", "1"]
    where = ["--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")]
    assert re.search(message, refusal_of(EXPERIMENT, *arguments.split(), *data, *where))
