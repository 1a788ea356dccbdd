"""Runs a production-system program, compiled into a DAT, over whole splits of hf_mech/templatic_generation.

    python training/run_pargen.py --task 1_shot_rlw                         # PARGEN, all twelve splits, every prompt
    python training/run_pargen.py --program pargen_k_shot --task all --num_train 20000
    python training/run_pargen.py --task 1_shot_eng --split test ood_lexical --jobs 1

Every part of a split leaves a file under --output_dir, and a part that is there is not run again; so a run that was
killed goes on, and the table can be made in several sittings. At the end --cards_dir gets results.json, a picture and a
model card of all the parts that --output_dir holds of the program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from pargen_part import Part, compiled, positions_for, run_part
from pargen_report import outcomes_of, print_table, write_card
from side_by_side import train_side_by_side
from transformers import HfArgumentParser

from hf_mech.hub import push_checkpoint
from hf_mech.hub.environment import usable_cores
from hf_mech.psl.library import program_names
from hf_mech.templatic.tasks import SPLITS, TASKS, task_named


@dataclass
class Arguments:
    program: str = field(default="pargen", metadata={"help": "one of the package's programs"})
    task: list[str] = field(default_factory=lambda: ["1_shot_rlw"], metadata={"help": "of Table 1, or 'all'"})
    split: list[str] = field(default_factory=lambda: ["all"], metadata={"help": "of Table 1, or 'all'"})
    seed: int = field(default=0, metadata={"help": "of the data"})
    num_train: int | None = field(default=None, metadata={"help": "only so many prompts of the train split; else all"})
    num_prompts: int | None = field(default=None, metadata={"help": "only so many prompts of every split; else all"})
    batch_size: int = field(default=1000, metadata={"help": "prompts at once; fewer where they are long"})
    part_size: int = field(default=20_000, metadata={"help": "prompts in one part"})
    jobs: int = field(default=0, metadata={"help": "parts run side by side; 0: one for each core"})
    max_position_embeddings: int | None = field(default=None, metadata={"help": "T; enough for the task by default"})
    num_open_values: int = field(default=2000, metadata={"help": "different words that a part may have"})
    output_dir: str = field(default="runs/pargen", metadata={"help": "where the parts go"})
    cards_dir: str = field(default="runs/cards", metadata={"help": "where results, picture and card go"})
    push_to_hub: bool = field(default=False, metadata={"help": "push the compiled program and its card"})
    hub_user: str | None = field(default=None, metadata={"help": "user or organization to push to"})

    def check(self) -> None:
        """Exits with a message if the arguments name nothing."""
        known = {"program": program_names(), "task": (*TASKS, "all"), "split": (*SPLITS, "all")}
        for name, names in known.items():
            given = getattr(self, name)
            if unknown := set([given] if isinstance(given, str) else given) - set(names):
                raise SystemExit(f"--{name} must be of {', '.join(names)}; got {', '.join(sorted(unknown))}.")
        if self.push_to_hub and not self.hub_user:
            raise SystemExit("--push_to_hub needs --hub_user: the user or organization to push to.")
        for name in ("batch_size", "part_size", "num_train", "num_prompts"):
            if (given := getattr(self, name)) is not None and given < 1:
                raise SystemExit(f"--{name} must be at least 1, got {given}.")


def parts_of(args: Arguments) -> list[Part]:
    """What the arguments ask for: task by task, split by split, in parts."""
    parts = []
    for task in TASKS if "all" in args.task else dict.fromkeys(args.task):
        for split in SPLITS if "all" in args.split else dict.fromkeys(args.split):
            limits = [task_named(task).size(split), args.num_prompts, args.num_train if split == "train" else None]
            size = min(limit for limit in limits if limit is not None)
            for start in range(0, size, args.part_size):
                part = Part(
                    program=args.program,
                    task=task,
                    split=split,
                    start=start,
                    stop=min(start + args.part_size, size),
                    seed=args.seed,
                    max_position_embeddings=args.max_position_embeddings or positions_for(task),
                    num_open_values=args.num_open_values,
                    batch_size=args.batch_size,
                )
                parts.append(part)
    return parts


def main() -> None:
    (args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
    args.check()
    jobs = args.jobs or usable_cores()
    if jobs == 1:
        torch.set_num_threads(1)
    train_side_by_side(run_part, parts_of(args), Path(args.output_dir), jobs, unit="parts")
    outcomes = outcomes_of(Path(args.output_dir), args.program)
    card = write_card(outcomes, Path(args.cards_dir))
    if args.push_to_hub:
        positions = max(outcome.part["max_position_embeddings"] for outcome in outcomes)
        model, tokenizer = compiled(args.program, positions, args.num_open_values)
        tokenizer.forget()
        push_checkpoint(model, f"{args.hub_user}/{card.name}", processing_class=tokenizer, card_folder=card)
    print_table(outcomes)


if __name__ == "__main__":
    main()
