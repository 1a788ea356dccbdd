"""Pushing a model or a data set: in one commit, which holds all that belongs to it, or not at all.

So `upload_folder` sends it; `upload_large_folder` makes several commits, of which a failure leaves the first ones.

the repository after `push_checkpoint(model, "user/name", card_folder="model_cards/name")`
    config.json             with the `auto_map` of every head
    model.safetensors  SHA256SUMS
    configuration_*.py  modeling_*.py  ...      the code: it loads without hf_mech
    tokenizer.json  ...     if there is a tokenizer or processor
    README.md  results.json  *.png  *.gif       the card, and the run that its numbers come from

the repository after `push_dataset(builder, "user/name")`, and the folder after `export_dataset(builder, folder)`
    README.md                           YAML: configurations, features, splits; text: description and citation
    <config>/<split>-00000-of-00001.parquet     `load_dataset` reads it without hf_mech
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from huggingface_hub import CommitInfo, DatasetCard, DatasetCardData, HfApi
from huggingface_hub.errors import EntryNotFoundError, HFValidationError, RepositoryNotFoundError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from hf_mech.hub.card import CARD_FILE, RESULTS_FILE, check_folder, figures_of
from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.hub.files import HubError, PushError, write_text_atomically
from hf_mech.hub.redaction import redact, remember
from hf_mech.hub.results import Results

if TYPE_CHECKING:
    from datasets import Dataset, DatasetBuilder, DatasetInfo
    from transformers import PreTrainedModel

MAX_SHARD_BYTES = 500_000_000
"""The approximate size of a Parquet file, as in `Dataset.push_to_hub`."""


# ----------------------------------------------------------------------------------------------------------------------
# Uploads a finished folder to the Hub in one commit; after a failure, reports the repository's state.


def hub_client(repo_id: str, token: str | bool | None, api: HfApi | None) -> HfApi:
    """The client to push with, after a check of the arguments that all pushes share.

    Raises:
        HubError: if the Hub would not accept the repository's name, or there are both a token and a client.
    """
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise HubError(f"{repo_id!r} is not a name for a repository on the Hub: {error}") from error
    if api is not None and token is not None:
        raise HubError("Give either `token` or an `api` that has one, not both.")
    remember(token)
    return api or HfApi(token=token)


def upload(
    api: HfApi,
    folder: str | Path,
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
            folder_path=folder,
            repo_type=repo_type,
            commit_message=redact(commit_message),
            parent_commit=parent_commit,
            delete_patterns=delete_patterns,
        )
    except Exception as error:  # the client raises errors of several libraries; the cause stays attached
        failure = f"The upload to {repo_id} failed: {first_line(error)}."
        raise PushError(f"{failure} {_state_after(failure, api, repo_id, repo_type, before)}") from error


def _state_after(failure: str, api: HfApi, repo_id: str, repo_type: str, before: str | None) -> str:
    if before is None:
        return "Nothing was sent. Check the address, the token and its rights (`hf auth whoami`), and push again."
    try:
        now = api.repo_info(repo_id, repo_type=repo_type).sha
    except Exception as error:
        raise PushError(
            f"{failure} The Hub does not answer now ({first_line(error)}); the last good commit before this push was "
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


def first_line(error: BaseException) -> str:
    """What an error says first, without a full stop, and its cause's."""
    cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ is not None else None
    text = (str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
    return f"{text} ({first_line(cause)})" if cause is not None else text


# ----------------------------------------------------------------------------------------------------------------------
# A trained model: weights, code, tokenizer, card and figures.


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
    `trust_remote_code=True`, through every Auto class of its heads, if it is one of ours.

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
        HubError: if the name, the code or the extra files are invalid, or the card has numbers that do not come from a
            run. Nothing was sent.
        PushError: if the upload failed. The repository keeps its last good commit, named in the message.
    """
    api = hub_client(repo_id, token, api)
    with tempfile.TemporaryDirectory(prefix="hf_mech-push-") as folder:
        prepare_checkpoint(
            model, folder, processing_class=processing_class, card_folder=card_folder, extra_files=extra_files
        )
        return upload(api, folder, repo_id, private=private, commit_message=commit_message)


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
        Results.load(Path(card_folder) / RESULTS_FILE).save(folder / RESULTS_FILE)  # without secrets
    for name, source in (extra_files or {}).items():
        target = folder / name
        if target.exists():
            raise HubError(f"extra_files would replace {name}, which the checkpoint has. Give it another name.")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _check_extra_files(extra_files: Mapping[str, str | PathLike[str]]) -> None:
    for name, source in extra_files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or ".." in path.parts:
            raise HubError(f"extra_files: {name!r} must be a path in the repository, such as 'domain.json'.")
        if not Path(source).is_file():
            raise HubError(f"extra_files: {name} should come from {source}, which is not a file.")


# ----------------------------------------------------------------------------------------------------------------------
# The output of a dataset builder: Parquet files and a card.


def export_dataset(builder: DatasetBuilder, folder: str | PathLike[str], *, num_proc: int | None = None) -> Path:
    """Write one configuration of a dataset as Parquet files and a card, for `load_dataset(folder, config)`.

    Other configurations that were exported to the same folder stay.

    Args:
        builder: the dataset; prepared first if necessary.
        folder: the target folder; created if it does not exist.
        num_proc: the number of processes that prepare it.

    Returns:
        The card's path. The card is written last: a folder with a new card is complete.

    Raises:
        HubError: if the configuration's name cannot be a folder's name, or it has no splits.
    """
    folder = Path(folder)
    name = _config_name(builder)
    builder.download_and_prepare(num_proc=num_proc)
    splits: dict[str, Dataset] = builder.as_dataset()
    if not splits:
        raise HubError(f"{type(builder).__name__} ({name}) has no splits to export.")
    data_folder = folder / _data_folder(name)
    data_folder.mkdir(parents=True, exist_ok=True)
    stale = set(data_folder.glob("*.parquet"))
    written = {path for split, dataset in splits.items() for path in _write_split(dataset, data_folder, str(split))}
    for path in stale - written:
        path.unlink()
    card = _card(builder, name, written, _read_card(folder / CARD_FILE))
    return write_text_atomically(folder / CARD_FILE, str(card))


def push_dataset(
    builder: DatasetBuilder,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | bool | None = None,
    num_proc: int | None = None,
    commit_message: str | None = None,
    api: HfApi | None = None,
) -> CommitInfo:
    """Upload one configuration of a dataset, as [`export_dataset`] writes it, in exactly one commit.

    Other configurations in the repository stay, and so do the other entries of its card's YAML. The card's text is
    rendered from the builder's description and citation.

    Args:
        builder: the dataset; prepared first if necessary.
        repo_id: `"user/name"`; created if it does not exist.
        private: for a new repository; None is the Hub's default.
        token: as everywhere in huggingface_hub; None takes the saved one. Not together with `api`.
        num_proc: the number of processes that prepare the dataset.
        commit_message: the commit's title.
        api: a client of your own, for another endpoint.

    Returns:
        The commit.

    Raises:
        HubError: if the repository's or the configuration's name is invalid. Nothing was sent.
        PushError: if the upload failed. The repository keeps its last good commit, named in the message.
    """
    api = hub_client(repo_id, token, api)
    name = _config_name(builder)
    with tempfile.TemporaryDirectory(prefix="hf_mech-push-") as temporary:
        folder = Path(temporary)
        head = _fetch_card(api, repo_id, folder)
        export_dataset(builder, folder, num_proc=num_proc)
        return upload(
            api,
            folder,
            repo_id,
            repo_type="dataset",
            private=private,
            commit_message=commit_message or f"Upload {name}",
            parent_commit=head,
            delete_patterns=[f"{_data_folder(name)}/*.parquet"],
        )


def _config_name(builder: DatasetBuilder) -> str:
    name = builder.config.name
    if not name or name in (".", "..") or "/" in name or "\\" in name:
        raise HubError(f"{type(builder).__name__}: the configuration's name {name!r} cannot name a folder.")
    return name


def _data_folder(config_name: str) -> str:
    return "data" if config_name == "default" else config_name


def _write_split(dataset: Dataset, folder: Path, split: str) -> list[Path]:
    count = dataset.data.nbytes // MAX_SHARD_BYTES + 1
    paths = [folder / f"{split}-{index:05d}-of-{count:05d}.parquet" for index in range(count)]
    for index, path in enumerate(paths):
        dataset.shard(num_shards=count, index=index, contiguous=True).to_parquet(path)
    return paths


def _card(builder: DatasetBuilder, name: str, files: set[Path], existing: DatasetCard | None) -> DatasetCard:
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs

    info = builder.info.copy()
    info.config_name = name
    info.download_size = sum(path.stat().st_size for path in files)
    info.size_in_bytes = info.download_size + (info.dataset_size or 0)
    data = existing.data if existing is not None else DatasetCardData()
    if info.license and not data.get("license"):
        data["license"] = info.license
    DatasetInfosDict({name: info}).to_dataset_card_data(data)
    patterns = [{"split": str(split), "path": f"{_data_folder(name)}/{split}-*"} for split in info.splits or {}]
    MetadataConfigs({name: {"data_files": patterns}}).to_dataset_card_data(data)
    return DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{_text(builder, info)}")


def _text(builder: DatasetBuilder, info: DatasetInfo) -> str:
    parts = [f"# {builder.dataset_name or type(builder).__name__}"]
    if info.description and info.description.strip():
        parts.append(info.description.strip())
    if info.homepage and info.homepage.strip():
        parts.append(f"Homepage: <{info.homepage.strip()}>")
    if info.citation and info.citation.strip():
        parts.append(f"## Citation\n\n```bibtex\n{info.citation.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _read_card(path: Path) -> DatasetCard | None:
    return DatasetCard(path.read_text(encoding="utf-8")) if path.is_file() else None


def _fetch_card(api: HfApi, repo_id: str, folder: Path) -> str | None:
    """Put the repository's README.md into `folder`, so that the export merges with it.

    Returns:
        The commit it was read at, or None if the repository does not exist yet.
    """
    try:
        head = api.dataset_info(repo_id).sha
        api.hf_hub_download(repo_id, CARD_FILE, repo_type="dataset", revision=head, local_dir=folder)
    except RepositoryNotFoundError:
        return None
    except EntryNotFoundError:
        return head
    except Exception as error:
        raise PushError(
            f"The card of {repo_id} could not be read ({error}), and it may name configurations to keep. "
            "Nothing was sent; push again when the Hub answers."
        ) from error
    return head
