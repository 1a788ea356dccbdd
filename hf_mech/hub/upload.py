"""Uploads a finished folder to the Hub in one commit; after a failure, reports the repository's state."""

import os

from huggingface_hub import CommitInfo, HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from hf_mech.hub.errors import PushError, PushRefusedError
from hf_mech.hub.redaction import redact


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
