"""A process in which hf_mech cannot be imported loads each checkpoint by its name and runs its card; prints JSON.

Run as `python -I stranger_cards.py user/name ...`, with HF_ENDPOINT set. A line of the output is one repository's.
"""

import contextlib
import hashlib
import importlib
import io
import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

OURS = ("hf_mech", "tests", "training")


class NotInstalled:
    """An import hook for which our packages do not exist."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise for our packages; leave every other to the next hook."""
        if name.partition(".")[0] in OURS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def use(repo_id: str) -> dict[str, Any]:
    """The model's class, the sum of its weights, what its loading lacked, and what its card's example prints."""
    import transformers
    from huggingface_hub import hf_hub_download

    about = json.loads(Path(hf_hub_download(repo_id, "checkpoint.json")).read_text("utf-8"))
    auto_class = getattr(transformers, about["auto_class"])
    model, loading = auto_class.from_pretrained(repo_id, trust_remote_code=True, output_loading_info=True)
    block = re.search(
        r"^```python\n(.*?)^```", Path(hf_hub_download(repo_id, "README.md")).read_text("utf-8"), re.S | re.M
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block[1], f"<card of {repo_id}>", "exec"), {"__name__": "__main__"})  # type: ignore[index]
    return {
        "class": type(model).__name__,
        "module": type(model).__module__.partition(".")[0],
        "missing": sorted(loading["missing_keys"]),
        "sha256": hashlib.sha256(Path(hf_hub_download(repo_id, "model.safetensors")).read_bytes()).hexdigest(),
        "printed": printed.getvalue(),
    }


def answer(repo_id: str) -> dict[str, Any]:
    """What `use` gives, or the traceback."""
    try:
        return {"repo_id": repo_id, **use(repo_id)}
    except BaseException:  # noqa: BLE001  (the example may raise anything)
        return {"repo_id": repo_id, "error": traceback.format_exc()}


if __name__ == "__main__":
    sys.meta_path.insert(0, NotInstalled())  # type: ignore[arg-type]
    for package in OURS:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(package)
            raise SystemExit(f"{package} can be imported here, so this process proves nothing.")
    for module in ("torch", "transformers.modeling_utils", "transformers.models.auto.modeling_auto"):
        importlib.import_module(module)  # once for all; each checkpoint then has a process of its own
    for repo_id in sys.argv[1:]:
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            print(json.dumps(answer(repo_id)), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
