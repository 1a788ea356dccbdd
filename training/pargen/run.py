"""A program over a range of a split of `hf_mech/templatic_generation`: how many completions are exactly right."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizer

from hf_mech.programs.psl.compile import compile_program
from hf_mech.programs.psl.library import complete_batch, program_names, program_text
from hf_mech.programs.templatic.grammar import Example, generate
from hf_mech.programs.templatic.tasks import SPLITS, TASKS, task_named

from ..engine import Job, Outcome, Settings, axis, fixed, option

PROGRAMS = tuple(name for name in program_names() if name.startswith("pargen"))
"""Those that read templatic generation; the others have the experiment `machines`."""

CELLS = 40_000  # of one batch at most: what the program remembers of them stays under half a gigabyte
TOO_LONG = 8  # words that a completion may have more than the longest one asked for, before it is cut off
WRONG = 5  # wrong completions that a part's file shows


@dataclass(frozen=True, kw_only=True)
class Part(Settings):
    """Examples `start` to `stop - 1` of a split, and the compiled program that completes them."""

    PRESETS = {"whole": {}}

    program: str = axis("programs of the package", PROGRAMS, default=["pargen"])
    task: str = axis("configurations of hf_mech/templatic_generation", TASKS, default=["1_shot_rlw"])
    split: str = axis("splits", SPLITS, default=["all"])
    seed: int = fixed("of the data")
    start: int = fixed("the first example")
    stop: int = fixed("the one after the last example")
    program_digest: str = fixed("SHA-256 of the program's text")
    max_position_embeddings: int | None = option("T; by default enough for the task", default=None, least=1)
    num_open_values: int = option("different words that a part may have", default=2_000, least=1)
    batch_size: int = option("prompts at once; fewer where they are long", default=1_000, least=1)

    @property
    def name(self) -> str:
        departures = "".join(f"-{name}={value}" for name, value in self.departures.items())
        return f"{self.program}/{self.task}/{self.split}/{self.start:07d}{departures}"

    @property
    def positions(self) -> int:
        """T: a prompt and its completion must fit."""
        return self.max_position_embeddings or positions_for(self.task)


@dataclass(kw_only=True)
class PartOutcome(Outcome[Part]):
    """The outcome of a part; its seconds include the drawing of the prompts.

    Attributes:
        prompts: how many were run.
        exact: how many completions were right, word for word and in their end.
        longest: words of the longest prompt.
        wrong: the first wrong ones: `{"index", "prompt", "expected", "got"}`.
        cpu_seconds: of all threads.
    """

    prompts: int
    exact: int
    longest: int
    wrong: list[dict[str, Any]]
    cpu_seconds: float


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


def complete(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizer, prompts: Sequence[str], max_new_tokens: int
) -> list[str]:
    """The completion of each prompt, without the stop word; an ellipsis stands behind one that did not end."""
    found = complete_batch(model, tokenizer, prompts, max_new_tokens)
    return [" ".join([*one.words, *([] if one.ended else ["…"])]) for one in found]


def run_part(part: Part, job: Job) -> PartOutcome:
    """Runs a part."""
    began, cpu_began = time.perf_counter(), time.process_time()
    model, tokenizer = compiled(part.program, part.positions, part.num_open_values)
    tokenizer.forget()  # the words of other parts
    examples = list(enumerate(generate(part.task, part.split, part.seed, part.start, part.stop), part.start))
    wrong: list[dict[str, Any]] = []
    described = f"{part.task} {part.split} from {part.start:,}"
    with job.bar(len(examples), desc=described, unit="prompts") as bar:
        for batch in batches(examples, part.batch_size):
            longest = max(len(example.completion.split()) for _, example in batch)
            said = complete(model, tokenizer, [example.prompt for _, example in batch], longest + TOO_LONG)
            wrong += [
                {"index": index, "prompt": example.prompt, "expected": example.completion, "got": got}
                for (index, example), got in zip(batch, said, strict=True)
                if got != example.completion
            ]
            bar.update(len(batch))
    job.tracker.log({"exact": 1 - len(wrong) / max(len(examples), 1)}, len(examples))
    wrong.sort(key=lambda entry: entry["index"])
    return PartOutcome(
        settings=part,
        origin=job.origin,
        prompts=len(examples),
        exact=len(examples) - len(wrong),
        longest=max((len(example.prompt.split()) for _, example in examples), default=0),
        wrong=wrong[:WRONG],
        seconds=time.perf_counter() - began,
        cpu_seconds=time.process_time() - cpu_began,
    )


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
