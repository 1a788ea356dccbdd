"""SHA256SUMS: written with the weights, checked on request, also by `sha256sum`, and what is wrong has a type."""

import shutil
import subprocess
from pathlib import Path

import pytest
from huggingface_hub import HfApi
from transformers import GPT2Config, GPT2LMHeadModel
from typer.testing import CliRunner

from hf_mech.cli import app
from hf_mech.hub import (
    HubError,
    push_checkpoint,
    save_checkpoint,
    verify_checksums,
)
from hf_mech.hub.checkpoint import write_checksums
from tests.hub.local_hub import LocalHub
from tests.hub.toy import ToyConfig, ToyForCausalLM

runner = CliRunner()
SHARDS = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    save_checkpoint(ToyForCausalLM(ToyConfig()), tmp_path / "toy")
    return tmp_path / "toy"


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=64, n_layer=2, n_head=1, n_positions=8))
    model.save_pretrained(tmp_path / "gpt2", max_shard_size="180kB")
    write_checksums(tmp_path / "gpt2")
    assert sorted(path.name for path in (tmp_path / "gpt2").glob("*.safetensors")) == SHARDS
    return tmp_path / "gpt2"


def flip(file: Path) -> None:
    """Flips one bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_a_whole_checkpoint(checkpoint: Path, sharded: Path) -> None:
    assert verify_checksums(checkpoint) == ["model.safetensors"]
    assert verify_checksums(sharded) == SHARDS


def test_sha256sum_reads_it(checkpoint: Path) -> None:
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(command, cwd=checkpoint, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "model.safetensors: OK\n")
    flip(checkpoint / "model.safetensors")
    assert subprocess.run(command, cwd=checkpoint, capture_output=True).returncode == 1


def test_what_sha256sum_writes_is_read(sharded: Path) -> None:
    for option in ("--binary", "--text"):
        written = subprocess.run(["sha256sum", option, *SHARDS], cwd=sharded, capture_output=True, check=True).stdout
        (sharded / "SHA256SUMS").write_bytes(written)
        assert verify_checksums(sharded) == SHARDS


def test_a_flipped_bit_is_found(checkpoint: Path, sharded: Path) -> None:
    flip(checkpoint / "model.safetensors")
    flip(sharded / SHARDS[1])
    with pytest.raises(HubError, match=r"model.safetensors in .* is damaged.*expected .* got "):
        verify_checksums(checkpoint)
    with pytest.raises(HubError, match=SHARDS[1]):
        verify_checksums(sharded)


def test_a_missing_file_is_found(sharded: Path) -> None:
    (sharded / SHARDS[2]).unlink()
    with pytest.raises(HubError, match=f"names {SHARDS[2]}, which is not in"):
        verify_checksums(sharded)


def test_weights_that_are_not_listed_are_found(checkpoint: Path, sharded: Path) -> None:
    shutil.copy(checkpoint / "model.safetensors", checkpoint / "adapter.safetensors")
    with pytest.raises(HubError, match=r"adapter\.safetensors"):
        verify_checksums(checkpoint)
    lines = (sharded / "SHA256SUMS").read_text().splitlines(keepends=True)
    (sharded / "SHA256SUMS").write_text("".join(lines[:2]))
    (sharded / SHARDS[2]).unlink()
    with pytest.raises(HubError, match=SHARDS[2]):
        verify_checksums(sharded)


@pytest.mark.parametrize("text", [None, "", "\n"])
def test_no_checksums(checkpoint: Path, text: str | None) -> None:
    (checkpoint / "SHA256SUMS").unlink()
    if text is not None:
        (checkpoint / "SHA256SUMS").write_text(text)
    with pytest.raises(HubError, match="nothing can be checked"):
        verify_checksums(checkpoint)


@pytest.mark.parametrize(
    "line", ["nonsense", f"{'a' * 63}  x", f"{'a' * 64} x", f"{'a' * 64}  ../x", f"{'a' * 64}  /etc/passwd"]
)
def test_lines_of_another_form(checkpoint: Path, line: str) -> None:
    (checkpoint / "SHA256SUMS").write_text(f"{line}\n")
    with pytest.raises(HubError, match="SHA256SUMS, line 1: expected 64 hexadecimal digits"):
        verify_checksums(checkpoint)


def test_an_index_that_is_none(sharded: Path) -> None:
    (sharded / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(HubError, match="is no index of weights"):
        verify_checksums(sharded)


def test_a_second_save_replaces_weights_and_sums(checkpoint: Path, sharded: Path) -> None:
    before = (checkpoint / "SHA256SUMS").read_text()
    save_checkpoint(ToyForCausalLM(ToyConfig()), checkpoint)
    assert (checkpoint / "SHA256SUMS").read_text() != before
    assert verify_checksums(checkpoint) == ["model.safetensors"]
    save_checkpoint(GPT2LMHeadModel.from_pretrained(sharded), sharded)
    assert verify_checksums(sharded) == ["model.safetensors"]
    assert not [*sharded.glob("model-*"), *sharded.glob("*.index.json"), *sharded.glob(".*")]


def test_the_command(checkpoint: Path) -> None:
    done = runner.invoke(app, ["verify", str(checkpoint)])
    assert (done.exit_code, done.output) == (0, "model.safetensors: OK\n")
    flip(checkpoint / "model.safetensors")
    done = runner.invoke(app, ["verify", str(checkpoint)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("hf-mech: model.safetensors in ")
    assert runner.invoke(app, ["verify", str(checkpoint), "--revision", "main"]).exit_code == 1


def test_through_the_hub(
    hub: LocalHub, api: HfApi, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pushed, downloaded and checked; then damaged on the Hub; and an earlier revision is still whole."""
    import huggingface_hub

    def download(repo_id: str, **options: object) -> str:
        options.pop("token")
        return api.snapshot_download(repo_id, cache_dir=tmp_path / "cache", **options)  # type: ignore[arg-type]

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    commit = push_checkpoint(ToyForCausalLM(ToyConfig()), "tester/toy", api=api)
    assert verify_checksums("tester/toy") == ["model.safetensors"]
    damaged = tmp_path / "damaged.safetensors"
    shutil.copy(checkpoint / "model.safetensors", damaged)
    flip(damaged)
    api.upload_file(path_or_fileobj=damaged, path_in_repo="model.safetensors", repo_id="tester/toy")
    with pytest.raises(HubError, match="tester/toy"):
        verify_checksums("tester/toy")
    assert verify_checksums("tester/toy", revision=commit.oid) == ["model.safetensors"]
    with pytest.raises(HubError, match="tester/nothing is no folder, and cannot be read from the Hub"):
        verify_checksums("tester/nothing")


def test_names_that_are_neither_folder_nor_repository(tmp_path: Path) -> None:
    with pytest.raises(HubError, match="is no folder, and cannot be read from the Hub"):
        verify_checksums(tmp_path / "nowhere" / "else")


def test_a_name_that_no_file_can_have(checkpoint: Path) -> None:
    (checkpoint / "SHA256SUMS").write_text("0" * 64 + "  " + "a" * 5000 + "\n")
    with pytest.raises(HubError, match="names aaa"):
        verify_checksums(checkpoint)
