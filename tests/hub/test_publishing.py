"""`hf-mech push --all`: each folder is one repository that loads by its name; what is there already is not sent."""

import hashlib
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from huggingface_hub import HfApi
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel
from typer.testing import CliRunner, Result

from hf_mech.cli import app
from hf_mech.hub import HubError
from hf_mech.hub.checkpoint import write_checksums
from hf_mech.hub.collection import DESCRIPTION
from hf_mech.hub.publishing import checkpoint_folders, publish_folder, read_entry
from hf_mech.models.belief_state import BeliefStateConfig, BeliefStateForCausalLM
from hf_mech.models.strips import StripsTransformer, StripsTransformerConfig, strips_tokenizer
from tests.hub.folders import make_folder
from tests.hub.local_hub import LocalHub

NAMES = ["a-strips", "b-belief", "c-gpt2"]


@pytest.fixture
def cards(tmp_path: Path, api: HfApi, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `model_cards/` of three checkpoints of different families, and one folder that is none."""
    monkeypatch.setattr("hf_mech.hub.push.HfApi", lambda token: api)
    cards = tmp_path / "model_cards"
    strips = StripsTransformer(StripsTransformerConfig(actions=["go", "stay"], num_propositions=3))
    make_folder(cards, strips, NAMES[0], "AutoModel")
    strips_tokenizer(["go", "stay"]).save_pretrained(cards / NAMES[0])
    belief = BeliefStateConfig(vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=8, eos_token_id=19)
    make_folder(cards, BeliefStateForCausalLM(belief), NAMES[1], "AutoModelForCausalLM")
    gpt2 = GPT2Config(vocab_size=7, n_embd=4, n_layer=1, n_head=1, n_positions=8, bos_token_id=0, eos_token_id=0)
    make_folder(cards, GPT2LMHeadModel(gpt2), NAMES[2], "AutoModelForCausalLM")
    (cards / "notes").mkdir()
    return cards


def push(cards: Path, *options: str) -> Result:
    arguments = ["push", "--all", "--organization", "tester", "--folder", str(cards), *options]
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def commits(hub: LocalHub, name: str) -> int:
    """Of the repository, after its first, empty one."""
    return len(hub.repository(f"tester/{name}").history()) - 1


def uploads(hub: LocalHub) -> list[str]:
    """What was sent since the requests were last cleared."""
    return [path for method, path in hub.requests if method == "PUT" or "/commit/" in path]


def test_a_dry_run_sends_nothing(hub: LocalHub, cards: Path, tmp_path: Path) -> None:
    done = push(cards, "--page", str(tmp_path / "page.md"))
    assert (done.exit_code, done.stderr) == (0, "")
    assert [method for method, _ in hub.requests if method not in ("GET", "HEAD")] == []
    assert not hub.repositories
    for name in NAMES:
        assert f"tester/{name}" in done.stdout
    assert "3 new, 0 changed, 0 unchanged, 0 failed" in done.stdout
    assert "Nothing was sent. --yes" in done.stdout
    page = (tmp_path / "page.md").read_text()
    assert "[b-belief](https://huggingface.co/tester/b-belief) | the task of b-belief | 100 % of nothing |" in page
    assert 'AutoModel.from_pretrained("tester/a-strips", trust_remote_code=True)' in page


def test_what_lies_in_the_repository(hub: LocalHub, cards: Path) -> None:
    assert push(cards, "--yes").exit_code == 0
    files = hub.repository("tester/b-belief").history()[0].files
    folder = cards / "b-belief"
    config, ours = json.loads(files["config.json"].data), json.loads((folder / "config.json").read_text())
    assert config.pop("auto_map")["AutoModelForCausalLM"] == "modeling_belief_state.BeliefStateForCausalLM"
    assert config.pop("custom_pipelines")
    assert config == ours
    for same in ("model.safetensors", "checkpoint.json", "results.json", "loss.png"):
        assert files[same].data == (folder / same).read_bytes()
    assert {"modeling_belief_state.py", "belief_state_infilling.py", "checkpoints.py"} < files.keys()
    assert not {"card.yaml", "one_batch.json"} & files.keys()
    card = files["README.md"].data.decode()
    assert '"tester/b-belief", trust_remote_code=True' in card
    assert 'load_dataset("hf_mech/strips_traces")' in card
    assert card.replace("tester/b-belief", "hf_mech/b-belief") == (folder / "README.md").read_text()
    sums = files["SHA256SUMS"].data.decode()
    assert sums == f"{hashlib.sha256(files['model.safetensors'].data).hexdigest()}  model.safetensors\n"
    assert not [name for name in hub.repository("tester/c-gpt2").history()[0].files if name.endswith(".py")]
    assert {"tokenizer.json", "strips_domain.py"} < hub.repository("tester/a-strips").history()[0].files.keys()


def test_weights_of_another_precision_arrive_byte_for_byte(hub: LocalHub, cards: Path, api: HfApi) -> None:
    """On disk they are bfloat16, the config says float32, and loading and saving would write float32."""
    folder = cards / "c-gpt2"
    weights = {name: tensor.bfloat16() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    content = (folder / "model.safetensors").read_bytes()
    said = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(
        json.dumps({**said, "sha256": {"model.safetensors": hashlib.sha256(content).hexdigest()}})
    )
    write_checksums(folder)
    publish_folder(folder, "tester/other-name", api=api)
    files = hub.repository("tester/other-name").history()[0].files
    assert files["model.safetensors"].data == content
    assert json.loads(files["config.json"].data)["dtype"] == "float32"


def test_a_second_run_sends_only_what_failed(hub: LocalHub, cards: Path) -> None:
    """The first server has no collections; the second run makes the collection, the third adds nothing to it."""
    hub.fail("POST", "/api/collections", 404)
    done = push(cards, "--yes")
    assert done.exit_code == 1
    assert "The repositories are there, but the collection" in done.stderr
    for items in (3, 0):
        hub.requests.clear()
        done = push(cards, "--yes")
        assert (done.exit_code, done.stderr, uploads(hub)) == (0, "", [])
        assert "0 new, 0 changed, 3 unchanged" in done.stdout
        assert len([path for _, path in hub.requests if path.endswith("/items")]) == items
    assert [commits(hub, name) for name in NAMES] == [1, 1, 1]
    (collection,) = hub.collections.values()
    assert [item["id"] for item in collection["items"]] == [f"tester/{name}" for name in NAMES]
    assert collection["items"][0]["note"]["text"] == "the task of a-strips: 100 % of nothing"
    assert len(DESCRIPTION) <= 150


def test_what_changed_is_sent_and_what_is_gone_is_deleted(hub: LocalHub, cards: Path, api: HfApi) -> None:
    push(cards, "--yes")
    api.upload_file(path_or_fileobj=b"kept", path_in_repo="LICENSE", repo_id="tester/c-gpt2")
    (cards / "a-strips" / "loss.png").unlink()
    (cards / "a-strips" / "card.yaml").write_text(
        (cards / "a-strips" / "card.yaml").read_text().replace("captions: {loss.png: The loss}", "")
    )
    assert CliRunner().invoke(app, ["card", str(cards / "a-strips")]).exit_code == 0
    assert "README.md, loss.png" in push(cards).stdout
    done = push(cards, "--yes")
    assert "0 new, 1 changed, 2 unchanged" in done.stdout
    assert [commits(hub, name) for name in NAMES] == [2, 1, 2]
    assert "loss.png" not in hub.repository("tester/a-strips").history()[0].files
    assert "LICENSE" in hub.repository("tester/c-gpt2").history()[0].files


def test_an_interrupted_push_goes_on_where_it_was(hub: LocalHub, cards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upload, calls = HfApi.upload_folder, []

    def interrupted(api: HfApi, *args: object, **options: object) -> object:
        calls.append(options["repo_id"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return upload(api, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(HfApi, "upload_folder", interrupted)
    assert push(cards, "--yes").exit_code == 130
    assert calls == ["tester/a-strips", "tester/b-belief"]
    assert [commits(hub, name) for name in NAMES[:2]] == [1, 0]
    done = push(cards, "--yes")
    assert done.exit_code == 0
    assert calls[2:] == ["tester/b-belief", "tester/c-gpt2"]
    assert [commits(hub, name) for name in NAMES] == [1, 1, 1]


def test_a_failure_names_the_repository_and_the_others_follow(hub: LocalHub, cards: Path) -> None:
    (cards / "a-strips" / "model.safetensors").write_bytes(b"")
    hub.fail("POST", "/api/models/tester/b-belief/commit/", 403)
    done = push(cards, "--yes")
    assert done.exit_code == 1
    first, second = done.stderr.strip().splitlines()
    assert first.startswith("hf-mech: tester/a-strips: ")
    assert second.startswith("hf-mech: tester/b-belief: The upload to tester/b-belief failed: ")
    assert "1 new, 0 changed, 0 unchanged, 2 failed" in done.stdout
    assert commits(hub, "c-gpt2") == 1


def test_other_weights_than_those_measured_are_refused(hub: LocalHub, cards: Path, api: HfApi) -> None:
    folder = cards / "c-gpt2"
    weights = {name: tensor + 1 for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(HubError, match="is damaged, or is of another save"):
        publish_folder(folder, "tester/c-gpt2", api=api)
    write_checksums(folder)
    with pytest.raises(HubError, match=r"The weights in .* expected the SHA-256 sums .*, got "):
        publish_folder(folder, "tester/c-gpt2", api=api)
    assert not hub.requests


@pytest.mark.slow
def test_a_killed_push_goes_on_where_it_was(hub: LocalHub, cards: Path, tmp_path: Path) -> None:
    """A real kill, after the first commit, wherever the process is then."""
    command = [sys.executable, "-m", "hf_mech.cli", "push", "--all", "--organization", "tester", "--yes", "--folder"]
    environment = hub.environment(tmp_path / "home") | {"PYTHONPATH": str(Path(__file__).parents[2])}
    pause = threading.Event()  # the client's time.sleep does nothing in these tests
    with subprocess.Popen([*command, str(cards)], env=environment, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not any("/commit/" in path for _, path in list(hub.requests)):
            pause.wait(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    before = {name: commits(hub, name) for name in NAMES if ("model", f"tester/{name}") in hub.repositories}
    assert sum(before.values()) < 3
    done = subprocess.run([*command, str(cards)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [commits(hub, name) for name in NAMES] == [1, 1, 1]


def test_a_hub_that_does_not_answer(hub: LocalHub, cards: Path) -> None:
    hub.fail("GET", "/api/models/", 403, times=99)
    done = push(cards)
    assert done.exit_code == 1
    assert len(done.stderr.strip().splitlines()) == 3
    assert "tester/a-strips cannot be compared with" in done.stderr


def test_a_hub_that_is_not_there_is_asked_once(cards: Path, api: HfApi) -> None:
    api.endpoint = "http://127.0.0.1:9"
    done = push(cards)
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("hf-mech: The Hub at http://127.0.0.1:9 does not know us, or does not answer: ")


def test_an_unknown_token_may_compare_but_not_send(hub: LocalHub, cards: Path) -> None:
    hub.fail("GET", "/api/whoami-v2", 401, times=2)
    assert "3 new" in push(cards).stdout
    done = push(cards, "--yes")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "Nothing was sent. Check the network" in done.stderr
    assert not hub.repositories


def test_one_folder_by_its_name(hub: LocalHub, cards: Path, tmp_path: Path) -> None:
    """The old form takes a folder of `model_cards/`, too."""
    extra = tmp_path / "domain.json"
    extra.write_text("{}")
    arguments = ["push", str(cards / "a-strips"), "tester/mine", "--private", "--file", str(extra), "--message", "It"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    repository = hub.repository("tester/mine")
    head = repository.history()[0]
    assert (done.exit_code, done.stdout.strip()) == (0, f"{hub.url}/tester/mine/commit/{head.sha}")
    assert (repository.private, head.title) == (True, "It")
    assert "domain.json" in head.files
    assert '"tester/mine", trust_remote_code=True' in head.files["README.md"].data.decode()
    again = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "nothing was sent" in again.stdout
    assert repository.history()[0] == head


@pytest.mark.parametrize(
    "arguments",
    [
        ["--all"],
        ["--all", "--organization", "x", "--message", "m"],
        [".", "x/y", "--yes"],
        [".", "--all", "--organization", "x"],
        [".", "x/y", "--organization", "x"],
    ],
)
def test_options_of_the_other_form_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["push", *arguments]).exit_code == 2


def test_a_folder_without_checkpoints_is_refused(tmp_path: Path) -> None:
    done = push(tmp_path)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "has no folder with a checkpoint.json" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "is not JSON"), ("[]", "must be a JSON object"), ("{}", "lacks name, task")],
)
def test_a_faulty_checkpoint_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "checkpoint.json").write_text(content)
    with pytest.raises(HubError, match=message):
        read_entry(tmp_path)


def test_a_renamed_folder_is_refused(cards: Path) -> None:
    folder = (cards / "a-strips").rename(cards / "renamed")
    with pytest.raises(HubError, match="is that of the checkpoint 'a-strips', but its folder is 'renamed'"):
        read_entry(folder)


def test_folders_are_found_by_their_names(cards: Path) -> None:
    assert [folder.name for folder in checkpoint_folders(cards)] == NAMES
