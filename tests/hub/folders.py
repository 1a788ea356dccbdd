"""Small folders as `make checkpoints` leaves them in `model_cards/`: complete but for the code."""

import hashlib
import json
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from hf_mech.hub import Results, measurement, render_folder
from hf_mech.hub.checkpoint import write_checksums

_CARD = """\
title: {name}
model_class: {model_class}
summary: It learns *nothing*.
usage: |
  ```python
  from transformers import {auto_class}

  model = {auto_class}.from_pretrained("hf_mech/{name}", trust_remote_code=True)
  print(type(model).__name__)
  2 + sum(
      p.numel() for p in model.parameters()
  )
  ```

  The data are `load_dataset("hf_mech/strips_traces")`.
limitations: It is a toy.
captions: {{loss.png: The loss}}
"""


def make_folder(parent: Path, model: PreTrainedModel, name: str, auto_class: str, **more: Any) -> Path:
    """A checkpoint's folder of that name, without code."""
    folder = parent / name
    model.save_pretrained(folder)
    for code in folder.glob("*.py"):
        code.unlink()
    config = json.loads((folder / "config.json").read_text())
    for key in ("auto_map", "custom_pipelines"):
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config))
    weights = (folder / "model.safetensors").read_bytes()
    checkpoint = {
        "name": name,
        "task": f"the task of {name}",
        "model_type": config["model_type"],
        "auto_class": auto_class,
        "headline": "100 % of nothing",
        "bytes": len(weights),
        "sha256": {"model.safetensors": hashlib.sha256(weights).hexdigest()},
        **more,
    }
    write_checksums(folder)
    (folder / "one_batch.json").write_text("{}")
    (folder / "checkpoint.json").write_text(json.dumps(checkpoint))
    (folder / "card.yaml").write_text(_CARD.format(name=name, model_class=type(model).__name__, auto_class=auto_class))
    (folder / "loss.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    Results(
        name=name,
        command="python train_toy.py --seed 0",
        commit="0123456789012345678901234567890123456789",
        machine={"cpu": "an abacus", "gpu": None, "cores": 2},
        versions={"python": "3.11.7", "torch": "2.13.0", "transformers": "5.23.0"},
        seconds=12.5,
        results=[measurement("hf_mech/toy", "small", {}, "accuracy", [1.0])],
    ).save(folder / "results.json")
    render_folder(folder)
    return folder
