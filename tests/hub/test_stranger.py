"""What was pushed loads by name in a process where hf_mech cannot be imported, with the same logits."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import HfApi

from hf_mech.hub import PushError, push_checkpoint, push_dataset
from hf_mech.models.msat import MSATDecisionTransformer, MSATDecisionTransformerConfig, MSATImageProcessor
from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig
from tests.hub.local_hub import LocalHub
from tests.hub.toy import ToyConfig, ToyForCausalLM
from tests.hub.toy_dataset import ToyDataset

pytestmark = pytest.mark.slow  # a checkpoint without the package is in the contract suite, too

INPUT_IDS = torch.tensor([[0, 1, 2, 3]])


@torch.no_grad()
def test_what_was_pushed_loads_without_the_package(
    hub: LocalHub, api: HfApi, card_folder: Path, tmp_path: Path
) -> None:
    toy = ToyForCausalLM(ToyConfig()).eval()
    strips = StripsTransformer(StripsTransformerConfig(num_actions=4, num_propositions=3, ensemble=2)).eval()
    push_checkpoint(toy, "tester/toy", api=api, card_folder=card_folder)
    push_checkpoint(strips, "tester/strips", api=api)
    config = MSATDecisionTransformerConfig(action_sizes=[3, 3], state_shape=[3, 36, 36], n_layer=2, n_head=2, n_embd=16)
    doom = MSATDecisionTransformer(config).eval()
    push_checkpoint(doom, "tester/doom", api=api)
    for name in ("small", "large"):
        push_dataset(ToyDataset(config_name=name, cache_dir=str(tmp_path / "cache")), "tester/toy_data", api=api)

    hub.fail("PUT", "/_lfs/", "close", times=99)
    try:
        push_checkpoint(ToyForCausalLM(ToyConfig()), "tester/toy", api=api)
    except PushError:
        hub.faults.clear()
    else:
        raise AssertionError("the upload was cut off and nobody noticed")

    answers = _ask_a_stranger(hub, tmp_path / "home")
    assert answers["module"] == "transformers_modules"
    torch.testing.assert_close(torch.tensor(answers["logits"]), toy(INPUT_IDS).logits, rtol=0, atol=0)
    assert answers["head"] == "StripsTransformerForTokenClassification"
    torch.testing.assert_close(
        torch.tensor(answers["inapplicability"]), strips(INPUT_IDS).inapplicability, rtol=0, atol=0
    )
    context, processor = doom.start_context(2), MSATImageProcessor.of_config(config)
    frames = np.random.default_rng(0).integers(0, 256, (8, 2, 120, 160, 3)).astype(np.uint8)
    for seen, logits in zip(frames, answers["decided"], strict=True):
        doom.act(**processor(seen, return_tensors="pt"), context=context, returns_to_go=1.8)
        assert context.logits is not None
        assert torch.equal(context.logits.nan_to_num(neginf=0), torch.tensor(logits))
    assert answers["rows"] == {"train": 100, "test": 3}
    assert answers["parity"] == ["even", "odd"]
    assert [row["number"] for row in answers["streamed"]] == [10, 11, 12]


def _ask_a_stranger(hub: LocalHub, home: Path) -> dict:
    script = Path(__file__).with_name("stranger.py")
    answer = subprocess.run(
        [sys.executable, "-I", str(script)],
        env=hub.environment(home),
        cwd=home.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout.splitlines()[-1])
