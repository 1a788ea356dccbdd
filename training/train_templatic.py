"""Trains the learned baselines of templatic generation, Table 3 of *Mechanisms of Symbol Processing ...*.

    python training/train_templatic.py --model all                           # preset cpu: reduced
    python training/train_templatic.py --model nano_gpt --seeds 0..2
    python training/train_templatic.py --model nano_gpt,nano_gpt_attn_only --preset paper --mixed_precision bf16 \\
        --max_minutes 240 --data_workers 8 --jobs 1 --eval_prompts 2000 --eval_batch 500           # for a GPU

A run is one model on one task from one seed. Each leaves its model and outcome in a folder of its own under
--output_dir; a run that is there is not trained again, and one that was killed goes on from its last checkpoint, bit
for bit. At the end all runs of the task and preset that lie under --output_dir are written to --cards_dir:
results.json, figures and a model card.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path

from side_by_side import train_side_by_side
from templatic_presets import BY_MODEL, MODELS, PRESETS, Preset
from templatic_report import PAPER, finished_runs, print_table, write_card
from templatic_run import Run, train_run
from transformers import HfArgumentParser

from hf_mech.hub.environment import usable_cores
from hf_mech.templatic.tasks import TASKS


@dataclass
class Arguments:
    model: list[str] = field(metadata={"help": f"of {', '.join(MODELS)}, or 'all'"})
    task: str = field(default=PAPER["task"], metadata={"help": "a configuration of hf_mech/templatic_generation"})
    seeds: list[str] = field(default_factory=lambda: ["0"], metadata={"help": "such as 3, or 0,2, or 0..2"})
    preset: str = field(default="cpu", metadata={"help": "'paper': App. M; 'cpu': reduced, minutes a run"})
    steps: int | None = field(default=None, metadata={"help": "instead of the preset's, as all that follow"})
    batch_size: int | None = None
    layers: int | None = field(default=None, metadata={"help": "of encoder and decoder each, where there are two"})
    hidden: int | None = None
    filter: int | None = field(default=None, metadata={"help": "width of feed-forward layers; Mamba's inner width"})
    heads: int | None = None
    state: int | None = None
    kernel: int | None = None
    initializer_range: float | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    scheduler: str | None = field(default=None, metadata={"help": "a schedule of transformers.get_scheduler"})
    warmup_steps: int | None = None
    max_grad_norm: float | None = None
    dropout: float | None = None
    eval_prompts: int | None = field(default=None, metadata={"help": "prompts of each split to measure; 0: all"})
    eval_seed: int = field(default=0, metadata={"help": "of the choice of these prompts"})
    mixed_precision: str = field(default="no", metadata={"help": "no, or bf16"})
    max_minutes: float = field(default=0.0, metadata={"help": "end each training after this time; 0: after --steps"})
    data_seed: int = field(default=0, metadata={"help": "of the data set"})
    num_train: int | None = field(default=None, metadata={"help": "training prompts; all by default"})
    num_eval: int | None = field(default=None, metadata={"help": "prompts of every other split; all by default"})
    output_dir: str = field(default="runs/templatic", metadata={"help": "where models and outcomes go"})
    cards_dir: str = field(default="runs/cards", metadata={"help": "where results, figures and card go"})
    jobs: int = field(default=0, metadata={"help": "runs trained side by side; 0: one for each core"})
    checkpoint_steps: int = field(default=1_000, metadata={"help": "how often a run's state is saved"})
    eval_batch: int = field(default=100, metadata={"help": "prompts completed at a time"})
    data_workers: int = field(default=0, metadata={"help": "processes a run that make its batches, for a GPU"})


def runs_of(args: Arguments) -> list[Run]:
    """What the arguments ask for, seed by seed, models in the order of Table 3.

    Raises:
        ValueError: if an argument names something unknown, or a number makes no sense.
    """
    models = _names(args.model, MODELS, "--model")
    _names([args.task], TASKS, "--task")
    _names([args.preset], PRESETS, "--preset")
    _names([args.mixed_precision], ("no", "bf16"), "--mixed_precision")
    for name in ("steps", "batch_size", "layers", "hidden", "filter", "heads", "state", "kernel"):
        if (value := getattr(args, name)) is not None and value < 1:
            raise ValueError(f"--{name} must be 1 or more, got {value}.")
    if args.max_minutes < 0:
        raise ValueError(f"--max_minutes must be 0 or more, got {args.max_minutes}.")
    numbers = (*(entry.name for entry in fields(Preset)), "eval_seed", "mixed_precision", "max_minutes")
    instead = {name: getattr(args, name) for name in dict.fromkeys((*numbers, *BY_MODEL))}
    data = {"seed": args.data_seed, "num_train": args.num_train, "num_eval": args.num_eval}
    instead["data"] = json.dumps({name: value for name, value in data.items() if value})
    return [Run.of(args.task, model, seed, args.preset, **instead) for seed in _seeds(args.seeds) for model in models]


def _names(asked: list[str], known: Iterable[str], option: str) -> list[str]:
    """The names asked for, apart by blanks or commas; "all" stands for all that are known."""
    names = [name for part in asked for name in part.split(",") if name]
    names = list(known) if names == ["all"] else names
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{option} must be of {', '.join(known)}, got {', '.join(unknown)}.")
    return list(dict.fromkeys(names))


def _seeds(asked: list[str]) -> list[int]:
    """The seeds asked for: numbers and ranges such as 0..2, apart by blanks or commas."""
    seeds: list[int] = []
    for part in [part for text in asked for part in text.split(",") if part]:
        if (match := re.fullmatch(r"(\d+)(?:\.\.(\d+))?", part)) is None:
            raise ValueError(f"--seeds must be whole numbers, or ranges such as 0..2, got {part}.")
        first, last = match.groups()
        seeds += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(seeds))


def main() -> None:
    (args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise SystemExit("A run is not shared by processes: start this with python, and give --jobs.")
    try:
        runs = runs_of(args)
    except ValueError as error:
        raise SystemExit(str(error)) from error
    output_dir = Path(args.output_dir)
    train_side_by_side(
        train_run,
        runs,
        output_dir,
        args.jobs or usable_cores(),
        checkpoint_steps=args.checkpoint_steps,
        data_workers=args.data_workers,
        eval_batch=args.eval_batch,
    )
    outcomes = finished_runs(output_dir, args.task, args.preset)
    write_card(outcomes, Path(args.cards_dir))
    print_table(outcomes)


if __name__ == "__main__":
    main()
