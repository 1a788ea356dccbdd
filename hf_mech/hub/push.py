"""Pushing a trained model: weights, code, tokenizer, card and figures, in one commit.

the repository after `push_checkpoint(model, "user/name", card_folder="model_cards/name")`
    config.json             with the `auto_map` of every head
    model.safetensors  SHA256SUMS
    configuration_*.py  modeling_*.py  ...      the code: it loads without hf_mech
    tokenizer.json  ...     if there is a tokenizer or processor
    README.md  results.json  *.png  *.gif       the card, and the run that its numbers come from
"""

import shutil
from collections.abc import Mapping
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from huggingface_hub import CommitInfo, HfApi

from hf_mech.hub.card import CARD_FILE, RESULTS_FILE, check_folder, figures_of
from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.hub.errors import PushRefusedError
from hf_mech.hub.push_folder import push_folder
from hf_mech.hub.redaction import redact
from hf_mech.hub.results import Results
from hf_mech.hub.upload import check_repo_id, upload_in_one_commit

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def push_checkpoint(
    model: "PreTrainedModel",
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
    model: "PreTrainedModel",
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
