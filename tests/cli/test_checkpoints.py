"""`hf-mech checkpoints`: the list, one of it, its example, and completion."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import HfApi
from transformers import GPT2Config, GPT2LMHeadModel
from typer.testing import CliRunner, Result

import hf_mech.hub.catalogue
from hf_mech.cli import app
from hf_mech.hub.catalogue import CatalogueEntry
from hf_mech.hub.publishing import publish_folder, read_entry
from tests.hub.folders import make_folder
from tests.hub.local_hub import LocalHub

HERE, FAR = "toy-here", "toy-far"


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CatalogueEntry, ...]:
    """A catalogue of two, of which the first lies in this installation."""
    gpt2 = GPT2Config(vocab_size=7, n_embd=4, n_layer=1, n_head=1, n_positions=8, bos_token_id=0, eos_token_id=0)
    cards = tmp_path / "model_cards"
    folder = make_folder(cards, GPT2LMHeadModel(gpt2), HERE, "AutoModelForCausalLM")
    far = CatalogueEntry(
        name=FAR, task="far away", model_type="gpt2", auto_class="AutoModel", headline="[b]0[/b]", bytes=5_660_000
    )
    entries = (read_entry(folder), far)
    monkeypatch.setattr(hf_mech.hub.catalogue, "catalogue", lambda: entries)
    monkeypatch.setattr(hf_mech.hub.catalogue, "_FOLDERS", (cards,))
    monkeypatch.chdir(tmp_path)
    return entries


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["checkpoints", *arguments], catch_exceptions=False)


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("width", [40, 120])
def test_the_list_shows_each_with_the_line_that_loads_it(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hf_mech.cli.console.WIDTH", width)
    done = ask()
    assert (done.exit_code, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    assert lines[4].split() == [FAR, "5.7", "MB", "on", "the", "Hub"]
    assert lines[:4] + lines[5:8] == [
        "toy-here    3 kB  here",
        "the task of toy-here",
        "100 % of nothing",
        'AutoModelForCausalLM.from_pretrained("model_cards/toy-here")',
        "far away",
        "[b]0[/b]",
        'AutoModel.from_pretrained("hf_mech/toy-far")',
    ]


@pytest.mark.usefixtures("listed")
def test_one_of_them() -> None:
    done = ask(HERE)
    assert "100 % of nothing" in done.stdout
    assert done.stdout.endswith('\nmodel = AutoModelForCausalLM.from_pretrained("model_cards/toy-here")\n')


def test_json(listed: tuple[CatalogueEntry, ...], tmp_path: Path) -> None:
    here, far = json.loads(ask("--json").stdout)
    assert (here["source"], here["here"]) == (str(tmp_path / "model_cards" / HERE), True)
    assert (far["source"], far["here"], far["bytes"]) == ("hf_mech/toy-far", False, 5_660_000)
    assert json.loads(ask(FAR, "--json").stdout) == far
    assert far["load"] == 'AutoModel.from_pretrained("hf_mech/toy-far")'
    assert far["headline"] == listed[1].headline


@pytest.mark.usefixtures("listed")
def test_the_example_is_shown_and_run_step_by_step() -> None:
    done = ask(HERE, "--try")
    assert done.exit_code == 0
    shown = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    assert "\nprint(type(model).__name__)\nGPT2LMHeadModel\n2 + sum(\n" in shown
    count = sum(p.numel() for p in GPT2LMHeadModel.from_pretrained(f"model_cards/{HERE}").parameters())
    assert shown.endswith(f"\n)\n{count + 2}")
    assert "hf_mech/toy-here" not in shown


@pytest.mark.usefixtures("listed")
def test_an_example_that_fails_keeps_its_traceback(tmp_path: Path) -> None:
    card = tmp_path / "model_cards" / HERE / "README.md"
    card.write_text("```python\nx = 0\n1 / x\n```\n")
    done = CliRunner().invoke(app, ["checkpoints", HERE, "--try"])
    assert isinstance(done.exception, ZeroDivisionError)
    card.write_text("nothing")
    done = ask(HERE, "--try")
    assert (done.exit_code, done.stderr.startswith("hf-mech: The card has no block of Python")) == (1, True)


@pytest.mark.usefixtures("listed")
def test_without_the_hub_one_sentence_says_what_is_missing() -> None:
    done = ask(FAR, "--try")
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "hf-mech: The checkpoint toy-far is neither in this installation nor reachable on the Hub as hf_mech/toy-far ("
    )
    assert line.endswith("make checkpoints NAME=toy-far")


@pytest.mark.usefixtures("listed")
def test_an_unknown_name_is_answered_with_the_names() -> None:
    done = ask("nonsense")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "There is no checkpoint 'nonsense'; there are toy-here, toy-far." in done.stderr


@pytest.mark.parametrize("arguments", [["--try"], [HERE, "--try", "--json"]])
def test_options_that_do_not_go_together(arguments: list[str]) -> None:
    assert ask(*arguments).exit_code == 2


def test_a_version_without_checkpoints_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf_mech.hub.catalogue, "catalogue", lambda: ())
    assert ask().stdout.startswith("This version has no trained checkpoints.")
    assert json.loads(ask("--json").stdout) == []


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("checkpoints toy-h", [HERE]),
        ("checkpoints ", [HERE, FAR]),
        ("verify toy-f", [FAR]),
        ("verify mod", ["model_cards/"]),
        ("verify model_cards/", [f"model_cards/{HERE}/"]),
    ],
)
def test_the_shell_completes_names(line: str, expected: list[str]) -> None:
    words = f"hf-mech {line}"
    environment = {"_HF_MECH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
    done = CliRunner().invoke(app, [], env=environment, prog_name="hf-mech")
    assert done.stdout.split() == expected


def test_completion_can_be_installed() -> None:
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).stdout


@pytest.mark.usefixtures("listed")
def test_verify_takes_a_name(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["verify", HERE])
    assert (done.exit_code, done.stdout) == (0, "model.safetensors: OK\n")
    weights = tmp_path / "model_cards" / HERE / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    done = CliRunner().invoke(app, ["verify", HERE])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "is damaged, or is of another save" in done.stderr


@pytest.mark.slow
def test_an_example_from_the_hub(listed: tuple[CatalogueEntry, ...], hub: LocalHub, api: HfApi, tmp_path: Path) -> None:
    """In a process where the checkpoint does not lie in the installation."""
    publish_folder(tmp_path / "model_cards" / HERE, f"hf_mech/{HERE}", api=api)
    program = (
        "import sys\nfrom hf_mech.hub import catalogue as c\n"
        f"c._FOLDERS, c.catalogue = (), lambda: (c.CatalogueEntry(**{vars(listed[0])!r}),)\n"
        "from hf_mech.cli import app\napp()\n"
    )
    environment = hub.environment(tmp_path / "home") | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", program, "checkpoints", HERE, "--try"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'from_pretrained("hf_mech/toy-here", trust_remote_code=True)' in done.stdout
    assert "\nGPT2LMHeadModel\n" in done.stdout
