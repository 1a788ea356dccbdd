"""One run: the compiled program or a trained GPT-2, and its exact match on every split."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import datasets
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from transformers import get_scheduler
from transformers.utils.logging import disable_progress_bar

import hf_mech  # noqa: F401  load_dataset learns our names
from hf_mech.programs.nested_functions.calls import SPLITS
from hf_mech.programs.psl.compile import compile_program
from hf_mech.programs.psl.library import complete_batch, program_text
from hf_mech.programs.templatic.batches import Layout, TrainingBatches, lengths_of, word_tokenizer, words_of

from ..engine import Job
from ..engine.loop import Training
from ..engine.run import CompletionsOutcome
from .models import make_model, make_optimizer
from .settings import Run

DATASET = "hf_mech/nested_functions"
PROGRAM = "nested_functions"
POSITIONS = max(split.most_words for split in SPLITS.values()) + 12
"""The longest prompt with its completion, and their marks."""

Answer = Callable[[Mapping[str, list[str]]], Iterator[bool]]
"""Of a batch of rows: whether each completion is exactly right, and ends."""


@dataclass(kw_only=True)
class RunOutcome(CompletionsOutcome[Run]):
    """The outcome of a run; the compiled program's training takes no step and no second."""


def train_run(run: Run, job: Job) -> RunOutcome | None:
    """Trains and measures a run, or goes on where a killed one stopped.

    Raises:
        RunError: the loss is no longer a number.
    """
    disable_progress_bar()  # of saving the model, which takes no time
    data: dict[str, Any] = {"seed": run.data_seed}
    if run.num_train:
        data["num_train"] = run.num_train
    splits = run.own_splits() if run.own_data else datasets.load_dataset(DATASET, run.config, **data)
    if run.model == "dat":
        model, tokenizer = compile_program(program_text(PROGRAM), max_position_embeddings=POSITIONS)
        training = None
    else:
        tokenizer = word_tokenizer(
            words_of(text for name in ("prompt", "completion") for text in splits["train"][name])
        )
        longest = max(int(lengths_of(rows).max()) for rows in splits.values()) if run.own_data else 0
        training = prepare(run, Layout(tokenizer, "decoder"), splits["train"], max(POSITIONS, longest + 3))
        if not training.run(job):
            return None
        model = training.accelerator.unwrap_model(training.model).eval()
    began = time.perf_counter()
    right, measured = {}, {}
    for split, rows in splits.items():
        chosen = rows.select(range(min(run.eval_prompts or len(rows), len(rows))))
        if training is None:
            answer = by_program(model, tokenizer)
        else:
            answer = by_gpt2(model, Layout(tokenizer, "decoder"), training.accelerator)
        right[split] = sum(measure(answer, chosen, job))
        measured[split] = len(chosen)
    with job.saving() as folder:
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)
    return RunOutcome(
        settings=run,
        origin=job.origin,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        steps=training.progress.step if training else 0,
        seconds=training.progress.seconds if training else 0.0,
        seconds_of_test=time.perf_counter() - began,
        losses=training.progress.losses if training else [],
        right=right,
        measured=measured,
    )


def prepare(run: Run, layout: Layout, rows: datasets.Dataset, positions: int = POSITIONS) -> Training:
    """GPT-2 with new weights, and all that trains it on the completions of the rows."""
    set_seed(run.seed)
    accelerator = Accelerator(mixed_precision=run.mixed_precision)
    model = accelerator.prepare(make_model(run, layout.tokenizer, positions)).train()
    optimizer = make_optimizer(run, model)
    return Training(
        accelerator=accelerator,
        model=model,
        optimizer=optimizer,
        scheduler=get_scheduler(run.scheduler, optimizer, run.warmup_steps, run.steps),
        batches=TrainingBatches(rows, layout, run.batch_size, run.seed),
        steps=run.steps,
        max_grad_norm=run.max_grad_norm,
    )


def measure(answer: Answer, rows: datasets.Dataset, job: Job, batch_size: int = 100) -> Iterator[bool]:
    """Whether each completion is right; completions of like lengths are made together."""
    ordered = sorted(rows, key=lambda row: (row["completion"].count(" "), row["prompt"].count(" ")))
    with job.bar(len(ordered), desc="measuring", unit="prompts") as bar:
        for start in range(0, len(ordered), batch_size):
            batch = ordered[start : start + batch_size]
            yield from answer({name: [row[name] for row in batch] for name in ("prompt", "completion")})
            bar.update(len(batch))


def by_program(model: Any, tokenizer: Any) -> Answer:
    """The completions of the compiled program."""

    def answer(rows: Mapping[str, list[str]]) -> Iterator[bool]:
        tokenizer.forget()  # the words of other batches
        most = max(len(text.split()) for text in rows["completion"]) + 1
        said = complete_batch(model, tokenizer, rows["prompt"], most)
        return (one.ended and one.text == text for one, text in zip(said, rows["completion"], strict=True))

    return answer


def by_gpt2(model: Any, layout: Layout, accelerator: Accelerator) -> Answer:
    """The greedy completions of the trained model; an answer with an unknown word is wrong."""
    tokenizer = layout.tokenizer

    @torch.no_grad()
    def answer(rows: Mapping[str, list[str]]) -> Iterator[bool]:
        prompts, expected = layout.prompts(rows), layout.answers(rows)
        with accelerator.autocast():
            said = model.generate(
                **{name: value.to(model.device) for name, value in prompts.items()},
                max_new_tokens=expected.shape[1],
                do_sample=False,
            )[:, prompts["input_ids"].shape[1] :].cpu()
        said = torch.nn.functional.pad(said, (0, expected.shape[1] - said.shape[1]), value=tokenizer.pad_token_id)
        known = (expected != tokenizer.unk_token_id).all(1)
        return iter(((said == expected).all(1) & known).tolist())

    return answer


__all__ = ["RunOutcome", "train_run"]
