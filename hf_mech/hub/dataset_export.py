"""A dataset builder's output as Parquet with a card: `load_dataset` reads it without hf_mech.

the folder, and the repository
    README.md                           YAML: configurations, features, splits; text: description and citation
    <config>/<split>-00000-of-00001.parquet
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub import CommitInfo, DatasetCard, DatasetCardData, HfApi
from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

from hf_mech.hub.errors import PushError, PushRefusedError
from hf_mech.hub.files import write_text_atomically
from hf_mech.hub.push import check_repo_id, push_folder, upload_in_one_commit
from hf_mech.hub.redaction import redact, redact_known

if TYPE_CHECKING:
    from datasets import Dataset, DatasetBuilder, DatasetInfo

MAX_SHARD_BYTES = 500_000_000
"""The approximate size of a Parquet file, as in `Dataset.push_to_hub`."""

_README = "README.md"


def export_dataset(builder: "DatasetBuilder", folder: str | os.PathLike[str], *, num_proc: int | None = None) -> Path:
    """Write one configuration of a dataset as Parquet files and a card, for `load_dataset(folder, config)`.

    Other configurations that were exported to the same folder stay.

    Args:
        builder: the dataset; prepared first if necessary.
        folder: the target folder; created if it does not exist.
        num_proc: the number of processes that prepare it.

    Returns:
        The card's path. The card is written last: a folder with a new card is complete.

    Raises:
        PushRefusedError: if the configuration's name cannot be a folder's name, or it has no splits.
    """
    folder = Path(folder)
    name = _config_name(builder)
    builder.download_and_prepare(num_proc=num_proc)
    splits: dict[str, Dataset] = builder.as_dataset()
    if not splits:
        raise PushRefusedError(f"{type(builder).__name__} ({name}) has no splits to export.")
    data_folder = folder / _data_folder(name)
    data_folder.mkdir(parents=True, exist_ok=True)
    stale = set(data_folder.glob("*.parquet"))
    written = {path for split, dataset in splits.items() for path in _write_split(dataset, data_folder, str(split))}
    for path in stale - written:
        path.unlink()
    card = _card(builder, name, written, _read_card(folder / _README))
    return write_text_atomically(folder / _README, redact_known(str(card)))


def push_dataset(
    builder: "DatasetBuilder",
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
        PushRefusedError: if the repository's or the configuration's name is invalid. Nothing was sent.
        PushError: if the upload failed. The repository keeps its last good commit, named in the message.
    """
    check_repo_id(repo_id)
    if api is not None and token is not None:
        raise PushRefusedError("Give either `token` or an `api` that has one, not both.")
    api = api or HfApi(token=token)
    name = _config_name(builder)
    with push_folder() as folder:
        head = _fetch_card(api, repo_id, folder)
        export_dataset(builder, folder, num_proc=num_proc)
        return upload_in_one_commit(
            api,
            folder,
            repo_id,
            repo_type="dataset",
            private=private,
            commit_message=redact(commit_message or f"Upload {name}"),
            parent_commit=head,
            delete_patterns=[f"{_data_folder(name)}/*.parquet"],
        )


def _config_name(builder: "DatasetBuilder") -> str:
    name = builder.config.name
    if not name or name in (".", "..") or "/" in name or "\\" in name:
        raise PushRefusedError(f"{type(builder).__name__}: the configuration's name {name!r} cannot name a folder.")
    return name


def _data_folder(config_name: str) -> str:
    return "data" if config_name == "default" else config_name


def _write_split(dataset: "Dataset", folder: Path, split: str) -> list[Path]:
    count = dataset.data.nbytes // MAX_SHARD_BYTES + 1
    paths = [folder / f"{split}-{index:05d}-of-{count:05d}.parquet" for index in range(count)]
    for index, path in enumerate(paths):
        dataset.shard(num_shards=count, index=index, contiguous=True).to_parquet(path)
    return paths


def _card(builder: "DatasetBuilder", name: str, files: set[Path], existing: DatasetCard | None) -> DatasetCard:
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


def _text(builder: "DatasetBuilder", info: "DatasetInfo") -> str:
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
        api.hf_hub_download(repo_id, _README, repo_type="dataset", revision=head, local_dir=folder)
    except RepositoryNotFoundError:
        return None
    except EntryNotFoundError:
        return head
    except Exception as error:
        raise PushError(
            f"The card of {repo_id} could not be read ({redact(str(error))}), and it may name configurations to keep. "
            "Nothing was sent; push again when the Hub answers."
        ) from error
    return head
