"""`hf-mech demo`: a transformer learns a hidden planning domain from action traces; the result is proved right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import datasets
import torch
from datasets import load_dataset, load_dataset_builder
from rich.console import Console
from transformers import AutoModel, DataCollatorForTokenClassification, Trainer, TrainingArguments
from transformers.utils import logging

from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.hub.files import check_writable, naming_the_path, replacing
from hf_mech.metrics.strips_trace_accuracy import traces_right
from hf_mech.models.strips import StripsDomain, StripsTransformer, StripsTransformerConfig, strips_tokenizer
from hf_mech.planning.equivalence import find_distinguishing_trace
from hf_mech.planning.figures import attention_arrays, attention_figure, domains_figure, domains_text
from hf_mech.planning.planner import plan

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

DATASET = "hf_mech/strips_traces"


def run_demo(
    out: Path, domain: str = "simple", num_train: int = 200, seeds: int = 10, max_steps: int = 2_000
) -> StripsTransformer:
    """Data, training, symbols, checkpoint, loading, proof, plan: each step uses the public API.

    Args:
        out: the folder for the checkpoint and the pictures.
        domain: a configuration of `hf_mech/strips_traces`.
        num_train: training traces.
        seeds: the number of seeds to train at once; the best in training is kept.
        max_steps: optimizer steps, 8 traces each.

    Returns:
        The learned model, as loaded from its checkpoint.

    Raises:
        OutputError: if `out` cannot be written; refused before the training where this can be known.
    """
    check_writable(out)
    with naming_the_path(out):
        return _demo(out, domain, num_train, seeds, max_steps)


def _demo(out: Path, domain: str, num_train: int, seeds: int, max_steps: int) -> StripsTransformer:
    console = Console(highlight=False)
    datasets.disable_progress_bars()
    logging.set_verbosity_error()
    logging.disable_progress_bar()  # those of loading and saving; the Trainer's stays

    console.rule("1. Action traces of a domain that stays hidden")
    traces = load_dataset(DATASET, domain, num_train=num_train, num_test=1_000)
    hidden: StripsDomain = load_dataset_builder(DATASET, domain, num_train=num_train, num_test=1_000).problem.domain
    for row in traces["train"].select(range(4)):
        names = hidden.decode(row["input_ids"])
        names[-1] += "" if row["valid"] else " (not possible)"
        console.print("  " + ", ".join(names))
    console.print(f"  ... {num_train} of them, and nothing else")

    console.rule("2. Training, with transformers' Trainer")
    tokenizer = strips_tokenizer(hidden.action_names)
    config = StripsTransformerConfig(
        actions=list(hidden.action_names), num_propositions=len(hidden.propositions), ensemble=seeds
    )
    ensemble = StripsTransformer(config).seed_members(range(seeds))
    trainer = _trainer(ensemble, tokenizer, traces["train"], out, max_steps)
    trainer.train()
    accuracy = _trace_accuracy(trainer, traces["train"])
    best = int(accuracy.argmax())
    console.print(
        f"  {int((accuracy == 1).sum())} of {seeds} seeds classify every training trace correctly; seed {best} is kept"
    )

    console.rule("3. The learned weights, read as symbols")
    model = ensemble.member(best).cpu().eval()
    console.print(domains_text(hidden, model.to_domain()))

    console.rule("4. Saved, and loaded again with AutoModel.from_pretrained")
    checkpoint = out / f"strips-{domain}"
    save_checkpoint(model, checkpoint, processing_class=tokenizer)
    loaded: StripsTransformer = AutoModel.from_pretrained(checkpoint)
    console.print(f"  same weights: {torch.equal(loaded.theta, model.theta)}")

    console.rule("5. The proof")
    learned = loaded.to_domain()
    verdict = find_distinguishing_trace(learned, hidden)
    console.print(f"  learned and hidden domain: {verdict}")
    _show_plan(console, learned, hidden)

    figures = _draw(out, hidden, learned, loaded, traces["test"])
    console.rule("Done")
    console.print(f"  checkpoint  {checkpoint}\n  pictures    {', '.join(str(f) for f in figures)}", soft_wrap=True)
    return loaded


def _trainer(
    model: StripsTransformer, tokenizer: PreTrainedTokenizerFast, train: Any, out: Path, max_steps: int
) -> Trainer:
    arguments = TrainingArguments(
        output_dir=str(out),
        max_steps=max_steps,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=500,
        learning_rate=0.02,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        label_names=["labels"],
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=train,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        optimizers=(torch.optim.RAdam(model.parameters(), lr=arguments.learning_rate), None),
    )


@torch.no_grad()
def _trace_accuracy(trainer: Trainer, rows: Any) -> torch.Tensor:
    """The share of traces with every position right, with the binarized weights, [members]."""
    model = StripsTransformer(trainer.model.config).to(trainer.model.device).eval()
    model.load_state_dict(trainer.model.state_dict())
    model.binarize()
    right = []
    for batch in trainer.get_eval_dataloader(rows):
        predicted = model(batch["input_ids"]).inapplicability >= 0.5  # [batch, length, members]
        right.append(traces_right(predicted, batch["labels"]))
    return torch.cat(right).float().mean(0).cpu()


def _show_plan(console: Console, learned: StripsDomain, hidden: StripsDomain) -> None:
    """Shows, for the first action that rules out another, the steps that the learned domain plans to make it possible.

    Pairs without a plan are passed over; if none has one, it shows nothing.
    """
    for first in learned.action_names:
        possible = learned.next_actions([first])
        for wanted in learned.action_names:
            if wanted in possible:
                continue
            true_now = learned.unmask(~learned.falsified([first]))
            steps = plan(learned, true_now, learned.actions[learned.encode([wanted])[0]].pre)
            if steps is not None:
                trace = [first, *steps, wanted]
                console.print(
                    f"  after {first!r}, {wanted!r} is not possible; planned in the learned domain: "
                    f"{', '.join([*steps, wanted])}\n  valid in the hidden domain: {hidden.is_positive(trace)}"
                )
                return


def _draw(out: Path, hidden: StripsDomain, learned: StripsDomain, model: StripsTransformer, rows: Any) -> list[Path]:
    """Draws both domains, and the attention over an impossible test trace of about 6 actions; returns the files."""
    trace = min((row["input_ids"] for row in rows if not row["valid"]), key=lambda ids: abs(len(ids) - 6))
    arrays = attention_arrays(model.theta[0].detach().numpy(), trace)
    names = [hidden.action_names[action] for action in trace]
    pictures = {
        out / "learned_domain.png": domains_figure(hidden, learned),
        out / "attention.png": attention_figure(names, list(learned.propositions), *arrays),
    }
    for path, figure in pictures.items():
        with replacing(path) as aside:
            figure.savefig(aside, dpi=110, format="png")
    return list(pictures)
