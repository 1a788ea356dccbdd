"""SHA256SUMS: the checksums of a checkpoint's weights, in the form of `sha256sum`, checked on request.

`save_checkpoint` and `push_checkpoint` write the file. `hf-mech verify <folder or repository>` checks it, and so does
`sha256sum -c SHA256SUMS` in the folder.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from hf_mech.hub.disk.files import write_text_atomically
from hf_mech.hub.errors import (
    ChecksumDiffersError,
    ChecksumError,
    ChecksumsMissingError,
    ListedFileMissingError,
    UnlistedWeightsError,
)

CHECKSUMS_FILE = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")
_LISTED, _INDEX = "*.safetensors", "*.safetensors.index.json"


def write_checksums(folder: str | os.PathLike[str]) -> Path:
    """Write the checksums of the weights in a folder.

    Args:
        folder: a checkpoint; its weights are `*.safetensors`, in one file or several.

    Returns:
        The path of SHA256SUMS.
    """
    folder = Path(folder)
    lines = [f"{_sum(path)}  {path.name}\n" for path in sorted(folder.glob(_LISTED))]
    return write_text_atomically(folder / CHECKSUMS_FILE, "".join(lines))


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
        ChecksumsMissingError: if there is no SHA256SUMS, or nothing in it.
        ListedFileMissingError: if a file that it names is not there.
        ChecksumDiffersError: if a file has another sum.
        UnlistedWeightsError: if there are weights that it does not name.
        ChecksumError: if it is not in the form of `sha256sum`, or the repository cannot be read.
    """
    folder = Path(checkpoint)
    if not folder.is_dir():
        folder = _download(str(checkpoint), revision, token)
    elif revision is not None:
        raise ChecksumError(f"{checkpoint} is a folder, which has no revision {revision!r}. Leave out the revision.")
    sums = dict(_listed(folder / CHECKSUMS_FILE))
    for name, expected in sums.items():
        if not os.path.isfile(folder / name):  # noqa: PTH113  (Path.is_file raises for a name that is too long)
            raise ListedFileMissingError(
                f"{folder / CHECKSUMS_FILE} names {name}, which is not in {checkpoint}. Get the checkpoint again."
            )
        if (got := _sum(folder / name)) != expected:
            raise ChecksumDiffersError(
                f"{name} in {checkpoint} is damaged, or is of another save: expected the SHA-256 sum {expected}, got "
                f"{got}. Get the checkpoint again."
            )
    if unlisted := sorted(_weights(folder) - sums.keys()):
        raise UnlistedWeightsError(
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
            raise ChecksumError(f"{index} is no index of weights ({error!r}). Get the checkpoint again.") from error
    return names


def _listed(file: Path) -> Iterator[tuple[str, str]]:
    """The name and the sum on each line."""
    if not file.is_file():
        raise ChecksumsMissingError(
            f"{file} does not exist, so nothing can be checked. hf_mech.hub.save_checkpoint and push_checkpoint write "
            "it; save_pretrained does not."
        )
    lines = [line for line in file.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    if not lines:
        raise ChecksumsMissingError(f"{file} is empty, so nothing can be checked. Get the checkpoint again.")
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        path = PurePosixPath(found[2]) if found else PurePosixPath()
        if found is None or path.is_absolute() or ".." in path.parts:
            raise ChecksumError(
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
        raise ChecksumError(
            f"{repo_id} is no folder, and cannot be read from the Hub: {str(error).strip().splitlines()[0]}"
        ) from error
