"""The runs of a command on the machines of a Ray cluster: `--executor ray`.

The command holds the folder of each run that it has sent. A machine that sees the same file system trains the run there
and goes on from its last checkpoint. Any other trains it in a folder of its own; the files come back as bytes,
`outcome.json` is written last. A run whose machine is lost starts again on another one.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TypeVar

import torch
from huggingface_hub.constants import HF_HOME
from tqdm.auto import tqdm

from hf_mech.data.cluster import MISSING, call_all, connected
from hf_mech.hub.files import held, remove, replacing

from .experiment import Experiment
from .run import OUTCOME_FILE, TRACKING, Job, Outcome, remove_checkpoints
from .runner import RUN_FILE, claim, launched_processes, run_held, this_process
from .settings import Settings, SettingsError

S = TypeVar("S", bound=Settings)
O = TypeVar("O", bound=Outcome[Any])  # noqa: E741
Files = dict[str, bytes]
"""Contents by path under --output_dir."""


def check_executor(name: str) -> None:
    """Refuses an executor that is not there, before any run starts.

    Raises:
        SettingsError: Ray is not installed, or processes that were launched share the runs.
    """
    if name == "ray" and find_spec("ray") is None:
        raise SettingsError(f"--executor ray: {MISSING}")
    if name == "ray" and launched_processes() > 1:
        raise SettingsError("--executor ray sends whole runs to other processes: start it with python.")


def run_free_on_ray(
    experiment: Experiment[S, O], runs: Sequence[S], jobs: Sequence[Job], at_once: int
) -> dict[int, O | None]:
    """The outcomes of the runs that no other process trains, by number; `at_once` at a time, 0: one for each core.

    Raises:
        ClusterError: a run's machine or process was lost too often.
    """
    found: dict[int, O | None] = {}
    sent: dict[str, tuple[int, ExitStack]] = {}
    output_dir = Path(jobs[0].options.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    with (
        connected() as ray,
        ExitStack() as locks,
        NamedTemporaryFile(dir=output_dir, prefix=".ray-") as mark,
        tqdm(total=len(runs), desc=experiment.unit, smoothing=0) as bar,
    ):
        inputs: dict[tuple[Path, ...], Any] = {}

        def calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
            for number, (settings, job) in enumerate(zip(runs, jobs, strict=True)):
                lock = locks.enter_context(ExitStack())
                if not lock.enter_context(held(job.folder)):
                    continue
                if (job.folder / OUTCOME_FILE).exists():
                    found[number] = run_held(experiment, settings, job)
                    lock.close()
                    continue
                claim(job.folder, settings)
                needed = tuple(output_dir / name for name in experiment.reads(settings))
                if needed not in inputs:
                    inputs[needed] = ray.put(_files(output_dir, needed))
                sent[settings.name] = number, lock
                where = str(Path.cwd()), str(Path(mark.name).absolute()), _own_folder(job.folder)
                yield settings.name, (experiment, settings, job, *where, inputs[needed])

        cluster = ray.cluster_resources()
        at_once = at_once or int(cluster["CPU"])
        gpus = min(1.0, int(1e4 * cluster.get("GPU", 0) / at_once) / 1e4)  # a share, if there are more runs than GPUs
        with closing(call_all(ray, _train, calls(), at_once, num_cpus=1, num_gpus=gpus)) as results:
            for name, (outcome, files) in results:
                number, lock = sent[name]
                _write(files, output_dir)
                remove_checkpoints(jobs[number].folder)
                found[number] = outcome
                lock.close()
                bar.update()
    return found


def _train(
    experiment: Experiment[S, O], settings: S, job: Job, start: str, mark: str, own: str, inputs: Files
) -> tuple[O | None, Files]:
    """Trains a run on a machine of the cluster.

    Args:
        experiment, settings, job: of the run.
        start: the command's working folder.
        mark: a file in its --output_dir.
        own: the name of the run's folder on a machine that does not see that file.
        inputs: what the run reads under --output_dir.

    Returns:
        The outcome, and the files that are not in the command's --output_dir.
    """
    torch.set_num_threads(1)
    shared = Path(mark).exists()
    job = replace(job, origin={**this_process(), "command": job.origin["command"]})
    output_dir = Path(job.options.output_dir)
    if shared:
        with suppress(FileNotFoundError):
            os.chdir(start)
    else:
        output_dir = Path(HF_HOME, "hf_mech", "runs", own)
        options = replace(job.options, output_dir=str(output_dir))
        job = replace(job, folder=output_dir / settings.name, options=options)
        _write(inputs, output_dir)
    # The process of a machine that is believed lost may still be there.
    with held(job.folder.with_name(f"{job.folder.name}.ray"), wait=True):
        outcome = run_held(experiment, settings, job)
        if shared:
            return outcome, {}
        files = _files(output_dir, [job.folder, output_dir / TRACKING])
        remove(output_dir)
    return outcome, files


def _own_folder(folder: Path) -> str:
    """A name that is the same until the run's folder is removed and begun anew."""
    begun = (folder / RUN_FILE).stat().st_mtime_ns
    return hashlib.sha256(f"{platform.node()} {folder.absolute()} {begun}".encode()).hexdigest()[:16]


def _files(output_dir: Path, folders: Iterable[Path]) -> Files:
    every = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(output_dir).as_posix(): path.read_bytes() for path in every}


def _write(files: Files, output_dir: Path) -> None:
    for name in sorted(files, key=lambda name: name.endswith(OUTCOME_FILE)):
        path = output_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as aside:
            aside.write_bytes(files[name])
