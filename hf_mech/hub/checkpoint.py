"""Checkpoint folders that load anywhere: saving, loading, and the checksums of their weights."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hf_mech.hub.files import HubError, naming_the_path, write_text_atomically

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


CHECKSUMS_FILE = "SHA256SUMS"
CODE_KEYS = ("auto_map", "custom_pipelines")
"""The entries of a checkpoint's JSON files that name files of code."""
_SAVED_WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json")


def save_checkpoint(
    model: PreTrainedModel, folder: str | os.PathLike[str], *, processing_class: Any | None = None
) -> None:
    """Save `model` so that it loads elsewhere with `trust_remote_code=True`, with the checksums of its weights.

    This is `save_pretrained`, with checks of the code that goes along, and with SHA256SUMS for [`verify_checksums`].
    All files are written aside, and replace those in the folder when all are whole. Weights of an earlier save that
    are not replaced are removed.

    Args:
        model: any transformers model; one of transformers' own is saved as usual.
        folder: the target folder; created if it does not exist.
        processing_class: a tokenizer, processor or image processor to save beside it.

    Raises:
        HubError: if the model's code could not be loaded elsewhere: it is not registered for an Auto class, it
            was defined in `__main__`, or it imports hf_mech, another part of its own package, or a file that is not
            beside it. It may import other packages (numpy, safetensors, an optional numba): transformers names missing
            ones when the checkpoint is loaded.
        OutputError: if the folder cannot be written; its files are as they were.
    """
    folder = Path(folder)
    with naming_the_path(folder), _written_aside(folder) as aside:
        for thing in (model, processing_class):
            if thing is not None:
                _save_with_code(thing, aside)
        _check_code_goes_along(type(model), aside)
        check_self_contained(aside, {_package_of(type(model))} - {"transformers"})
        write_checksums(aside)


def _save_with_code(thing: Any, folder: Path) -> None:
    try:
        thing.save_pretrained(folder)
    except FileNotFoundError as error:
        if not str(error.filename).endswith(".py"):
            raise
        raise HubError(
            f"{type(thing).__module__} imports a file that cannot be copied beside the checkpoint ({error.filename}). "
            "The files of a model lie flat in one folder and import each other as `from .name import x`."
        ) from error


def _check_code_goes_along(model_class: type, folder: Path) -> None:
    if _package_of(model_class) == "transformers":
        return
    auto_map = json.loads((folder / "config.json").read_text("utf-8")).get("auto_map", {})
    if model_class.__name__ not in {str(reference).rpartition(".")[2] for reference in auto_map.values()}:
        raise HubError(
            f"The code of {model_class.__name__} would not go along, so nobody could load it back. Define it in a "
            f"module, not in __main__, and call {model_class.__name__}.register_for_auto_class('AutoModel...') first."
        )


@contextmanager
def _written_aside(folder: Path) -> Iterator[Path]:
    """A folder in `folder` whose files move up, one by one, if the block ends without an error."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".checkpoint", dir=folder) as temporary:
        aside = Path(temporary)
        yield aside
        new = sorted(path.relative_to(aside) for path in aside.rglob("*") if path.is_file())
        for name in sorted(new, key=lambda name: name.name == CHECKSUMS_FILE):  # last: a kill in between is found out
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).replace(folder / name)
        for old in folder.glob("model*"):
            if _SAVED_WEIGHTS.fullmatch(old.name) and Path(old.name) not in new:
                old.unlink()


def load_checkpoint(folder: str | os.PathLike[str]) -> PreTrainedModel:
    """Load a local checkpoint as the class that saved it (`architectures` in its config).

    Raises:
        HubError: if transformers does not know that class, or the folder lacks some of its weights.
        OSError: if the folder holds no checkpoint, as in `from_pretrained`.
    """
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    wanted = (getattr(config, "architectures", None) or [None])[0]
    model_class = getattr(transformers, str(auto_class_of(config) or wanted), None)
    if model_class is None:
        raise HubError(
            f"{folder} was saved by {wanted}, which no Auto class knows for {type(config).__name__}. Import the "
            "package that registers it, or load the model yourself and call push_checkpoint(model, ...)."
        )
    model, loading = model_class.from_pretrained(folder, output_loading_info=True)
    if lacking := sorted(loading["missing_keys"]) + sorted(str(key) for key in loading["mismatched_keys"]):
        raise HubError(
            f"{folder} lacks {len(lacking)} of the weights of {wanted}, which would be random: "
            f"{', '.join(lacking[:5])}{', ...' if len(lacking) > 5 else ''}. Save the model again."
        )
    return model


def auto_class_of(config: PreTrainedConfig) -> str | None:
    """The name of the Auto class that loads a saved model with its head; None if there is none.

    Args:
        config: of the checkpoint: it names the class that saved it, as `architectures`.
    """
    from transformers.models.auto import modeling_auto

    wanted = (getattr(config, "architectures", None) or [None])[0]
    for name, text in (getattr(config, "auto_map", None) or {}).items():
        if str(text).endswith(f".{wanted}"):
            return str(name)
    for name, auto_class in vars(modeling_auto).items():
        mapping = getattr(auto_class, "_model_mapping", None)
        if name == "AutoModelForPreTraining":
            continue  # it has the same classes as the Auto classes of tasks
        if name.startswith("AutoModel") and mapping is not None and type(config) in mapping:
            loaded = mapping[type(config)]
            if wanted in {known.__name__ for known in (loaded if isinstance(loaded, tuple) else (loaded,))}:
                return name
    return None


def load_processing_class(folder: str | os.PathLike[str]) -> Any | None:
    """The processor or tokenizer in a checkpoint folder, or None."""
    from transformers import AutoProcessor, AutoTokenizer

    folder = Path(folder)
    for name in ("processor_config.json", "preprocessor_config.json"):
        if (folder / name).is_file():
            return AutoProcessor.from_pretrained(folder)
    if (folder / "tokenizer_config.json").is_file():
        return AutoTokenizer.from_pretrained(folder)
    return None


def check_self_contained(folder: str | os.PathLike[str], absent: Iterable[str] = ()) -> None:
    """Check that the Python files of a checkpoint import only each other, as `from .name import x`, and packages.

    Args:
        folder: the checkpoint.
        absent: packages, besides hf_mech, that will not be installed where the checkpoint is loaded.

    Raises:
        HubError: naming the file, the line and the import.
    """
    folder, absent = Path(folder), {"hf_mech", *absent}
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
            if isinstance(node, ast.Import | ast.ImportFrom) and (fault := _fault(node, folder, absent)):
                raise HubError(
                    f"{path.name}, line {node.lineno}: {fault}. The checkpoint would not load where "
                    "the model's package is not installed. Import siblings as `from .name import x`."
                )


def _fault(node: ast.Import | ast.ImportFrom, folder: Path, absent: set[str]) -> str | None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if (package := alias.name.partition(".")[0]) in absent:
                return f"`import {alias.name}` needs the package {package}"
        return None
    if node.level == 0 and (package := (node.module or "").partition(".")[0]) in absent:
        return f"`from {node.module} import ...` needs the package {package}"
    if node.level > 1 or (node.level == 1 and node.module is None):
        return "a relative import must name a sibling file"
    if node.level == 1 and not (folder / f"{node.module}.py").is_file():
        return f"`from .{node.module} import ...` names a file that is not in the checkpoint"
    return None


def _package_of(thing: type) -> str:
    return thing.__module__.partition(".")[0]


# ----------------------------------------------------------------------------------------------------------------------
# SHA256SUMS: the checksums of a checkpoint's weights, in the form of `sha256sum`, checked on request.
#
# `save_checkpoint` and `push_checkpoint` write the file. `hf-mech verify <folder or repository>` checks it, and so does
# `sha256sum -c SHA256SUMS` in the folder.
# `HfApi.verify_repo_checksums` (`hf cache verify`) compares a download with the Hub; these sums serve any folder,
# without a network.


_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")
_LISTED, _INDEX = "*.safetensors", "*.safetensors.index.json"


def write_checksums(folder: str | os.PathLike[str]) -> None:
    """Write the checksums of the weights in a folder.

    Args:
        folder: a checkpoint; its weights are `*.safetensors`, in one file or several.
    """
    folder = Path(folder)
    lines = [f"{_sum(path)}  {path.name}\n" for path in sorted(folder.glob(_LISTED))]
    write_text_atomically(folder / CHECKSUMS_FILE, "".join(lines))


def read_checksums(folder: str | os.PathLike[str]) -> dict[str, str]:
    """The SHA-256 sum of each file that a checkpoint's SHA256SUMS names.

    Raises:
        HubError: the file is missing, empty, or not in the form of `sha256sum`.
    """
    return dict(_listed(Path(folder) / CHECKSUMS_FILE))


def verify_checksums(
    checkpoint: str | os.PathLike[str], *, revision: str | None = None, token: str | bool | None = None
) -> list[str]:
    """Check the weights of a checkpoint against its SHA256SUMS.

    This finds damage: a broken disk, a broken download, a kill while the files were replaced. Who can replace the
    weights can replace the sums too: against that, name a commit as `revision`.

    Args:
        checkpoint: a folder, or a repository on the Hub, whose weights are downloaded as by `from_pretrained`.
        revision: of the repository: a branch, tag or commit.
        token: as everywhere in huggingface_hub.

    Returns:
        The names of the checked files.

    Raises:
        HubError: if SHA256SUMS is missing, empty, or not in the form of `sha256sum`; a file that it names is missing or
            has another sum; there are weights that it does not name; an index of weights cannot be read; the repository
            cannot be read; or a folder is given with a revision.
    """
    folder = Path(checkpoint)
    if not folder.is_dir():
        folder = _download(str(checkpoint), revision, token)
    elif revision is not None:
        raise HubError(f"{checkpoint} is a folder, which has no revision {revision!r}. Leave out the revision.")
    sums = read_checksums(folder)
    for name, expected in sums.items():
        if not os.path.isfile(folder / name):  # noqa: PTH113  (Path.is_file raises for a name that is too long)
            raise HubError(
                f"{folder / CHECKSUMS_FILE} names {name}, which is not in {checkpoint}. Get the checkpoint again."
            )
        if (got := _sum(folder / name)) != expected:
            raise HubError(
                f"{name} in {checkpoint} is damaged, or is of another save: expected the SHA-256 sum {expected}, got "
                f"{got}. Get the checkpoint again."
            )
    if unlisted := sorted(_weights(folder) - sums.keys()):
        raise HubError(
            f"{checkpoint} has weights that {CHECKSUMS_FILE} does not name: {', '.join(unlisted)}. Save it with "
            "hf_mech.hub.save_checkpoint."
        )
    return list(sums)


def _weights(folder: Path) -> set[str]:
    """The weights in a folder, and those that its index names."""
    names = {path.name for path in folder.glob(_LISTED)}
    for index in folder.glob(_INDEX):
        try:
            names |= set(json.loads(index.read_text("utf-8"))["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise HubError(f"{index} is no index of weights ({error!r}). Get the checkpoint again.") from error
    return names


def _listed(file: Path) -> Iterator[tuple[str, str]]:
    """The name and the sum on each line."""
    if not file.is_file():
        raise HubError(
            f"{file} does not exist, so nothing can be checked. hf_mech.hub.save_checkpoint and push_checkpoint write "
            "it; save_pretrained does not."
        )
    lines = [line for line in file.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    if not lines:
        raise HubError(f"{file} is empty, so nothing can be checked. Get the checkpoint again.")
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        path = PurePosixPath(found[2]) if found else PurePosixPath()
        if found is None or path.is_absolute() or ".." in path.parts:
            raise HubError(
                f"{file}, line {number}: expected 64 hexadecimal digits, two blanks and a name in the folder, got "
                f"{line[:100]!r}."
            )
        yield found[2], found[1].lower()


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(repo_id: str, revision: str | None, token: str | bool | None) -> Path:
    from huggingface_hub import snapshot_download

    try:
        patterns = [CHECKSUMS_FILE, _LISTED, _INDEX]
        return Path(snapshot_download(repo_id, revision=revision, token=token, allow_patterns=patterns))
    except (OSError, ValueError) as error:  # HTTP errors and a missing cache are OSErrors, a wrong name is a ValueError
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise HubError(f"{repo_id} is no folder, and cannot be read from the Hub: {reason}") from error
