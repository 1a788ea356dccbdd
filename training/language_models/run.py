"""One run: a language model of one objective, form and seed, trained by the Trainer, and what came of it."""

from __future__ import annotations

import copy
import json
import math
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import DatasetDict, load_from_disk
from torch import Tensor
from torch.nn import functional as F
from transformers import (
    AutoTokenizer,
    EarlyStoppingCallback,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_callback import ExportableState, PrinterCallback, TrainerState
from transformers.trainer_utils import EvalPrediction
from transformers.utils.logging import disable_progress_bar

from hf_mech.hub.checkpoint import save_checkpoint
from hf_mech.hub.files import write_text_atomically
from hf_mech.languages.corpora import Collator, Prepared, evaluation_rows
from hf_mech.languages.nested_text import BEYOND

from ..engine import Job, Outcome, SettingsError
from ..engine.run import RunError, last_checkpoint
from . import nested
from .models import logits_difference, model_from_checkpoint, new_model
from .settings import Run

_DIVERGED = 700.0  # nats a token; the exponential of more is no number
_COMPARED = 16  # rows on which a fine-tuned model's first logits are compared with its checkpoint's


@dataclass(kw_only=True)
class RunOutcome(Outcome[Run]):
    """The outcome of a run; its seconds are those of training and validation.

    Attributes:
        data: what it was trained on ([`~hf_mech.languages.corpora.Prepared`]).
        parameters: how many.
        steps, epochs: until it stopped.
        perplexity_before: on validation, before the first step.
        validation_perplexity: after every epoch.
        best_epoch: the epoch with the lowest of these, counted from 1; its weights are kept.
        test_perplexity: of those weights.
        logits_difference: how far the logits are from those of the checkpoint before the first step; None from scratch.
        nested: measurements on nested texts, by split or by depth ([`~training.language_models.nested.measure`]).
    """

    data: dict[str, Any]
    parameters: int
    steps: int
    epochs: int
    perplexity_before: float
    validation_perplexity: list[float]
    best_epoch: int
    test_perplexity: float
    logits_difference: float | None
    nested: dict[str, dict[str, float]] = field(default_factory=dict)


def data_folder(output_dir: str | Path, digest: str) -> Path:
    """The folder of prepared data."""
    return Path(output_dir) / "data" / digest


def train_run(run: Run, job: Job) -> RunOutcome | None:
    """Trains a run by the Trainer, or goes on where a killed one stopped.

    Raises:
        SettingsError: if a stock checkpoint's logits are not kept by a vanilla or gated model.
    """
    torch.set_flush_denormal(True)
    disable_progress_bar()  # of loading and saving
    data = data_folder(job.options.output_dir, run.data)
    tokenizer = AutoTokenizer.from_pretrained(data / "tokenizer")
    splits = load_from_disk(data / "blocks").with_format("torch")
    model, difference = _model(run, job.folder, tokenizer, splits)
    trainer = _trainer(run, job, model, tokenizer, splits)

    # Of a copy: what the Trainer has measured counts as prepared for training, so processes would train models apart.
    before = _perplexity(_trainer(run, job, copy.deepcopy(model), tokenizer, splits), trainer.eval_dataset)
    _remove_unfinished(job.folder)
    checkpoint = last_checkpoint(job.folder)
    if checkpoint is not None and (stopped := _stopped_early(checkpoint, run.patience)):
        trainer.args.num_train_epochs = stopped  # all that is left to do is to load the best weights
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if job.stop_at is not None:
        return None

    curve = [perplexity_of(entry["eval_nll"]) for entry in trainer.state.log_history if "eval_nll" in entry]
    outcome = RunOutcome(
        settings=run,
        data=asdict(Prepared.load(data)),
        origin=job.origin,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        steps=trainer.state.global_step,
        epochs=len(curve),
        seconds=_clock(trainer).seconds,
        perplexity_before=before,
        validation_perplexity=curve,
        best_epoch=curve.index(min(curve)) + 1,
        test_perplexity=_perplexity(trainer, evaluation_rows(splits["test"], tokenizer, run.objective)),
        logits_difference=difference,
        nested=_nested(run, trainer, tokenizer, splits, Prepared.load(data)),
    )
    if trainer.is_world_process_zero():
        save_checkpoint(trainer.model.cpu().eval(), job.folder / "model", processing_class=tokenizer)
    return outcome


def _nested(
    run: Run, trainer: Trainer, tokenizer: PreTrainedTokenizerBase, splits: DatasetDict, data: Prepared
) -> dict[str, dict[str, float]]:
    """The measurements on nested texts, of a causal model of documents of these."""
    if run.objective != "clm" or data.corpus != nested.CORPUS or data.config is None:
        return {}
    beyond = _perplexity(trainer, evaluation_rows(splits[BEYOND], tokenizer, run.objective))
    model = trainer.model.eval()
    return {
        "perplexity": {BEYOND: beyond},
        **nested.measure(model, tokenizer, data.config, splits["test"], splits[BEYOND], seed=run.seed),
    }


def _model(
    run: Run, folder: Path, tokenizer: PreTrainedTokenizerBase, splits: DatasetDict
) -> tuple[PreTrainedModel, float | None]:
    """The model before its first step, and how far its logits are from its checkpoint's."""
    set_seed(run.seed)
    if run.start in ("scratch", "pretraining"):
        sizes: dict[str, Any] = {"layers": run.layers, "hidden": run.hidden, "heads": run.heads}
        sizes |= {"stock": run.start == "pretraining", "decoder": run.decoder, **run.stack}
        return new_model(run.objective, run.form, tokenizer, **sizes), None
    assert run.checkpoint is not None
    checkpoint = str(folder.parent / run.checkpoint / "model") if run.start == "pretrained" else run.checkpoint
    model = model_from_checkpoint(run.objective, run.form, checkpoint, tokenizer, **run.stack)
    rows = splits["validation"][:_COMPARED]["input_ids"]
    difference = logits_difference(run.objective, model, checkpoint, rows)
    if run.start == "pretrained" and run.form != "stack" and difference != 0:
        raise SettingsError(
            f"{run.name}: the logits before the first step should be those of {checkpoint}, which knows no stack, but "
            f"differ by up to {difference:.3g}. The checkpoint was not loaded whole; train {run.checkpoint} again."
        )
    return model, difference


def _trainer(
    run: Run,
    job: Job,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    splits: DatasetDict,
) -> Trainer:
    arguments = TrainingArguments(
        output_dir=str(job.folder),
        seed=run.seed,
        learning_rate=run.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=run.warmup,  # below 1: a share of all steps
        optim="adamw_torch",
        per_device_train_batch_size=run.batch_size,
        per_device_eval_batch_size=run.batch_size,
        num_train_epochs=run.epochs,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=1,  # and the best one
        load_best_model_at_end=True,
        metric_for_best_model="nll",
        greater_is_better=False,
        restore_callback_states_from_checkpoint=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        disable_tqdm=True,  # its bar knows no line
        report_to="none",  # the job's trackers take the figures
    )
    score = Score(run.objective)
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=splits["pretraining" if run.start == "pretraining" else "train"],
        eval_dataset=evaluation_rows(splits["validation"], tokenizer, run.objective),
        data_collator=Collator(tokenizer, run.objective),
        preprocess_logits_for_metrics=score.token_losses,
        compute_metrics=score.mean,
        callbacks=[
            EarlyStoppingCallback(run.patience),
            Clock(),
            Watch(job),
            *([StopAt(job.stop_at)] if job.stop_at is not None else []),
        ],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


class Score:
    """The mean loss over all tokens that are scored, not over batches, which hold different numbers of them."""

    def __init__(self, objective: str) -> None:
        self.first = 1 if objective == "clm" else 0  # a causal model's first token is given, not predicted

    def token_losses(self, logits: Tensor | tuple[Tensor, ...], labels: Tensor) -> Tensor:
        """Negative log-likelihoods in nats, [batch, scored length], 0 where there is no label."""
        logits = logits[0] if isinstance(logits, tuple) else logits
        logits = logits[:, : logits.shape[1] - self.first]
        return F.cross_entropy(logits.mT.float(), labels[:, self.first :], reduction="none")

    def mean(self, scored: EvalPrediction) -> dict[str, float]:
        """`nll`, whose exponential is the perplexity."""
        count = (scored.label_ids[:, self.first :] != -100).sum()
        return {"nll": float(scored.predictions.astype("float64").sum() / count)}


class Clock(TrainerCallback, ExportableState):
    """Counts the seconds of a run, those before an interruption included."""

    def __init__(self) -> None:
        self.before = 0.0
        self.began = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.before + time.perf_counter() - self.began

    def on_train_begin(self, *arguments: Any, **state: Any) -> None:
        self.began = time.perf_counter()

    def state(self) -> dict[str, Any]:
        return {"args": {}, "attributes": {"before": self.seconds}}


class Watch(TrainerCallback):
    """The job's progress bar and trackers: training loss and validation perplexity of every epoch."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.bar = self.job.bar(state.max_steps, initial=state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.bar.update()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **more: Any) -> None:
        if "loss" in logs:
            self.job.tracker.log({"train/loss": logs["loss"]}, state.global_step)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **more: Any) -> None:
        perplexity = perplexity_of(metrics["eval_nll"])
        self.bar.set_postfix_str(f"perplexity {perplexity:.4g}")
        self.job.tracker.log({"eval/perplexity": perplexity}, state.global_step)

    def on_train_end(self, *arguments: Any, **state: Any) -> None:
        self.bar.close()


class StopAt(TrainerCallback):
    """Ends the training after some epochs, the learning rate still that of the whole run."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        control.should_training_stop = state.epoch >= self.epochs


def _clock(trainer: Trainer) -> Clock:
    return next(callback for callback in trainer.callback_handler.callbacks if isinstance(callback, Clock))


def _perplexity(trainer: Trainer, rows: Any) -> float:
    return perplexity_of(trainer.predict(rows).metrics["test_nll"])


def perplexity_of(nll: float) -> float:
    """The perplexity of a mean negative log-likelihood in nats.

    Raises:
        RunError: it is no number, or too large for one.
    """
    if not nll < _DIVERGED:
        raise RunError(f"The validation loss is {nll} nats a token. Lower --learning_rate.")
    return math.exp(nll)


def _remove_unfinished(folder: Path) -> None:
    """Removes checkpoints that a kill left half written: the Trainer writes `trainer_state.json` last.

    The others hold the path of the best one, which is put right if the run's folder was moved: the Trainer would
    otherwise keep the last weights.
    """
    for checkpoint in folder.glob("checkpoint-*"):
        file = checkpoint / "trainer_state.json"
        try:
            state = json.loads(file.read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            shutil.rmtree(checkpoint)
            continue
        best = str(folder / Path(state["best_model_checkpoint"]).name)
        if best != state["best_model_checkpoint"]:
            write_text_atomically(file, json.dumps(state | {"best_model_checkpoint": best}, indent=2) + "\n")


def _stopped_early(checkpoint: Path, patience: int) -> int | None:
    """After how many epochs, if a run was killed when its patience had come to an end; else None."""
    state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
    waited = state.stateful_callbacks["EarlyStoppingCallback"]["attributes"]["early_stopping_patience_counter"]
    return round(state.epoch) if waited >= patience else None
