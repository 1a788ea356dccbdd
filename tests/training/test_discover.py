"""What `run_discover` says of a checkpoint that it cannot look into, before a run begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.jobs import refusal_of
from training.discover.experiment import EXPERIMENT
from training.engine import main

CARDS = Path(__file__).parents[2] / "model_cards"


@pytest.mark.parametrize(
    ("checkpoint", "says"),
    [
        ("/tmp/there/is/none", "--checkpoint /tmp/there/is/none is no folder of a checkpoint"),
        (
            str(CARDS / "dat-pargen"),
            "must be a decoder with position_ids, as train_templatic trains, got a model of type",
        ),
        (str(CARDS / "msat-doorway"), "got a model of type msat"),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(checkpoint: str, says: str, tmp_path: Path) -> None:
    assert says in refusal_of(EXPERIMENT, "--checkpoint", checkpoint, "--output_dir", str(tmp_path))


def test_a_learned_subject_needs_a_checkpoint() -> None:
    assert "The subject trained needs --checkpoint" in refusal_of(EXPERIMENT, "--subject", "trained")


def test_the_checkpoint_of_the_package_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    main(EXPERIMENT, ["--checkpoint", str(CARDS / "gpt2-templatic"), "--subject", "trained", "--dry_run"])
    assert "trained" in capsys.readouterr().out
