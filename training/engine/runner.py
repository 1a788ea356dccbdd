"""Runs: each in a folder of its own, done once, several side by side, gone on with after a kill.

.<run>.lock             beside the folder, while a process trains the run; another command goes on with its other runs
run.json                the settings; a run of other settings is refused the folder
run.yaml                the options that make the run: `--config_file run.yaml` repeats it
checkpoint-<step>/      the state, replaced by the next one; gone when the run is done
model/  outcome.json    the model and the outcome, which is written last
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
import yaml
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, parse_flag_from_env
from tqdm.auto import tqdm

from hf_mech.hub.environment import code_version, describe_machine, package_versions, running_command, usable_cores
from hf_mech.hub.files import held, naming_the_path, write_text_atomically
from hf_mech.hub.redaction import redact

from .arguments import Options
from .experiment import Experiment
from .run import OUTCOME_FILE, TRACKING, Job, Outcome, RunError, Tracker, remove_checkpoints
from .settings import Settings, SettingsError

S = TypeVar("S", bound=Settings)
O = TypeVar("O", bound=Outcome[Any])  # noqa: E741
RUN_FILE = "run.json"
CONFIG_FILE = "run.yaml"
_LOOK_AGAIN = 2.0  # seconds
RunFree = Callable[[Experiment[Any, Any], Sequence[Any], Sequence[Job], int], dict[int, Any]]


class RunInProgressError(RunError):
    """Another process trains this run right now."""


def run_all(
    experiment: Experiment[S, O],
    runs: Sequence[S],
    options: Options,
    jobs: int,
    *,
    wait: bool = False,
    configs: Mapping[S, dict[str, Any]] | None = None,
    run_free: RunFree | None = None,
) -> list[O | None]:
    """The outcome of each run; they begin in their order, `jobs` at a time.

    A run that another process trains is left to it. When all others are done it is looked at again: its outcome is read
    if it is there, and the run goes on here if its process was killed.

    Args:
        experiment: the experiment.
        runs: the settings of each.
        options: the command's.
        jobs: how many at a time; 0: one for each core; 1: here, in this process.
        wait: until the other processes have done their runs; otherwise the outcome of a run in progress is None.
        configs: the options that make each run, to be noted beside it.
        run_free: gives the outcomes of the runs that no other process trains, by number; by default on this machine.
    """
    origin, configs, run_free = this_process(), configs or {}, run_free or _run_free
    all_jobs = [
        Job(folder=Path(options.output_dir) / run.name, options=options, origin=origin, config=configs.get(run, {}))
        for run in runs
    ]
    outcomes: dict[int, O | None] = {}
    missing = list(range(len(runs)))
    while True:
        before = len(missing)
        found = run_free(experiment, [runs[n] for n in missing], [all_jobs[n] for n in missing], jobs)
        outcomes |= {missing[number]: outcome for number, outcome in found.items()}
        missing = [number for number in missing if number not in outcomes]
        if not missing or (len(missing) == before and not wait):
            return [outcomes.get(number) for number in range(len(runs))]
        if len(missing) == before:
            time.sleep(_LOOK_AGAIN)


def _run_free(
    experiment: Experiment[S, O], runs: Sequence[S], all_jobs: Sequence[Job], jobs: int
) -> dict[int, O | None]:
    """The outcomes of the runs that no other process trains, by number."""
    jobs = jobs or usable_cores()
    found: dict[int, O | None] = {}
    if jobs == 1 or len(runs) == 1:
        for number, (settings, job) in enumerate(zip(runs, all_jobs, strict=True)):
            with suppress(RunInProgressError):
                found[number] = run_one(experiment, settings, job)
        return found
    context = _context_of(experiment)
    lines = context.Queue()
    for line in range(1, jobs + 1):
        lines.put(line)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_one_core, initargs=(lines,)) as pool:
        futures = {
            pool.submit(_run_on_line, experiment, settings, job): number
            for number, (settings, job) in enumerate(zip(runs, all_jobs, strict=True))
        }
        try:
            for future in tqdm(
                as_completed(futures), total=len(futures), desc=experiment.unit, position=0, smoothing=0
            ):
                with suppress(RunInProgressError):
                    found[futures[future]] = future.result()
        except BaseException as error:
            workers = list(pool._processes.values())  # from Python 3.14 on: pool.terminate_workers()
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:  # as if killed: each goes on from its last checkpoint
                worker.terminate()
            if isinstance(error, BrokenProcessPool):
                raise RunError(
                    "The process of a run was killed; was there too little memory? Take fewer --jobs. The same command "
                    "goes on from each run's last checkpoint."
                ) from error
            raise
    return found


def _context_of(experiment: Experiment[Any, Any]) -> Any:
    """Starts workers as copies of a server that has imported the libraries once; from nothing where there is none.

    The server imports and does nothing else: it has no CUDA context, which no copy could use.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "transformers", "hf_mech", type(experiment).__module__])
    return context


def run_one(experiment: Experiment[S, O], settings: S, job: Job) -> O | None:
    """Trains a run, or goes on where a killed one stopped, or returns the outcome that is there.

    Returns:
        The outcome; None if the run was left at `job.stop_at`.

    Raises:
        FileExistsError: the folder holds a run with other settings.
        RunInProgressError: another process trains it right now.
        OutputError: a full disk, or a folder that cannot be written.
    """
    with naming_the_path(job.folder), _alone(job.folder):
        return run_held(experiment, settings, job)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Holds the run's folder; processes of `accelerate launch` hold it together.

    Raises:
        RunInProgressError: another process holds it.
    """
    with held(folder) if is_main_process() else nullcontext(True) as free:
        if launched_processes() > 1:
            processes()
            (free,) = broadcast_object_list([free])
        if not free:
            raise RunInProgressError(f"{folder} is trained by another process right now. Wait for it, or end it.")
        yield


def run_held(experiment: Experiment[S, O], settings: S, job: Job) -> O | None:
    """As [`run_one`], for a caller that holds the folder."""
    claim(job.folder, settings)
    if job.config and not (job.folder / CONFIG_FILE).exists() and is_main_process():
        text = yaml.safe_dump(redact(job.config), sort_keys=False, allow_unicode=True)
        write_text_atomically(job.folder / CONFIG_FILE, text)
    if (job.folder / OUTCOME_FILE).exists():
        if is_main_process():
            remove_checkpoints(job.folder)  # a kill may have come between the outcome and this
        return experiment.load(job.folder)
    tracking = Path(job.options.output_dir) / TRACKING
    job = replace(
        job,
        tracker=Tracker(job.options.report_to, experiment.name, settings.name, tracking, settings.to_dict()),
    )
    try:
        outcome = experiment.train(settings, job)
    finally:
        job.tracker.finish()
    if outcome is not None:
        if is_main_process():
            outcome.save(job.folder)
            remove_checkpoints(job.folder)
        wait_for_everyone()
    return outcome


def claim(folder: Path, settings: Settings) -> None:
    """Notes in the folder, as `run.json`, what is trained there.

    Raises:
        FileExistsError: something else was trained there before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    note, ours = folder / RUN_FILE, json.dumps(redact(settings.to_dict()), indent=1, ensure_ascii=False)
    if note.exists():
        before, now = redact(json.loads(note.read_text("utf-8"))), json.loads(ours)
        # A setting that came after the run is None.
        if names := [name for name in {**before, **now} if before.get(name) != now.get(name)]:
            differences = ", ".join(f"{name} {before.get(name)} (asked for: {now.get(name)})" for name in names)
            raise FileExistsError(
                f"{folder} was begun with other settings: {differences}. Remove the folder or choose another "
                "--output_dir."
            )
        return
    write_text_atomically(note, ours + "\n")


def this_process() -> dict[str, Any]:
    """Command, commit, machine and versions, as results.json has them."""
    return {
        "command": running_command(),
        "commit": code_version(),
        "machine": describe_machine(),
        "versions": package_versions(),
    }


def launched_processes() -> int:
    """How many processes `accelerate launch` started."""
    return int(os.environ.get("WORLD_SIZE", 1))


def is_main_process() -> bool:
    """Whether this process is the one that writes and prints."""
    return int(os.environ.get("RANK", 0)) == 0


def processes() -> PartialState:
    """The launched processes, as accelerate has them.

    Raises:
        SettingsError: accelerate has others, so that each process would train a run of its own.
    """
    state = PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU"))
    if state.num_processes != launched_processes():
        raise SettingsError(
            f"{launched_processes()} processes were launched, but accelerate joins {state.num_processes}. "
            "Without a GPU, set ACCELERATE_USE_CPU=true."
        )
    return state


def wait_for_everyone() -> None:
    """Returns when every launched process has come here."""
    if launched_processes() > 1:
        processes().wait_for_everyone()


def _end_with_parent() -> None:
    """Ends this worker when the command has ended, however that was."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _one_core(lines: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the command ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    globals()["_LINE"] = lines.get()


def _run_on_line(experiment: Experiment[S, O], settings: S, job: Job) -> O | None:
    try:
        return run_one(experiment, settings, replace(job, position=globals()["_LINE"]))
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001  (an exception may fail in its own way)
            raise SettingsError(str(error)) from None
        raise
