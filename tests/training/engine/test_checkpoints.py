"""The machinery of `make checkpoints`, on the toy experiment."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from hf_mech.hub import check_folder
from tests.training.toy.checkpoints import CHECKPOINTS, COUNTER
from training import make_checkpoints
from training.engine.checkpoints import BarError, is_whole, make_checkpoint, one_batch
from training.engine.recipe import EVALUATION_SEED

GOOD, TOO_GOOD = CHECKPOINTS.recipes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of one checkpoint and the run behind it."""
    root = tmp_path_factory.mktemp("made")
    assert make_checkpoint(CHECKPOINTS, GOOD, root / "runs", root / "cards") == root / "cards" / "counter"
    return root


def test_a_checkpoint_is_whole_and_says_where_it_comes_from(made: Path) -> None:
    folder = made / "cards" / "counter"
    check_folder(folder)
    assert is_whole(folder, COUNTER)
    record = json.loads((folder / "checkpoint.json").read_text())
    assert record["command"] == "python -m training.train_toy --seeds 3"
    assert record["evaluation_seed"] == EVALUATION_SEED
    assert record["auto_class"] == "AutoModelForCausalLM"
    assert record["headline"] == f"{100 * record['measured']['accuracy']['value']:.4g} % right"
    assert record["versions"]["torch"]
    assert set(record["sha256"]) == {"model.safetensors", "beside.safetensors"}
    assert record["measured"]["beside"] == {"value": 0.5, "count": 1}
    assert (folder / "dot.png").read_bytes() == b"a picture"
    assert sorted(path.name for path in made.glob("cards/*")) == ["counter"]


def test_weights_are_stored_in_16_bits_and_computed_with_in_32(made: Path) -> None:
    folder = made / "cards" / "counter"
    stored = load_file(folder / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.dtype == torch.float32
    trained = AutoModelForCausalLM.from_pretrained(made / "runs/toy/5-cpu-seed3/model")
    for name, weight in trained.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight.half().float()), name


def test_the_card_shows_the_real_output_of_its_snippet(made: Path) -> None:
    text = (made / "cards" / "counter" / "README.md").read_text()
    assert 'from_pretrained("hf_mech/counter")' in text
    assert "```text\n16\n```" in text


def test_one_batch_tells_a_changed_weight(made: Path) -> None:
    folder = made / "cards" / "counter"
    before = json.loads((folder / "one_batch.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    batch = CHECKPOINTS.batch(CHECKPOINTS.run(COUNTER, made / "runs" / "toy"), model, None)
    again = one_batch(model, batch)
    assert again["outputs"]["logits"]["entries"] == pytest.approx(before["outputs"]["logits"]["entries"], abs=1e-5)
    assert again["gradient_norms"] == pytest.approx(before["gradient_norms"], rel=1e-4)
    with torch.no_grad():
        model.transformer.h[0].mlp.c_fc.weight[0, 0] += 0.1
    changed = one_batch(model, batch)
    assert changed["outputs"]["logits"]["mixed"] != pytest.approx(before["outputs"]["logits"]["mixed"], rel=1e-3)
    assert changed["gradient_norms"] != pytest.approx(before["gradient_norms"], rel=1e-4)


def test_below_the_bar_nothing_is_written(made: Path) -> None:
    with pytest.raises(BarError, match=r"accuracy must be at least 1\.1, got .*Nothing was written"):
        make_checkpoint(CHECKPOINTS, TOO_GOOD, made / "runs", made / "cards")
    assert sorted(path.name for path in made.glob("cards/*")) == ["counter"]


def test_a_recipe_is_one_run() -> None:
    with pytest.raises(ValueError, match="counter: a checkpoint is one run, its options make 2"):
        CHECKPOINTS.run(replace(COUNTER, options="--seeds 1,2"), Path("runs"))


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {recipe.name: (CHECKPOINTS, recipe) for recipe in CHECKPOINTS.recipes}
    monkeypatch.setattr(make_checkpoints, "all_recipes", lambda: known)


def test_the_command_of_one_process(
    toys: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What each child does, and what a dry run says before and after."""
    folders = ["--output_dir", str(tmp_path / "runs"), "--cards_dir", str(tmp_path / "cards")]

    def state() -> dict[str, Any]:
        assert make_checkpoints.main(["--dry_run", *folders]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        return {words[0]: words[1] for words in lines if words and words[0] in ("counter", "too-good")}

    assert state() == {"counter": "to", "too-good": "to"}
    monkeypatch.setenv("HF_MECH_MAKES_ONE_CHECKPOINT", str(os.getppid()))
    assert make_checkpoints.main(["counter", *folders]) == 0
    assert make_checkpoints.main(["too-good", *folders]) == 1
    monkeypatch.delenv("HF_MECH_MAKES_ONE_CHECKPOINT")
    assert state() == {"counter": "done", "too-good": "to"}
    weights = tmp_path / "cards" / "counter" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + b"?")  # as after a kill while the files were replaced: it is made again
    assert state()["counter"] == "to"
    weights.write_bytes(whole)
    assert state()["counter"] == "done"
    (tmp_path / "cards" / "counter" / "checkpoint.json").unlink()
    assert state()["counter"] == "to"


def test_an_unknown_name_is_refused(toys: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_checkpoints.main(["conter"]) == 2
    assert "There is no checkpoint conter; there are counter, too-good." in capsys.readouterr().err


def test_why_a_checkpoint_failed_is_the_last_line(
    toys: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A full disk, for one: where people look first, and whole, however narrow the table."""
    reason = "runs cannot be written: No space left on device. Free space there"
    monkeypatch.setattr(make_checkpoints, "_make_all", lambda *_: {"too-good": reason})
    assert make_checkpoints.main(["--output_dir", str(tmp_path), "--cards_dir", str(tmp_path)]) == 1
    printed = capfd.readouterr()
    assert printed.err.splitlines()[-1] == f"too-good: {reason}"
    assert [line.split()[1] for line in printed.out.splitlines() if line.split()[:1] == ["too-good"]] == ["failed"]
