"""Pushing a trained model: weights, code, tokenizer, card and figures, in one commit.

the repository after `push_checkpoint(model, "user/name", card_folder="model_cards/name")`
    config.json             with the `auto_map` of every head
    model.safetensors  SHA256SUMS
    configuration_*.py  modeling_*.py  ...      the code: it loads without hf_mech
    tokenizer.json  ...     if there is a tokenizer or processor
    README.md  results.json  *.png  *.gif       the card, and the run that its numbers come from
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from huggingface_hub import CommitInfo, HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from hf_mech.hub.card import CARD_FILE, RESULTS_FILE, check_folder, figures_of
from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.hub.errors import PushError, PushRefusedError
from hf_mech.hub.redaction import redact
from hf_mech.hub.results import Results

if TYPE_CHECKING:
    from transformers import PreTrainedModel


PREFIX = "hf_mech-push-"
_LOCK = "lock"
_NEW, _OLD = 60.0, 86_400.0  # seconds


@contextmanager
def push_folder() -> Iterator[Path]:
    """An empty folder that exists until the block ends. It is locked meanwhile: no other push removes it.

    The lock lies beside the folder's files: all of these are uploaded.
    """
    sweep_push_folders()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as outer:
        with FileLock(Path(outer) / _LOCK):
            folder = Path(outer) / "files"
            folder.mkdir()
            yield folder


def sweep_push_folders() -> None:
    """Remove the folders of pushes that were killed: those that nobody has locked."""
    for outer in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or another push removes it right now
            age = time.time() - outer.stat().st_mtime
            if age < _NEW or outer.is_symlink():
                continue  # perhaps not locked yet
            if not (outer / _LOCK).exists():
                if age > _OLD:  # earlier versions had no lock
                    shutil.rmtree(outer)
                continue
            with suppress(Timeout), FileLock(outer / _LOCK, timeout=0):
                shutil.rmtree(outer)


# ----------------------------------------------------------------------------------------------------------------------
# Uploads a finished folder to the Hub in one commit; after a failure, reports the repository's state.


def check_repo_id(repo_id: str) -> None:
    """Check a repository's name before any other work.

    Raises:
        PushRefusedError: if the Hub would not accept the name.
    """
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise PushRefusedError(f"{repo_id!r} is not a name for a repository on the Hub: {error}") from error


def upload_in_one_commit(
    api: HfApi,
    folder: str | os.PathLike[str],
    repo_id: str,
    *,
    commit_message: str,
    repo_type: str = "model",
    private: bool | None = None,
    parent_commit: str | None = None,
    delete_patterns: list[str] | None = None,
) -> CommitInfo:
    """Create the repository if it does not exist, and upload the whole folder in a single commit.

    huggingface_hub repeats requests after temporary failures (a lost connection, a busy server). Large files are sent
    before the commit and become visible with it, so a failure leaves the repository unchanged.

    Args:
        api: the client, with its endpoint and token.
        folder: the finished folder.
        repo_id: `"user/name"`.
        commit_message: the commit's title.
        repo_type: "model" or "dataset".
        private: for a new repository; None is the Hub's default.
        parent_commit: refuse if the repository has a newer commit than this one.
        delete_patterns: files of the repository to delete in the same commit unless the folder holds them.

    Raises:
        PushError: if the upload fails; its message names the current state of the repository.
    """
    before: str | None = None
    try:
        repo_id = api.create_repo(repo_id, repo_type=repo_type, private=private, exist_ok=True).repo_id
        before = api.repo_info(repo_id, repo_type=repo_type).sha
        return api.upload_folder(
            repo_id=repo_id,
            folder_path=str(folder),
            repo_type=repo_type,
            commit_message=commit_message,
            parent_commit=parent_commit,
            delete_patterns=delete_patterns,
        )
    except Exception as error:  # the client raises errors of several libraries; the cause stays attached
        failure = f"The upload to {repo_id} failed: {_first_line(error)}."
        raise PushError(f"{failure} {_state_after(failure, api, repo_id, repo_type, before)}") from error


def _state_after(failure: str, api: HfApi, repo_id: str, repo_type: str, before: str | None) -> str:
    if before is None:
        return "Nothing was sent. Check the address, the token and its rights (`hf auth whoami`), and push again."
    try:
        now = api.repo_info(repo_id, repo_type=repo_type).sha
    except Exception as error:
        raise PushError(
            f"{failure} The Hub does not answer now ({_first_line(error)}); the last good commit before this push was "
            f"{before}. Push again when it answers."
        ) from error
    if now != before:
        return (
            f"Meanwhile the repository has moved from commit {before} to {now}: either this push arrived and only the "
            "reply was lost, or somebody else pushed. Look at it before you push again."
        )
    return (
        f"The repository still holds its last good commit {before}. Push again: files that have already arrived are "
        "not sent twice."
    )


def _first_line(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ is not None else None
    text = redact(str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
    return f"{text} ({_first_line(cause)})" if cause is not None else text


# ----------------------------------------------------------------------------------------------------------------------
# Pushing a trained model: weights, code, tokenizer, card and figures, in one commit.
#
# the repository after `push_checkpoint(model, "user/name", card_folder="model_cards/name")`
#     config.json             with the `auto_map` of every head
#     model.safetensors  SHA256SUMS
#     configuration_*.py  modeling_*.py  ...      the code: it loads without hf_mech
#     tokenizer.json  ...     if there is a tokenizer or processor
#     README.md  results.json  *.png  *.gif       the card, and the run that its numbers come from


def push_checkpoint(
    model: PreTrainedModel,
    repo_id: str,
    *,
    processing_class: Any | None = None,
    card_folder: str | PathLike[str] | None = None,
    extra_files: Mapping[str, str | PathLike[str]] | None = None,
    private: bool | None = None,
    token: str | bool | None = None,
    commit_message: str = "Upload model",
    api: HfApi | None = None,
) -> CommitInfo:
    """Upload a model with everything that belongs to it, in exactly one commit.

    All files are made and checked before anything is sent. Without hf_mech, the checkpoint loads by its name with
    `trust_remote_code=True`, through every Auto class of the model type.

    Args:
        model: the trained model.
        repo_id: `"user/name"`; created if it does not exist.
        processing_class: the model's tokenizer or processor.
        card_folder: the folder of its card (README.md, results.json and pictures), see [`~hf_mech.hub.card`].
        extra_files: path in the repository -> local file, for further files of the model.
        private: for a new repository; None is the Hub's default.
        token: as everywhere in huggingface_hub; None takes the saved one. Not together with `api`.
        commit_message: the commit's title.
        api: a client of your own, for another endpoint.

    Returns:
        The commit.

    Raises:
        PushRefusedError: if the name, the code or the extra files are invalid. Nothing was sent.
        CardError, ResultsError: if the card has numbers that do not come from a run. Nothing was sent.
        PushError: if the upload failed. The repository keeps its last good commit, named in the message.
    """
    check_repo_id(repo_id)
    if api is not None and token is not None:
        raise PushRefusedError("Give either `token` or an `api` that has one, not both.")
    with push_folder() as folder:
        prepare_checkpoint(
            model, folder, processing_class=processing_class, card_folder=card_folder, extra_files=extra_files
        )
        return upload_in_one_commit(
            api or HfApi(token=token), folder, repo_id, private=private, commit_message=redact(commit_message)
        )


def prepare_checkpoint(
    model: PreTrainedModel,
    folder: str | PathLike[str],
    *,
    processing_class: Any | None = None,
    card_folder: str | PathLike[str] | None = None,
    extra_files: Mapping[str, str | PathLike[str]] | None = None,
) -> None:
    """Write to `folder` exactly the files that [`push_checkpoint`] uploads; arguments and errors are the same."""
    folder = Path(folder)
    if card_folder is not None:
        check_folder(card_folder)
    _check_extra_files(extra_files or {})
    save_checkpoint(model, folder, processing_class=processing_class)
    if card_folder is not None:
        for name in (CARD_FILE, *figures_of(card_folder)):
            shutil.copyfile(Path(card_folder) / name, folder / name)
        Results.load(Path(card_folder) / RESULTS_FILE).save(folder / RESULTS_FILE)  # an older one may hold a secret
    for name, source in (extra_files or {}).items():
        target = folder / name
        if target.exists():
            raise PushRefusedError(f"extra_files would replace {name}, which the checkpoint has. Give it another name.")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _check_extra_files(extra_files: Mapping[str, str | PathLike[str]]) -> None:
    for name, source in extra_files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or ".." in path.parts:
            raise PushRefusedError(f"extra_files: {name!r} must be a path in the repository, such as 'domain.json'.")
        if not Path(source).is_file():
            raise PushRefusedError(f"extra_files: {name} should come from {source}, which is not a file.")
