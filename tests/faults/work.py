"""Pieces of work that the faults hit: each does something in a folder, and says afterwards what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
import yaml
from safetensors.torch import load_file

import hf_mech  # noqa: F401  (registers the data sets)
from hf_mech.cli import app
from hf_mech.hub.files import write_text_atomically
from tests.training.cases import CASES, few_rows, outcome_of, reset_process
from training.engine.runner import run_one
from training.make_checkpoints import main as make_checkpoints

DATA: dict[str, tuple[str, dict[str, Any]]] = {
    "formal_languages": ("reverse_string", {"num_train": 400, "num_test": 120}),
    "nested_functions": ("rlw", {"num_train": 70, "num_eval": 20}),
    "nested_text": ("json", {"num_train": 70, "num_eval": 20}),
    "rules": ("comments", {"num_train": 400, "num_eval": 8}),
    "star_graph": ("g-2-5", {"num_train": 400, "num_test": 40}),
    "stories": ("grammar", {"num_train": 400, "num_test": 50}),
    "strips_traces": ("ferry-1c", {"num_train": 400, "num_test": 400}),
    "templatic_generation": ("1_shot_rlw", {"num_train": 200, "num_eval": 20}),
}
"""A configuration of each builder that makes rows without an engine, and few rows of it."""


@dataclass(frozen=True)
class Work:
    """A piece of work.

    Attributes:
        name: as the table says it.
        group: what it is an example of.
        do: does it in the folder, or goes on with it.
        result: what is left in the folder, as text: equal for two works done to the end.
    """

    name: str
    group: str
    do: Callable[[Path], Any]
    result: Callable[[Path], str]


def _digest(*parts: Any) -> str:
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def files_of(folder: Path) -> list[Path]:
    """The files that have their final names."""
    every = (path for path in folder.rglob("*") if path.is_file())
    hidden = (".tmp", ".lock", ".incomplete")
    return sorted(
        path
        for path in every
        if not any(part.startswith(".") or part.endswith(hidden) for part in path.relative_to(folder).parts)
    )


def broken_files(folder: Path) -> list[str]:
    """The files with final names that cannot be read to the end, and why."""
    readers: dict[str, Callable[[Path], Any]] = {
        ".json": lambda path: json.loads(path.read_text()),
        ".yaml": lambda path: yaml.safe_load(path.read_text()),
        ".safetensors": load_file,
        ".pt": partial(torch.load, weights_only=False),
        ".bin": partial(torch.load, weights_only=False),
        ".pddl": lambda path: path.read_text().rstrip().endswith(")") or 1 / 0,
        ".arrow": lambda path: datasets.Dataset.from_file(str(path), in_memory=True),
        ".parquet": lambda path: datasets.Dataset.from_parquet(str(path), keep_in_memory=True),
    }
    found = []
    for path in files_of(folder):
        try:
            readers.get(path.suffix, Path.read_bytes)(path)
        except Exception as error:  # noqa: BLE001  (each library has its own for a broken file)
            found.append(f"{path.relative_to(folder)}: {error}")
    return found


# ---------------------------------------------------------------------------------------------------------- trainings


def _train(name: str, folder: Path) -> None:
    case = CASES[name]
    settings = case.settings(folder)
    with pytest.MonkeyPatch.context() as patch:
        few_rows(name, patch)
        run_one(case.experiment, settings, case.job(settings, folder))
    reset_process()


def _trained(name: str, folder: Path) -> str:
    case = CASES[name]
    run = folder / case.settings(folder).name
    weights = run / "model" / "model.safetensors"
    tensors = load_file(weights) if weights.exists() else {}
    bits = {
        key: hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy().tobytes()) for key, tensor in tensors.items()
    }
    return _digest(outcome_of(case.experiment.load(run)), {key: bits[key].hexdigest() for key in sorted(bits)})


# --------------------------------------------------------------------------------------------------------------- data


def _build(name: str, folder: Path) -> None:
    config, options = DATA[name]
    datasets.load_dataset(f"hf_mech/{name}", config, cache_dir=str(folder), **options)


def _built(name: str, folder: Path) -> str:
    config, options = DATA[name]
    built = datasets.load_dataset(f"hf_mech/{name}", config, cache_dir=str(folder), keep_in_memory=True, **options)
    return _digest({split: list(rows) for split, rows in built.items()})


# ----------------------------------------------------------------------------------------------------------- commands


def _call(*words: str | Path) -> None:
    """The command, in this process; its exit code is this process's."""
    app([*map(str, words)], prog_name="hf-mech")


def _bytes(folder: Path) -> str:
    """All files but what tells the time."""
    timed = ("results.json", "README.md", "checkpoint.json")
    return _digest(
        {str(path.relative_to(folder)): path.read_bytes() for path in files_of(folder) if path.name not in timed}
    )


def _compile(folder: Path) -> None:
    _call("compile", "pargen", "--out", folder / "pargen", "--force")


def _learn(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    log = folder / "calls.jsonl"
    if not log.exists():
        traces = datasets.load_dataset("hf_mech/strips_traces", "ferry-lifted", split="train", num_train=40, num_test=4)
        lines = (
            {"case": f"{case}", "time": time, "action": call["name"], "arguments": call["arguments"], "ok": not label}
            for case, trace in enumerate(traces)
            for time, (call, label) in enumerate(zip(trace["actions"], trace["labels"], strict=True))
        )
        write_text_atomically(log, "".join(f"{json.dumps(line)}\n" for line in lines))
    _call("learn", log, "--out", folder / "domain.pddl", "--save", folder / "model")


def _make_checkpoint(folder: Path) -> None:
    name = "strips-simple"
    if code := make_checkpoints([name, "--output_dir", str(folder / "runs"), "--cards_dir", str(folder / "cards")]):
        raise SystemExit(code)


def _cards(folder: Path) -> str:
    return _bytes(folder / "cards")


WORKS = {
    work.name: work
    for work in (
        *(
            Work(f"training {name}", "training", partial(_train, name), partial(_trained, name))
            for name in CASES
            if name != "toy"
        ),
        *(Work(f"load_dataset {name}", "data", partial(_build, name), partial(_built, name)) for name in DATA),
        Work("hf-mech compile", "command", _compile, _bytes),
        Work("hf-mech learn", "command", _learn, _bytes),
        Work("make_checkpoints", "command", _make_checkpoint, _cards),
    )
}
