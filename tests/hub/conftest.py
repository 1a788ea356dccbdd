"""A Hub on this machine, a client of it, and a card folder."""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from huggingface_hub import HfApi

from hf_mech.hub import PaperFigure, Results, measurement, render_folder
from tests.hub.local_hub import LocalHub


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    """An empty Hub."""
    with LocalHub() as server:
        yield server


@pytest.fixture
def api(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> HfApi:
    """The real client of that Hub, which waits for no retry."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    # huggingface_hub's own upload, without Xet, calls its HTTP library in a way that this deprecates.
    warnings.filterwarnings("ignore", message="Use 'content=", category=DeprecationWarning)
    return HfApi(endpoint=hub.url, token="dummy")


@pytest.fixture
def results() -> Results:
    """What a run of two seeds would have written."""
    return Results(
        name="toy",
        command="python train_toy.py --seed 0 1",
        commit="0123456789012345678901234567890123456789",
        machine={"cpu": "an abacus", "gpu": None, "cores": 2},
        versions={"python": "3.11.7", "torch": "2.13.0", "transformers": "5.23.0"},
        seconds=12.5,
        results=[
            measurement(
                "hf_mech/toy", "small", {"num_train": 5}, "accuracy", [1.0, 0.5], PaperFigure(0.9, 0.1, "Table 1")
            ),
            measurement("hf_mech/toy", "small", {"num_train": 9}, "accuracy", [1.0]),
        ],
    )


CARD_YAML = """\
title: A toy
model_class: ToyForCausalLM
summary: It learns *nothing*.
usage: |
  ```python
  AutoModel.from_pretrained("tester/toy", trust_remote_code=True)
  ```
limitations: It is a toy.
citation: "@misc{toy}"
tags: [toys]
task: text-generation
captions: {loss.png: The loss}
"""


@pytest.fixture
def card_folder(tmp_path: Path, results: Results) -> Path:
    """A whole card folder, rendered."""
    folder = tmp_path / "toy-card"
    folder.mkdir()
    (folder / "card.yaml").write_text(CARD_YAML)
    (folder / "loss.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    results.save(folder / "results.json")
    render_folder(folder)
    return folder
