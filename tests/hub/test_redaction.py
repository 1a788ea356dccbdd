"""No secret is in what hf_mech writes, sends or prints, and no other text is changed."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from huggingface_hub import HfApi

from hf_mech.hub import Results, check_folder, export_dataset, push_checkpoint, render_folder
from hf_mech.hub.environment import running_command
from hf_mech.hub.files import write_text_atomically
from hf_mech.hub.redaction import redact, redacted_traceback
from tests.hub.local_hub import LocalHub
from tests.hub.toy import ToyConfig, ToyForCausalLM
from tests.hub.toy_dataset import ToyDataset

TOKEN = 'a "token" with \\ of the hub'


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-openai\n")
    monkeypatch.setattr("hf_mech.hub.redaction._remembered", set())


def test_results_and_card(card_folder: Path, results: Results) -> None:
    results.command = f"python train.py --note {TOKEN} --url https://me:pass-word@host/x"
    results.machine["cpu"] = f"{TOKEN} key-of-openai"
    results.save(card_folder / "results.json")
    text = card_folder / "card.yaml"
    made = "Made with key-of-openai and hf_aB3aB3aB3aB3aB3aB3. It learns"
    text.write_text(text.read_text().replace("It learns", made))
    render_folder(card_folder)
    check_folder(card_folder)
    loaded = Results.load(card_folder / "results.json")
    assert loaded.command == "python train.py --note *** --url https://***@host/x"
    assert loaded.machine["cpu"] == "*** ***"
    card = (card_folder / "README.md").read_text()
    assert "Made with *** and ***. It learns" in card
    assert not [secret for secret in (TOKEN, "key-of-openai", "pass-word") if secret in card]


def test_a_push(hub: LocalHub, api: HfApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hf_mech.hub.push.HfApi", lambda token: api)
    title = "Made with given-token, key-of-openai"
    push_checkpoint(ToyForCausalLM(ToyConfig()), "tester/toy", token="given-token", commit_message=title)
    assert hub.repository("tester/toy").history()[0].title == "Made with ***, ***"


def test_the_card_of_a_data_set(tmp_path: Path) -> None:
    builder = ToyDataset(config_name="small", cache_dir=str(tmp_path / "cache"))
    builder.info.description = "Made with key-of-openai; token=word stays."
    assert "Made with ***; token=word stays." in export_dataset(builder, tmp_path / "export").read_text()


def test_the_running_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["/bin/python3", "x.py", f"--note={TOKEN}", "--url", "https://me:x@h", "a b"])
    assert shlex.split(running_command()) == ["python", "x.py", "--note=***", "--url", "https://***@h", "a b"]


def test_a_traceback() -> None:
    assert redacted_traceback(KeyError("an ordinary name")) is None
    assert "KeyError: 'sent ***'" in str(redacted_traceback(KeyError("sent key-of-openai")))


def test_any_file_in_any_spelling(tmp_path: Path) -> None:
    spellings = (TOKEN, json.dumps(TOKEN)[1:-1], quote(TOKEN, safe=""))
    assert write_text_atomically(tmp_path / "x", " | ".join(spellings)).read_text() == "*** | *** | ***"


@pytest.mark.parametrize(
    "token",
    [
        "hf_" + "aB3" * 11,
        "sk-proj-" + "a1B2" * 10,
        "ghp_" + "a1B2" * 9,
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "AIza" + "a1B2c" * 7,
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdef",
    ],
)
def test_tokens_of_a_known_form(token: str) -> None:
    assert redact({"a": [f"before {token}, after"]}) == {"a": ["before ***, after"]}


@pytest.mark.parametrize(
    "value",
    [
        "python -m training.train_lm --max_new_tokens 5 --eos_token '</s>' --pad_token=x --token_path /a/token",
        "hf-mech test-llm token-classifier --base-url http://localhost:8000/v1 --api-key-env MY_API_KEY",
        "hf-internal-testing/tiny-random-gpt2 sk-learn-a-long-name-of-no-secret hf_mech_strips hf_mech/star_graph",
        "git+https://github.com/user/repo@v1.0 https://medium.com/@user/a?page=3 a@b.com http://h:80/@me git@h:u/r.git",
        {"commit": "a" * 40, "max_tokens": 256, "token": "</s>", "none": None, "values": (1, 2.5, True)},
        "see /home/somebody/else; split=test; 0.12345678",
    ],
)
def test_ordinary_values_stay(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's other values, short passwords, which are words, and numbers are no secrets."""
    for name, other in {"OLDPWD": "/home/somebody/else", "A_PASSWORD": "test", "PIN_TOKEN": "12345678"}.items():
        monkeypatch.setenv(name, other)
    assert redact(value) == value
