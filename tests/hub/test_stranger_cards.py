"""Every folder of `model_cards/`, pushed, loads by its name without hf_mech, and its card's example runs there."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi
from transformers import GPT2Config, GPT2LMHeadModel

from hf_mech.hub.catalogue import CHECKPOINT_FILE, MODEL_CARDS
from hf_mech.hub.publishing import publish_all
from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig
from tests.hub.folders import make_folder
from tests.hub.local_hub import LocalHub

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),  # huggingface_hub's upload, without Xet
]

TOYS = ["toy-gpt2", "toy-strips"]
OUTPUT = re.compile(r"\A.*?^```python\n.*?^```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""The block below a card's example: its output where it was rendered."""
FOLDERS = {path.parent.name: path.parent for path in sorted(MODEL_CARDS.glob(f"*/{CHECKPOINT_FILE}"))}


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders of ours, so that something is tested where nothing has been trained."""
    cards = tmp_path_factory.mktemp("model_cards")
    gpt2 = GPT2Config(vocab_size=7, n_embd=4, n_layer=1, n_head=1, n_positions=8, bos_token_id=0, eos_token_id=0)
    strips = StripsTransformer(StripsTransformerConfig(num_actions=4, num_propositions=3))
    return [
        make_folder(cards, GPT2LMHeadModel(gpt2), TOYS[0], "AutoModelForCausalLM"),
        make_folder(cards, strips, TOYS[1], "AutoModel"),
    ]


@pytest.fixture(scope="module")
def answers(toys: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the stranger found, for each name."""
    folders = [*toys, *FOLDERS.values()]
    with LocalHub() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        patch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        api = HfApi(endpoint=hub.url, token="dummy")
        errors = {one.name: one.error for one in publish_all(folders, "tester", send=True, api=api) if one.error}
        script = Path(__file__).with_name("stranger_cards.py")
        asked = [f"tester/{folder.name}" for folder in folders if folder.name not in errors]
        done = subprocess.run(
            [sys.executable, "-I", str(script), *asked],
            env=hub.environment(tmp_path_factory.mktemp("home")),
            cwd=tmp_path_factory.mktemp("elsewhere"),
            stdin=subprocess.DEVNULL,  # a question whether code is trusted is no part of an example's output
            capture_output=True,
            text=True,
            timeout=1800,
        )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: {"error": error} for name, error in errors.items()} | {
        one["repo_id"].partition("/")[2]: one for one in found
    }


@pytest.mark.parametrize("name", [*TOYS, *FOLDERS])
def test_it_loads_by_its_name_and_its_card_runs(
    name: str, answers: dict[str, dict[str, Any]], toys: list[Path]
) -> None:
    folder = FOLDERS.get(name) or toys[TOYS.index(name)]
    about = json.loads((folder / CHECKPOINT_FILE).read_text("utf-8"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    answer = answers[name]
    assert "error" not in answer, answer["error"]
    assert answer["class"] == config["architectures"][0]
    assert answer["missing"] == []
    assert answer["sha256"] == about["sha256"]["model.safetensors"]
    assert answer["printed"].strip(), "the card's example prints nothing"
    if shown := OUTPUT.search((folder / "README.md").read_text("utf-8")):
        assert answer["printed"].rstrip() == shown[1].rstrip()


def test_code_came_from_the_repository(answers: dict[str, dict[str, Any]]) -> None:
    """Not from an installation: a model of ours is in the module of remote code, a stock one in transformers."""
    assert answers["toy-strips"]["module"] == "transformers_modules"
    assert answers["toy-gpt2"]["module"] == "transformers"
    assert answers["toy-gpt2"]["printed"] == "GPT2LMHeadModel\n"
