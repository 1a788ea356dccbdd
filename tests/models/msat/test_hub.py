"""What is pushed acts in a process without the package: model and image processor, from one repository."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import HfApi

from hf_mech.hub import push_checkpoint
from hf_mech.models.msat import MSATDecisionTransformer, MSATImageProcessor
from tests.hub.conftest import api, hub  # noqa: F401  fixtures
from tests.hub.local_hub import LocalHub

from .contract import config

ELSEWHERE = """
import json, sys
sys.modules["hf_mech"] = None
import numpy as np
from transformers import AutoImageProcessor, AutoModel, AutoProcessor
model = AutoModel.from_pretrained("tester/doom", trust_remote_code=True).eval()
image_processor = AutoImageProcessor.from_pretrained("tester/doom", trust_remote_code=True)
processor = AutoProcessor.from_pretrained("tester/doom", trust_remote_code=True)
for loaded in (model, image_processor, processor):
    assert type(loaded).__module__.startswith("transformers_modules"), type(loaded)
context, logits = model.start_context(2), []
for frames in np.random.default_rng(0).integers(0, 256, (8, 2, 120, 160, 3)).astype(np.uint8):
    model.act(**processor(frames, return_tensors="pt"), context=context, returns_to_go=1.8)
    logits.append(context.logits.tolist())
print(json.dumps(logits))
"""


@pytest.mark.slow  # the quick test_stranger.py does so too, by its AutoProcessor
def test_what_was_pushed_acts_without_the_package(hub: LocalHub, api: HfApi, tmp_path: Path) -> None:  # noqa: F811
    model = MSATDecisionTransformer(config()).eval()
    processor = MSATImageProcessor.of_config(model.config)
    push_checkpoint(model, "tester/doom", api=api)
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        env=hub.environment(tmp_path / "stranger"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    context = model.start_context(2)
    frames = np.random.default_rng(0).integers(0, 256, (8, 2, 120, 160, 3)).astype(np.uint8)
    for seen, logits in zip(frames, json.loads(done.stdout.splitlines()[-1]), strict=True):
        model.act(**processor(seen, return_tensors="pt"), context=context, returns_to_go=1.8)
        assert context.logits is not None
        assert torch.equal(context.logits, torch.tensor(logits))
