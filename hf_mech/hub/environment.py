"""Where a measured figure comes from: the machine, the versions, the commit and the command; and `hf-mech env`."""

import importlib.metadata
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hf_mech.hub.redaction import redact

RECORDED_PACKAGES = ("torch", "transformers", "datasets")
"""The packages whose versions are recorded with every figure, besides Python and hf_mech."""

REPORTED_PACKAGES = (
    "torch",
    "transformers",
    "datasets",
    "accelerate",
    "huggingface_hub",
    "tokenizers",
    "safetensors",
    "evaluate",
    "numba",
)
"""The packages whose versions a bug report needs."""

_SOURCES = ("*.py", "*.pddl", "*.psl", "*.toml", "*.txt", "*.yaml")
"""The files that can change a figure. The outputs of runs (JSON, pictures, cards) do not make a commit dirty."""


def package_versions(packages: tuple[str, ...] = RECORDED_PACKAGES) -> dict[str, str]:
    """The versions of Python, of the installed ones of `packages`, and of hf_mech, in this order."""
    versions = {"python": platform.python_version()}
    for package in packages:
        version = _installed_version(package)
        if version is not None:
            versions[package] = version
    versions["hf_mech"] = hf_mech_version()
    return versions


def describe_environment() -> dict[str, str]:
    """The data for a bug report: hf_mech, its dependencies, the system, the processor and the device."""
    versions = package_versions(REPORTED_PACKAGES)
    machine = describe_machine()
    report = {"hf_mech": versions.pop("hf_mech"), **versions}
    report |= {name: "not installed" for name in REPORTED_PACKAGES if name not in versions}
    report["platform"] = platform.platform()
    report["cpu"] = f"{machine['cpu']}, {machine['cores']} cores"
    report["device"] = _device(machine["gpu"])
    return report


def tested_versions(package: str) -> list[str]:
    """The versions of a package that `make wheel-check` has tried, the oldest and the newest; empty if it has not."""
    file = Path(__file__).with_name("tested_versions.json")
    found = json.loads(file.read_text("utf-8")) if file.is_file() else []
    ordered = [one["versions"][package] for which in ("oldest", "newest") for one in found if one["which"] == which]
    return list(dict.fromkeys(ordered))


def install_command(module: str) -> str | None:
    """The command that installs the extra which a module belongs to, or None if it belongs to none.

    >>> install_command("matplotlib.figure"), install_command("gradio"), install_command("json")
    ("pip install 'hf-mech[all]'", "pip install 'hf-mech[explore]'", None)
    """
    top = module.partition(".")[0]
    distribution = canonicalize_name({"PIL": "pillow"}.get(top, top))
    known = importlib.metadata.metadata("hf-mech").get_all("Provides-Extra", [])
    extras = [name for name in known if name not in ("dev", "test")]  # of developers
    for needed in map(Requirement, importlib.metadata.requires("hf-mech") or ()):
        if needed.marker and canonicalize_name(needed.name) == distribution:
            for extra in extras:
                if needed.marker.evaluate({"extra": extra}):
                    return f"pip install 'hf-mech[{extra}]'"
    return None


def hf_mech_version() -> str:
    """The version of the imported hf_mech, also when it runs from a source tree without installation."""
    import hf_mech

    declared = getattr(hf_mech, "__version__", None)
    return declared or _installed_version("hf_mech") or "unknown"


def describe_machine() -> dict[str, str | int | None]:
    """`{"cpu": model, "gpu": model or None, "cores": number that this process may use}`.

    The processor's instructions that torch uses stand behind its model: trained weights are the same to the last bit
    only where they are the same.
    """
    import torch

    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    cpu = f"{cpu_model()} ({torch.backends.cpu.get_cpu_capability()})"
    return {"cpu": cpu, "gpu": gpu, "cores": usable_cores()}


def cpu_model() -> str:
    """The processor's name as reported by the system, or at least its architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "unknown"


def usable_cores() -> int:
    """The number of cores available to this process; in a container fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def code_version(package_folder: str | os.PathLike[str] | None = None) -> str:
    """The commit of the running code, followed by `-dirty` if a source file differs from that commit.

    Args:
        package_folder: a folder of the code in question; hf_mech's own by default.

    Returns:
        The commit's 40 digits if git tracks the folder, else `hf_mech==<version>`, which identifies a released package
        just as exactly. A package installed inside another repository is not mistaken for part of it.
    """
    folder = Path(package_folder) if package_folder is not None else Path(__file__).resolve().parents[1]
    tracked = _git(folder, "ls-files", "--error-unmatch", "__init__.py")
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if tracked is None or commit is None:
        return f"hf_mech=={hf_mech_version()}"
    sources = [*(f":(top){pattern}" for pattern in _SOURCES), ":(top,exclude)model_cards", ":(top,exclude)docs"]
    changed = _git(folder, "status", "--porcelain", "--", *sources)
    return f"{commit}-dirty" if changed else commit


def running_command() -> str:
    """The command line of this process, to be copied and run again, without secrets; the interpreter is `python`."""
    words = redact(sys.orig_argv[1:])
    if words and Path(words[0]).stem == "hf-mech":
        return shlex.join(["hf-mech", *words[1:]])
    return shlex.join(["python", *words])


def without_folders(command: str) -> str:
    r"""The command as it is published: of an absolute path only the last name stays, as the folders are this machine's.

    >>> without_folders("python train.py --output_dir=/home/me/runs --steps 5")
    'python train.py --output_dir=runs --steps 5'
    >>> without_folders(r"python train.py --output_dir 'C:\Users\me\runs'")
    "python train.py --output_dir 'runs'"
    """
    return re.sub(r"""(?<![^\s='"])(?:/|[A-Za-z]:[\\/])(?:[^\s'"\\/]+[\\/])*([^\s'"\\/]+)""", r"\1", command)


def _device(gpu: str | int | None) -> str:
    import torch

    if gpu is not None:
        return f"cuda ({gpu}, CUDA {torch.version.cuda})"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _installed_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of git, or None if there is no git, no repository, or no such object in it."""
    try:
        answer = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *arguments],  # it only reads
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=60,
        )
    except FileNotFoundError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
