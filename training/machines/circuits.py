"""The programs as a benchmark set for methods that find circuits: of each a checkpoint, data and the true edges.

The layout is InterpBench's: a folder for each case with `ll_model.pth`, `ll_model_cfg.pkl`, `meta.json` and
`edges.pkl`, and `benchmark_metadata.json` over all. Beside them lie the checkpoint for `from_pretrained`,
`circuit.json` with nodes and registers, and the prompts with their completions, `data.jsonl`.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from hf_mech.probing.circuits import circuit_of
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.compile import compile_file
from hf_mech.programs.psl.library import program_heading, program_text

from .trials import Completion, task_named, task_names

CASES = tuple(name for name in task_names() if "/" not in name)
"""The programs whose prompts are words alone: all but Turing machines."""
_POSITIONS, _OPEN_VALUES = 256, 1024


def write_set(
    folder: str | Path, names: Sequence[str] | None = None, prompts: int = 100, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Writes the set case by case; yields what `benchmark_metadata.json` says of each.

    Args:
        folder: for the set; folders of other cases there stay.
        names: of `CASES`; all by default.
        prompts: of each program.
        seed: of the prompts.

    Raises:
        ProgramsError: a name is not that of a case.
    """
    folder = Path(folder)
    names = tuple(names or CASES)
    if unknown := [name for name in names if name not in CASES]:
        raise ProgramsError(f"{unknown} are no cases of the benchmark set; there are {', '.join(CASES)}")
    cases = []
    for name in names:
        cases.append(_case(name, folder / name, prompts, seed))
        yield cases[-1]
    about = {"name": "hf_mech circuits", "description": __doc__, "seed": seed, "cases": cases}
    (folder / "benchmark_metadata.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def _case(name: str, folder: Path, prompts: int, seed: int) -> dict[str, Any]:
    trials = list(islice(task_named(name).trials(seed), prompts))
    rows = [
        {"prompt": " ".join(trial.prompt), "completion": " ".join(trial.completion)}
        for trial in trials
        if isinstance(trial, Completion)
    ]
    folder.parent.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*"):  # of an earlier run; the checkpoint's own files are replaced
        if path.name in {"ll_model.pth", "ll_model_cfg.pkl", "meta.json", "edges.pkl", "circuit.json", "data.jsonl"}:
            path.unlink()
    model = compile_file(name, folder, max_position_embeddings=_POSITIONS, num_open_values=_OPEN_VALUES)
    circuit = circuit_of(model)
    circuit.save(folder)
    torch.save(model.state_dict(), folder / "ll_model.pth")
    (folder / "ll_model_cfg.pkl").write_bytes(pickle.dumps(model.config.to_dict()))
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    case = {
        "case_id": name,
        "task_description": program_heading(program_text(name)).partition("\n")[0],
        "max_seq_len": max(len(f"{row['prompt']} {row['completion']}".split()) for row in rows),
        "min_seq_len": min(len(row["prompt"].split()) for row in rows),
        "layers": model.config.num_hidden_layers,
        "edges": len(circuit.edges),
        "candidates": len(circuit.candidates),
    }
    (folder / "meta.json").write_text(json.dumps(case | {"seed": seed}, indent=1) + "\n", "utf-8")
    files = [{"file_name": path.name} for path in sorted(folder.iterdir()) if path.is_file()]
    return case | {"files": files}
