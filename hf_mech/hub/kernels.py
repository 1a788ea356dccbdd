"""A kernel repository for the Hub's `kernels` library, written from the sources of a family."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hf_mech.hub.files import HubError

BACKENDS = ("cpu", "cuda")

_BUILD = """\
[general]
name = "{name}"
version = {version}
license = "Apache-2.0"
backends = [{backends}]
"""

_CARD = """\
---
library_name: kernels
license: apache-2.0
tags:
- kernels
---

# {name}

{summary}

```python
from kernels import get_kernel

kernel = get_kernel("{repo_id}", version={version}, trust_remote_code=True)
```

Its functions: {names}. The variants hold Python alone: Triton's kernels are compiled on the GPU where they run, the
CPU's by numba where that is installed.
"""


def write_kernel(
    folder: Path,
    sources: Sequence[Path],
    *,
    name: str,
    summary: str,
    exports: Mapping[str, Sequence[str]],
    written: Mapping[str, str] | None = None,
    test: str = "",
    version: int = 1,
    repo_id: str | None = None,
) -> Path:
    """Writes a repository that `kernels.get_local_kernel(folder)` loads, and that `kernel-builder` can build.

        README.md  build.toml  tests/test_<name>.py
        torch-ext/<name>/*.py             the sources, for kernel-builder
        build/torch-<backend>/*.py        the variants that are loaded, each with its metadata.json

    Args:
        folder: does not exist yet, or is empty.
        sources: Python files that import torch, the standard library and each other only, as `from .file import name`.
        name: of the kernel, with hyphens.
        summary: one paragraph for the card.
        exports: the public names of each source, by its stem.
        written: further files, by name, with their text; they take the place of imports from outside.
        test: the text of the test.
        version: of the kernel's interface.
        repo_id: where it will lie on the Hub, for the card.

    Returns:
        The folder.

    Raises:
        HubError: the folder holds something.
    """
    if folder.exists() and any(folder.iterdir()):
        raise HubError(f"{folder} is not empty, and a kernel's repository is written anew; name another folder.")
    package, names = name.replace("-", "_"), sorted(name for some in exports.values() for name in some)
    files = {path.name: path.read_text(encoding="utf-8") for path in sources} | dict(written or {})
    lines = [f'"""{summary}"""\n'] + [f"from .{stem} import {', '.join(some)}" for stem, some in exports.items()]
    files["__init__.py"] = "\n".join([*lines, f"\n__all__ = {json.dumps(names)}\n"])
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:8]
    texts = {
        "build.toml": _BUILD.format(name=name, version=version, backends=", ".join(f'"{b}"' for b in BACKENDS)),
        "README.md": _CARD.format(
            name=name, summary=summary, version=version, repo_id=repo_id or f"hf_mech/{name}", names=", ".join(names)
        ),
    }
    if test:
        texts[f"tests/test_{package}.py"] = test
    texts |= {f"torch-ext/{package}/{file}": text for file, text in files.items()}
    for backend in BACKENDS:
        texts |= {f"build/torch-{backend}/{file}": text for file, text in files.items()}
        metadata = {
            "name": name,
            "id": f"_{package}_{backend}_{digest}",
            "version": version,
            "license": "Apache-2.0",
            "python-depends": [],
            "backend": {"type": backend},
        }
        texts[f"build/torch-{backend}/metadata.json"] = json.dumps(metadata, indent=2) + "\n"
    for where, text in texts.items():
        path = folder / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
