"""Trains transformers with and without a stack on context-free tasks, as in *A Transformer with Stack Attention*.

    python training/train_formal_languages.py --task reverse_string                            # stack, MLM, one seed
    python training/train_formal_languages.py --task all --layout all --model stack,vanilla --seeds 0..4 --jobs 2
    python training/train_formal_languages.py --task reverse_string --model rnn,stack_rnn      # Table 1's baselines
    python training/train_formal_languages.py --task reverse_string --encoding all             # a row of Table 2
    python training/train_formal_languages.py --task modular_arithmetic --multi_pop 2 --steps 20000
    python training/train_formal_languages.py --task all --preset paper --jobs 5               # for a GPU

A run is one task, layout, model, encoding and seed. Each leaves its model and outcome in a folder of its own under
--output_dir; a run that is there is not trained again, and one that was killed goes on from its last checkpoint, bit
for bit. At the end all runs of the preset that lie under --output_dir are written to --cards_dir: results.json, figures
and a model card for each task.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path

from formal_models import ENCODINGS, LAYOUTS, MODELS, TRANSFORMERS, load_model
from formal_presets import PRESETS, TASKS, Preset
from formal_report import choose, finished_runs, print_table, write_card
from formal_run import Run, train_run
from side_by_side import train_side_by_side
from transformers import HfArgumentParser

from hf_mech.formal_languages import TASKS as KNOWN_TASKS
from hf_mech.formal_languages import formal_language_tokenizer
from hf_mech.hub import push_checkpoint
from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.hub.environment import usable_cores


@dataclass
class Arguments:
    task: list[str] = field(metadata={"help": "configurations of hf_mech/formal_languages, or 'all': the paper's four"})
    layout: list[str] = field(default_factory=lambda: ["mlm"], metadata={"help": "mlm, alm, or 'all'"})
    model: list[str] = field(
        default_factory=lambda: ["stack"], metadata={"help": "stack, vanilla, rnn, stack_rnn, or 'all'; RNNs: mlm only"}
    )
    encoding: list[str] = field(
        default_factory=lambda: ["none"],
        metadata={"help": "the transformers' positional encodings: none, learned, or 'all': those of Table 2"},
    )
    seeds: list[str] = field(default_factory=lambda: ["0"], metadata={"help": "such as 3, or 0,2, or 0..4"})
    preset: str = field(default="cpu", metadata={"help": "'paper': App. B.1; 'cpu': reduced, minutes a run"})
    steps: int | None = field(default=None, metadata={"help": "instead of the preset's, as all below"})
    batch_size: int | None = None
    learning_rate: float | None = None
    scheduler: str | None = field(default=None, metadata={"help": "a schedule of transformers.get_scheduler"})
    warmup_steps: int | None = None
    max_grad_norm: float | None = None
    dropout: float | None = None
    attention_dropout: float | None = None
    initializer_range: float | None = None
    learned_loss: float | None = field(
        default=None,
        metadata={"help": "end --steps_after steps after the training loss has fallen below this; 0: never"},
    )
    steps_after: int | None = None
    restart_after: int | None = field(
        default=None, metadata={"help": "draw the weights anew after so many steps above --learned_loss; 0: never"}
    )
    max_train_length: int | None = None
    test_samples: int | None = field(default=None, metadata={"help": "examples at each test length"})
    multi_pop: int = field(default=1, metadata={"help": "the most pops that the stack takes in a step; 1: the paper"})
    stack_gate: bool = field(default=False, metadata={"help": "the stack's learned gate; off: the paper"})
    num_hidden_layers: int = field(default=5, metadata={"help": "of the transformers; 5: the paper"})
    test_seed: int = field(default=0, metadata={"help": "of the test examples; another one to choose settings by"})
    output_dir: str = field(default="runs/formal_languages", metadata={"help": "where models and outcomes go"})
    cards_dir: str = field(default="runs/cards", metadata={"help": "where results, figures and cards go"})
    jobs: int = field(default=0, metadata={"help": "runs trained side by side; 0: one for each core"})
    checkpoint_steps: int = field(default=1_000, metadata={"help": "how often a run's state is saved"})
    data_workers: int = field(default=0, metadata={"help": "processes a run that make its batches, for a GPU"})
    push_to_hub: bool = field(default=False, metadata={"help": "push each task's chosen checkpoint and its card"})
    hub_user: str | None = field(default=None, metadata={"help": "user or organization to push to"})


def runs_of(args: Arguments) -> list[Run]:
    """What the arguments ask for, task by task, and within a task seed by seed: what counts most is done first.

    Raises:
        ValueError: if an argument names something unknown.
    """
    tasks = _names(args.task, TASKS, KNOWN_TASKS, "--task")
    layouts = _names(args.layout, LAYOUTS, LAYOUTS, "--layout")
    models = _names(args.model, MODELS, MODELS, "--model")
    encodings = _names(args.encoding, ENCODINGS, (*ENCODINGS, "learned"), "--encoding")
    (preset,) = _names([args.preset], PRESETS, PRESETS, "--preset")
    instead = {name: getattr(args, name) for name in (*(number.name for number in fields(Preset)), "test_seed")}
    of_transformers = {name: getattr(args, name) for name in ("multi_pop", "stack_gate", "num_hidden_layers")}
    of_stack = ("multi_pop", "stack_gate")
    runs = []
    for task in tasks:
        for seed in _seeds(args.seeds):
            for layout in layouts:
                for model in models:
                    if model in TRANSFORMERS:
                        own = {k: v for k, v in of_transformers.items() if model == "stack" or k not in of_stack}
                        runs += [Run.of(task, layout, model, e, seed, preset, **instead, **own) for e in encodings]
                    elif layout == "mlm":
                        runs.append(Run.of(task, layout, model, "none", seed, preset, **instead))
    return runs


def _names(asked: list[str], everything: Iterable[str], known: Iterable[str], option: str) -> list[str]:
    """The names asked for, apart by blanks or commas; "all" stands for `everything`."""
    names = [name for part in asked for name in part.split(",") if name]
    names = list(everything) if names == ["all"] else names
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{option} must be of {', '.join(known)}, got {', '.join(unknown)}.")
    return list(dict.fromkeys(names))


def _seeds(asked: list[str]) -> list[int]:
    """The seeds asked for: numbers and ranges such as 0..4, apart by blanks or commas."""
    seeds: list[int] = []
    for part in [part for text in asked for part in text.split(",") if part]:
        if (match := re.fullmatch(r"(\d+)(?:\.\.(\d+))?", part)) is None:
            raise ValueError(f"--seeds must be whole numbers, or ranges such as 0..4, got {part}.")
        first, last = match.groups()
        seeds += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(seeds))


def main() -> None:
    (args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
    if args.push_to_hub and not args.hub_user:
        raise SystemExit("--push_to_hub needs --hub_user: the user or organization to push to.")
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise SystemExit("A run is too small to be shared by processes: start this with python, and give --jobs.")
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
    )
    outcomes = finished_runs(output_dir, args.preset)
    for task in dict.fromkeys(run.task for run in runs):
        own = {folder: outcome for folder, outcome in outcomes.items() if outcome.run["task"] == task}
        chosen = choose(own)
        model = None if chosen is None else load_model(chosen / "model")
        card = write_card(task, own, chosen, model, Path(args.cards_dir))
        if model is None:
            continue
        tokenizer = formal_language_tokenizer(task)
        save_checkpoint(model, output_dir / card.name, processing_class=tokenizer)
        if args.push_to_hub:
            push_checkpoint(
                model,
                f"{args.hub_user}/{card.name}",
                processing_class=tokenizer,
                card_folder=card,
                extra_files={"accuracy_by_length.json": card / "accuracy_by_length.json"},
            )
    print_table(outcomes)


if __name__ == "__main__":
    main()
