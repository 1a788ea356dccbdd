"""Publishing the folders of `model_cards/`: each becomes a repository of the same name.

A folder is complete but for its code, which lies once in this package and goes along here.

the repository `<organization>/<name>`, made of the folder `model_cards/<name>`
    config.json             the folder's, with the `auto_map` of every head and the `custom_pipelines`
    model.safetensors  SHA256SUMS       byte for byte the folder's
    tokenizer.json  ...     the folder's; a tokenizer or processor of our own gets its `auto_map`
    *.py                    the code: it loads without hf_mech
    README.md               the folder's, with the repository's name in its example
    results.json  checkpoint.json  *.png  ...       the folder's; card.yaml and one_batch.json stay here

A repository that holds these files already is left alone, so a push that was killed goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import HfApi, RepoFile
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, RepositoryNotFoundError

from hf_mech.hub.card import CARD_FILE, TEXT_FILE, check_folder
from hf_mech.hub.catalogue import CHECKPOINT_FILE, ONE_BATCH_FILE, CatalogueEntry
from hf_mech.hub.checkpoint import (
    CODE_KEYS,
    load_checkpoint,
    load_processing_class,
    read_checksums,
    save_checkpoint,
    verify_checksums,
    write_checksums,
)
from hf_mech.hub.files import HubError, PushError, write_text_atomically
from hf_mech.hub.push import first_line, hub_client, upload
from hf_mech.hub.snippets import with_sources

State = Literal["new", "changed", "unchanged", "unknown"]

_NOT_SENT = (TEXT_FILE, ONE_BATCH_FILE)
"""What the card is rendered from, and what the project's tests compare with."""

_OURS = ("*.py", "*.png", "*.gif")
"""Files of the repository that are deleted if the folder has them no longer. Other files stay."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What became, or would become, of one folder.

    Attributes:
        name: of the folder.
        repo_id: of the repository.
        files: their number.
        bytes: of all files.
        differing: the paths that the repository lacks, has otherwise, or has too much.
        state: of the repository before: it did not exist, differed, or had the same files; "unknown" if that could not
            be found out.
        commit_url: of the commit that was sent; None if nothing was.
        error: the failure in words, if there was one.
    """

    name: str
    repo_id: str
    files: int = 0
    bytes: int = 0
    differing: tuple[str, ...] = ()
    state: State = "unknown"
    commit_url: str | None = None
    error: str | None = None


def checkpoint_folders(folder: str | os.PathLike[str]) -> list[Path]:
    """The folders of checkpoints in `model_cards/`, by their names.

    Raises:
        HubError: there are none.
    """
    found = sorted(path.parent for path in Path(folder).glob(f"*/{CHECKPOINT_FILE}"))
    if not found:
        raise HubError(
            f"{folder} has no folder with a {CHECKPOINT_FILE}, so there is nothing to send. In a clone of the project, "
            "`make checkpoints` makes model_cards/; --folder names another place."
        )
    return found


def read_entry(folder: Path) -> CatalogueEntry:
    """What a checkpoint's folder says of itself.

    Raises:
        HubError: its checkpoint.json is missing, is not JSON, or lacks something; or the folder has another name.
    """
    file = folder / CHECKPOINT_FILE
    content = _read_json(file)
    wanted = [field.name for field in fields(CatalogueEntry)]
    if lacking := [name for name in wanted if name not in content]:
        raise HubError(f"{file} lacks {', '.join(lacking)}. `make checkpoints` writes it.")
    entry = CatalogueEntry(**{name: content[name] for name in wanted})
    if entry.name != folder.resolve().name:
        raise HubError(
            f"{file} is that of the checkpoint {entry.name!r}, but its folder is {folder.name!r}. Rename the folder."
        )
    return entry


# ----------------------------------------------------------------------------------------------------------------------
# One folder: its files, the repository's, and what differs.


def prepare_repository(
    folder: str | os.PathLike[str],
    target: str | os.PathLike[str],
    sources: Mapping[str, str],
    extra_files: Mapping[str, str | os.PathLike[str]] | None = None,
) -> None:
    """Write to `target`, a new folder, exactly the files of the repository.

    Args:
        folder: a checkpoint's folder of `model_cards/`.
        target: is made.
        sources: for each checkpoint's name, the repository that takes the place of `hf_mech/<name>` in the card.
        extra_files: further files, by their path in the repository.

    Raises:
        HubError: the folder is no checkpoint that loads; its weights are not those of its checkpoint.json; its card is
            not the rendering of its results; or an extra file would replace one.
    """
    folder, target = Path(folder), Path(target)
    read_entry(folder)
    check_folder(folder)
    _check_weights(folder)
    _save_code(folder, target)
    for path in _files(folder):
        name = path.relative_to(folder)
        if name.as_posix() in _NOT_SENT or name.suffix == ".py":
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if name.as_posix() == CARD_FILE:
            write_text_atomically(target / name, with_sources(path.read_text("utf-8"), sources))
        elif (target / name).is_file() and (about_code := _about_code(target / name)):
            content = json.dumps({**_read_json(path), **about_code}, indent=2, sort_keys=True, ensure_ascii=False)
            write_text_atomically(target / name, content + "\n")
        else:
            shutil.copyfile(path, target / name)
    write_checksums(target)
    for extra, source in (extra_files or {}).items():
        if (target / extra).exists():
            raise HubError(f"extra_files would replace {extra}, which the checkpoint has. Give it another name.")
        shutil.copyfile(source, target / extra)


def _save_code(folder: Path, target: Path) -> None:
    """Leaves in `target` the code, and the JSON files that name it, as `save_pretrained` writes them."""
    try:
        save_checkpoint(load_checkpoint(folder), target, processing_class=load_processing_class(folder))
    except HubError:
        raise
    except (OSError, ValueError) as error:
        raise HubError(f"{folder} holds no checkpoint that can be loaded: {error}") from error
    for path in _files(target):
        if path.suffix != ".py" and not (folder / path.relative_to(target)).is_file():
            path.unlink()


def _about_code(path: Path) -> dict[str, Any]:
    if path.suffix != ".json":
        return {}
    content = json.loads(path.read_text("utf-8"))
    return {key: content[key] for key in CODE_KEYS if key in content} if isinstance(content, dict) else {}


def _check_weights(folder: Path) -> None:
    """The weights are whole, and are those that were measured."""
    verify_checksums(folder)
    sums = read_checksums(folder)
    if (measured := _read_json(folder / CHECKPOINT_FILE).get("sha256")) != sums:
        raise HubError(
            f"The weights in {folder} are not those that {CHECKPOINT_FILE} describes: expected the SHA-256 sums "
            f"{measured}, got {sums}. `make checkpoints NAME={folder.name}` makes both."
        )


def _files(folder: Path) -> list[Path]:
    """All files but hidden ones."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
    )


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except FileNotFoundError as error:
        raise HubError(f"{file} does not exist, so {file.parent} is no checkpoint of the project.") from error
    except ValueError as error:
        raise HubError(f"{file} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise HubError(f"{file} must be a JSON object, got {type(content).__name__}.")
    return content


def _differing(api: HfApi, repo_id: str, folder: Path) -> tuple[State, tuple[str, ...]]:
    """The state of the repository, and the paths that differ, found without sending anything."""
    names = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    try:
        there = {file.path: file for file in api.list_repo_tree(repo_id, recursive=True) if isinstance(file, RepoFile)}
    except RepositoryNotFoundError:
        return "new", tuple(names)
    stale = [name for name in there if name not in names and any(Path(name).match(pattern) for pattern in _OURS)]
    other = [name for name, path in names.items() if name not in there or not _same(path, there[name])]
    differing = tuple(sorted(other + stale))
    return ("changed" if differing else "unchanged"), differing


def _same(path: Path, file: RepoFile) -> bool:
    """Whether the repository's file has this content, by the sum that it keeps: SHA-256 if large, else git's."""
    if path.stat().st_size != file.size:
        return False
    content = path.read_bytes()
    if file.lfs is not None:
        return hashlib.sha256(content).hexdigest() == file.lfs.sha256
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == file.blob_id


# ----------------------------------------------------------------------------------------------------------------------
# One folder, or all of them, sent.


def publish_folder(
    folder: str | os.PathLike[str],
    repo_id: str,
    *,
    send: bool = True,
    sources: Mapping[str, str] | None = None,
    extra_files: Mapping[str, str | os.PathLike[str]] | None = None,
    private: bool | None = None,
    token: str | bool | None = None,
    commit_message: str = "Upload model",
    api: HfApi | None = None,
) -> Publication:
    """Make the repository what the folder says, in one commit; nothing is sent if it is so already.

    Args:
        folder: a checkpoint's folder of `model_cards/`.
        repo_id: `"user/name"`; created if it does not exist.
        send: without it, only find out what would be sent.
        sources: see [`prepare_repository`]; the folder's own name becomes `repo_id`.
        extra_files: see [`prepare_repository`].
        private: for a new repository; None is the Hub's default.
        token: as everywhere in huggingface_hub. Not together with `api`.
        commit_message: the commit's title.
        api: a client of your own, for another endpoint.

    Raises:
        HubError: the name or the folder is refused. Nothing was sent.
        PushError: the repository cannot be read, or the upload failed; it keeps its last good commit.
    """
    folder = Path(folder)
    api = hub_client(repo_id, token, api)
    with tempfile.TemporaryDirectory(prefix="hf_mech-push-") as temporary:
        target = Path(temporary)
        prepare_repository(folder, target, {folder.resolve().name: repo_id, **(sources or {})}, extra_files)
        files = _files(target)
        size = sum(path.stat().st_size for path in files)
        try:
            state, differing = _differing(api, repo_id, target)
        except Exception as error:  # the client raises errors of several libraries; the cause stays attached
            raise PushError(
                f"{repo_id} cannot be compared with {folder}: {first_line(error)}. Nothing was sent. Run the command "
                "again when the Hub answers."
            ) from error
        commit_url = None
        if send and state != "unchanged":
            commit_url = upload(
                api, target, repo_id, private=private, commit_message=commit_message, delete_patterns=list(_OURS)
            ).commit_url
    return Publication(
        name=folder.resolve().name,
        repo_id=repo_id,
        files=len(files),
        bytes=size,
        differing=differing,
        state=state,
        commit_url=commit_url,
    )


def check_account(api: HfApi, *, send: bool) -> None:
    """Ask the Hub who we are, which takes one request: without an answer, each repository would wait for its own.

    Raises:
        PushError: it does not answer; or, to send, there is no token that it takes.
    """
    try:
        api.whoami()
    except Exception as error:  # the client raises errors of several libraries; the cause stays attached
        if send or not isinstance(error, HfHubHTTPError | LocalTokenNotFoundError):
            raise PushError(
                f"The Hub at {api.endpoint} does not know us, or does not answer: {first_line(error)}. Nothing was "
                "sent. Check the network (is HF_HUB_OFFLINE set?) and the token (`hf auth whoami`)."
            ) from error


def publish_all(
    folders: Sequence[Path], organization: str, *, send: bool, api: HfApi | None = None, private: bool | None = None
) -> Iterator[Publication]:
    """[`publish_folder`] for each folder, as `<organization>/<name>`; a failure is told, and the next one follows.

    Call [`check_account`] before.

    Args:
        folders: see [`checkpoint_folders`].
        organization: an organization or a user of the Hub.
        send: without it, only find out what would be sent.
        api: a client of your own, for another endpoint.
        private: for new repositories; None is the Hub's default.
    """
    sources = {folder.name: f"{organization}/{folder.name}" for folder in folders}
    for folder in folders:
        repo_id = sources[folder.name]
        try:
            yield publish_folder(folder, repo_id, send=send, sources=sources, api=api, private=private)
        except (HubError, PushError) as error:
            yield Publication(name=folder.name, repo_id=repo_id, error=str(error))
