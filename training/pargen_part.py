"""A program over a range of a split of `hf_mech/templatic_generation`: how many completions are exactly right.

A part leaves one file, `<program>/<task>/<split>/<start>.json` under the output folder, and is not run again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from run_folder import this_process
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizer

from hf_mech.hub.files import write_text_atomically
from hf_mech.psl.compile import compile_program
from hf_mech.psl.library import program_text
from hf_mech.templatic.grammar import Example, generate
from hf_mech.templatic.tasks import task_named

CELLS = 40_000  # of one batch at most: what the program remembers of them stays under half a gigabyte
TOO_LONG = 8  # words that a completion may have more than the longest one asked for, before it is cut off
WRONG = 5  # wrong completions that a part's file shows


@dataclass(frozen=True)
class Part:
    """Examples `start` to `stop - 1` of a split, and what runs them.

    Args:
        program: a program of `hf_mech.psl.library`.
        task, split: of Table 1.
        seed: of the data.
        max_position_embeddings: T; a prompt and its completion must fit.
        num_open_values: how many different words a part may have.
        batch_size: prompts at once, fewer where they are long.
    """

    program: str
    task: str
    split: str
    start: int
    stop: int
    seed: int
    max_position_embeddings: int
    num_open_values: int
    batch_size: int

    @property
    def name(self) -> str:
        return f"{self.program}/{self.task}/{self.split}/{self.start:07d}"

    @property
    def file(self) -> str:
        return f"{self.name}.json"


@dataclass(frozen=True)
class Outcome:
    """What came of a part.

    Args:
        part: the part's settings.
        program_digest: SHA-256 of the program's text.
        prompts: how many were run.
        exact: how many completions were right, word for word and in their end.
        longest: words of the longest prompt.
        wrong: the first wrong ones: `{"index", "prompt", "expected", "got"}`.
        seconds, cpu_seconds: of the part, the drawing of the prompts included.
        origin: command, commit, machine and versions.
    """

    part: dict[str, Any]
    program_digest: str
    prompts: int
    exact: int
    longest: int
    wrong: list[dict[str, Any]]
    seconds: float
    cpu_seconds: float
    origin: dict[str, Any]

    @classmethod
    def load(cls, path: Path) -> Outcome:
        return cls(**json.loads(path.read_text("utf-8")))


def positions_for(task: str) -> int:
    """A T that fits every prompt of the task with its completion: ten constituents of four symbols, or four of ten.

    >>> positions_for("1_shot_rlw"), positions_for("10_shot_rlw")
    (384, 1536)
    """
    return 128 * (task_named(task).shots + 2)


def digest_of(program: str) -> str:
    """What tells one text of a program from another."""
    return hashlib.sha256(program_text(program).encode()).hexdigest()


@lru_cache(maxsize=2)
def compiled(program: str, positions: int, open_values: int) -> tuple[PreTrainedModel, PreTrainedTokenizer]:
    """The program as a DAT, and its tokenizer; kept for the parts that follow."""
    return compile_program(program_text(program), max_position_embeddings=positions, num_open_values=open_values)


@torch.inference_mode()
def complete(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizer, prompts: Sequence[str], max_new_tokens: int
) -> list[str]:
    """What the model says to each prompt, without the stop word; one that did not end is marked by an ellipsis."""
    batch = tokenizer(list(prompts), padding=True, return_tensors="pt")
    said = model.generate(**batch, max_new_tokens=max_new_tokens)[:, batch["input_ids"].shape[1] :]
    stops = torch.isin(said, torch.tensor(model.config.eos_token_id))
    completions = []
    for row, ended, length in zip(said.tolist(), stops.any(1).tolist(), stops.int().argmax(1).tolist(), strict=True):
        words = tokenizer.convert_ids_to_tokens(row[:length] if ended else row)
        completions.append(" ".join(words if ended else [*words, "…"]))
    return completions


def run_part(part: Part, folder: Path, *, position: int = 0, origin: dict[str, Any] | None = None) -> Outcome:
    """Runs a part, unless it is done.

    Args:
        part: what to run.
        folder: the part's name under the output folder; its file is the same with `.json`.
        position: the progress bar's line.
        origin: what to note as the origin; this process by default.

    Raises:
        FileExistsError: the file is there, of other settings or of another text of the program.
    """
    file, digest = folder.with_name(f"{folder.name}.json"), digest_of(part.program)
    if file.exists():
        done = Outcome.load(file)
        if done.part != asdict(part) or done.program_digest != digest:
            raise FileExistsError(
                f"{file} was made with other settings or by another text of the program: {done.part}, "
                f"{done.program_digest[:12]}; asked for {asdict(part)}, {digest[:12]}. Remove it or choose another "
                "--output_dir."
            )
        return done
    began, cpu_began = time.perf_counter(), time.process_time()
    model, tokenizer = compiled(part.program, part.max_position_embeddings, part.num_open_values)
    tokenizer.forget()  # the words of other parts
    examples = list(enumerate(generate(part.task, part.split, part.seed, part.start, part.stop), part.start))
    wrong: list[dict[str, Any]] = []
    with tqdm(
        total=len(examples),
        desc=f"{part.task} {part.split} from {part.start:,}",
        unit="prompts",
        position=position,
        leave=False,
        mininterval=1,
    ) as bar:
        for batch in batches(examples, part.batch_size):
            longest = max(len(example.completion.split()) for _, example in batch)
            said = complete(model, tokenizer, [example.prompt for _, example in batch], longest + TOO_LONG)
            wrong += [
                {"index": index, "prompt": example.prompt, "expected": example.completion, "got": got}
                for (index, example), got in zip(batch, said, strict=True)
                if got != example.completion
            ]
            bar.update(len(batch))
    wrong.sort(key=lambda entry: entry["index"])
    outcome = Outcome(
        part=asdict(part),
        program_digest=digest,
        prompts=len(examples),
        exact=len(examples) - len(wrong),
        longest=max((len(example.prompt.split()) for _, example in examples), default=0),
        wrong=wrong[:WRONG],
        seconds=time.perf_counter() - began,
        cpu_seconds=time.process_time() - cpu_began,
        origin=origin or this_process(),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(file, json.dumps(asdict(outcome), indent=1, ensure_ascii=False) + "\n")
    return outcome


def batches(examples: Sequence[tuple[int, Example]], size: int) -> Iterator[list[tuple[int, Example]]]:
    """Examples of like lengths together, `size` at once, or fewer so that a batch has at most `CELLS` cells."""

    def lengths(entry: tuple[int, Example]) -> tuple[int, int]:
        prompt, completion = entry[1].prompt.count(" "), entry[1].completion.count(" ")
        return prompt // 8, completion

    batch: list[tuple[int, Example]] = []
    longest = 0
    for entry in sorted(examples, key=lengths):
        length = entry[1].prompt.count(" ") + 2
        if batch and (len(batch) == size or (len(batch) + 1) * max(longest, length) > CELLS):
            yield batch
            batch, longest = [], 0
        batch.append(entry)
        longest = max(longest, length)
    if batch:
        yield batch
