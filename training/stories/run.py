"""One run: one story model trained from one seed, its held-out loss and its completions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device, set_seed
from transformers import PreTrainedModel, PreTrainedTokenizerBase, get_scheduler
from transformers.utils.logging import disable_progress_bar

from hf_mech.lookahead.stories.measures import exact_match, joins
from hf_mech.lookahead.stories.tokens import IGNORED, FillInTheMiddle

from ..engine import Job, Outcome
from ..engine.loop import Training
from .data import StoryBatches, StoryData, batch_of, layout_of, load_stories
from .models import make_model, make_optimizer
from .settings import Run

HELD_OUT_STORIES = 200
"""Held-out stories at most that the loss is measured on."""


@dataclass(kw_only=True)
class RunOutcome(Outcome[Run]):
    """The outcome of a run."""

    parameters: int
    training_stories: int  # that are not too long
    dropped: int  # training stories that are too long
    seconds_of_test: float
    losses: list[float]  # training loss, the mean of each hundredth of the run's steps
    held_out_loss: float  # of the model's own objective, nats a token: the two models' do not compare
    joined: float | None  # goal known: stories of the grammar whose parts agree; None for other corpora
    searched: float | None  # the same, of completions by Algorithm 1; None for the baseline, too
    grammatical: float | None  # goal known: stories of the grammar, also with contradictions
    contradictions: float | None  # goal known: the mean number in a story
    contradictions_unknown: float | None  # goal unknown: the same
    continued: float | None  # goal unknown: stories of the grammar whose parts agree
    exact_match: float  # goal known: completions with the words of the story
    completions: list[str]  # goal known
    continuations: list[str]  # goal unknown

    @property
    def own_figures(self) -> dict[str, float]:
        return {"held_out_loss": self.held_out_loss, "exact_match": self.exact_match}


def train_run(run: Run, job: Job) -> RunOutcome | None:
    """Trains a run, or goes on where a killed one stopped.

    The engine's step loop and not the Trainer: its resuming is exact within an epoch, and the baseline's suffixes are a
    function of the step.

    Raises:
        RunError: the loss is no longer a number.
    """
    disable_progress_bar()  # of saving the model, which takes no time
    data = load_stories(run)
    accelerator = Accelerator(mixed_precision=run.mixed_precision)
    set_seed(run.seed)
    model = accelerator.prepare(make_model(run, data.tokenizer)).train()
    optimizer = make_optimizer(run, model)
    scheduler = get_scheduler(run.scheduler, optimizer, num_warmup_steps=run.warmup_steps, num_training_steps=run.steps)
    batches = StoryBatches(run, data)
    training = Training(accelerator, model, optimizer, scheduler, batches, run.steps, run.max_grad_norm or float("inf"))
    if not training.run(job):
        return None
    began = time.perf_counter()
    trained = accelerator.unwrap_model(model, keep_fp32_wrapper=False).eval()
    with accelerator.autocast():
        loss = held_out_loss(run, trained, data, job.options.eval_batch)
        middles, rests = completions_of(run, trained, data, job.options.eval_batch)
        found = searched(run, trained, data, job.options.num_rollouts)
    outcome = outcome_of(run, data, middles, rests) | {
        "searched": found,
        "origin": job.origin,
        "parameters": trained.num_parameters(),
        "seconds": training.progress.seconds,
        "seconds_of_test": time.perf_counter() - began,
        "losses": training.progress.losses,
        "held_out_loss": loss,
    }
    with job.saving() as folder:
        trained.save_pretrained(folder)
        data.tokenizer.save_pretrained(folder)
    return RunOutcome(settings=run, **outcome)


@torch.no_grad()
def held_out_loss(run: Run, model: PreTrainedModel, data: StoryData, batch_size: int) -> float:
    """The mean loss of a token of held-out stories, whatever the batch size."""
    layout, total, tokens = layout_of(run, data.tokenizer), 0.0, 0
    count = min(HELD_OUT_STORIES, len(data.test))
    for first in range(0, count, batch_size):
        numbers = list(range(first, min(first + batch_size, count)))
        batch = batch_of(data.test[numbers]["input_ids"], numbers, data.tokenizer.pad_token_id, layout)
        trained = int((batch["labels"][:, 1:] != IGNORED).sum())
        total += float(model(**send_to_device(batch, model.device)).loss) * trained
        tokens += trained
    return total / tokens


def completions_of(
    run: Run, model: PreTrainedModel, data: StoryData, batch_size: int
) -> tuple[list[list[int]], list[list[int]]]:
    """The completions of all snippets with their suffixes, and without them."""
    prefixes, suffixes = data.snippets["prefix_ids"][:], data.snippets["suffix_ids"][:]
    layout, room = layout_of(run, data.tokenizer), run.max_tokens - run.prefix_tokens
    options: dict[str, Any] = {"layout": layout, "batch_size": batch_size}
    middles = complete(model, prefixes, suffixes, max_new_tokens=room - run.suffix_tokens, **options)
    return middles, complete(model, prefixes, None, max_new_tokens=room, **options)


def searched(run: Run, model: PreTrainedModel, data: StoryData, num_rollouts: int) -> float | None:
    """The share of snippets that Algorithm 1 completes to stories of the grammar whose parts agree."""
    if run.corpus != "grammar" or run.own_data or run.model != "bst" or not num_rollouts:
        return None
    room = run.max_tokens - run.prefix_tokens - run.suffix_tokens
    options: dict[str, Any] = {"layout": None, "batch_size": 1, "num_rollouts": num_rollouts}
    rows = data.snippets[:]
    middles = complete(model, rows["prefix_ids"], rows["suffix_ids"], max_new_tokens=room, **options)
    return joins(joined_texts(data.tokenizer, rows["prefix_ids"], middles, rows["suffix_ids"])).joined


def joined_texts(tokenizer: PreTrainedTokenizerBase, *parts: Sequence[list[int]]) -> list[str]:
    """The texts of prefixes, middles and suffixes, one behind the other."""
    return [tokenizer.decode([token for part in row for token in part]) for row in zip(*parts, strict=True)]


def outcome_of(run: Run, data: StoryData, middles: list[list[int]], rests: list[list[int]]) -> dict[str, Any]:
    """The measures of the completions."""
    rows = data.snippets[:]
    decode = data.tokenizer.decode
    whole = joined_texts(data.tokenizer, rows["prefix_ids"], middles, rows["suffix_ids"])
    open_ended = joined_texts(data.tokenizer, rows["prefix_ids"], rests)
    ours = run.corpus == "grammar" and not run.own_data
    known, unknown = (joins(whole), joins(open_ended)) if ours else (None, None)
    completions = [decode(ids) for ids in middles]
    return {
        "training_stories": len(data.train),
        "dropped": data.dropped,
        "joined": known and known.joined,
        "grammatical": known and known.grammatical,
        "contradictions": known and known.contradictions,
        "contradictions_unknown": unknown and unknown.contradictions,
        "continued": unknown and unknown.joined,
        "exact_match": exact_match(completions, [decode(ids) for ids in rows["middle_ids"]]),
        "completions": completions,
        "continuations": [decode(ids) for ids in rests],
    }


@torch.no_grad()
def complete(
    model: PreTrainedModel,
    prefixes: Sequence[list[int]],
    suffixes: Sequence[list[int]] | None,
    *,
    layout: FillInTheMiddle | None,
    max_new_tokens: int,
    batch_size: int,
    num_rollouts: int = 0,
) -> list[list[int]]:
    """The tokens that a model writes behind each prefix, up to EOS, which is left out.

    Args:
        prefixes: all of one length.
        suffixes: all of one length; None for the empty suffix.
        layout: the baseline's prompts; None for the Belief State Transformer.
        max_new_tokens: the most tokens of a completion, EOS included.
        batch_size: completions at a time.
        num_rollouts: continuations that Algorithm 1 chooses from; 0: the likeliest token at every place.
    """
    goals = suffixes or [[]] * len(prefixes)
    written: list[list[int]] = []
    for first in range(0, len(prefixes), batch_size):
        part = slice(first, first + batch_size)
        prompts = prefixes[part]
        goal: dict[str, Any] = {"num_rollouts": num_rollouts} if num_rollouts else {}
        if suffixes is not None:
            goal["suffix_ids"] = torch.tensor(suffixes[part], device=model.device)
        if layout is not None:
            prompts = [
                layout.prompt(prefix, suffix) for prefix, suffix in zip(prefixes[part], goals[part], strict=True)
            ]
            goal = {}
        ids = torch.tensor(prompts, device=model.device)
        mask = torch.ones_like(ids)
        rows = model.generate(ids, attention_mask=mask, max_new_tokens=max_new_tokens, do_sample=False, **goal)
        for row in rows[:, ids.shape[1] :].tolist():
            end = row.index(model.config.eos_token_id) if model.config.eos_token_id in row else len(row)
            written.append(row[:end])
    return written
