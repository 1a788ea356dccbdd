"""A toy: a GPT-2 of one layer learns to count. It is whole; the engine gives it all that an experiment has."""

from dataclasses import dataclass

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, get_scheduler

from hf_mech.hub import Results, measurement
from training.engine import Experiment, Outcome, Settings, StepOptions, axis, fixed, option
from training.engine.card import Card, Checkpoint
from training.engine.loop import Training
from training.engine.tables import Table, percent

SIZES = {"n_embd": 16, "n_head": 2, "n_layer": 1, "vocab_size": 7, "bos_token_id": None, "eos_token_id": None}


@dataclass(frozen=True, kw_only=True)
class Count(Settings):
    PRESETS = {"cpu": {"steps": 40}, "paper": {"steps": lambda given: 1_000 * given["modulus"]}}
    modulus: int = axis("what is counted to", (5, 7), default=[5])
    seed: int = fixed("of the weights")
    steps: int = option("training steps", least=1)
    dropout: float = option("dropout everywhere", default=0.2, least=0)


@dataclass(kw_only=True)
class Counted(Outcome[Count]):
    losses: list[float]
    accuracy: float


class Batches(Dataset):
    def __init__(self, modulus: int) -> None:
        self.modulus = modulus

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        ids = (torch.arange(step, step + 4)[:, None] + torch.arange(6)) % self.modulus
        return {"input_ids": ids, "labels": ids}


class Counting(Experiment[Count, Counted]):
    name, settings, outcome, options = "toy", Count, Counted, StepOptions
    order = staticmethod(lambda outcome: outcome.settings.seed)

    def train(self, run, job):
        accelerator = Accelerator(mixed_precision="no")
        set_seed(run.seed)
        model = accelerator.prepare(GPT2LMHeadModel(GPT2Config(**SIZES, resid_pdrop=run.dropout)).train())
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        plan, batches = get_scheduler("linear", optimizer, 5, run.steps), Batches(run.modulus)
        training = Training(accelerator, model, optimizer, plan, batches, run.steps, max_grad_norm=1.0)
        if not training.run(job):
            return None
        model.eval().save_pretrained(job.folder / "model")
        right = model(batches[0]["input_ids"]).logits[:, :-1].argmax(-1) == batches[0]["labels"][:, 1:]
        done, accuracy = training.progress, float(right.float().mean())
        return Counted(settings=run, origin=job.origin, seconds=done.seconds, losses=done.losses, accuracy=accuracy)

    def card(self, finished):
        outcomes, folder = list(finished.values()), next(iter(finished))
        measured = [measurement("counting", None, {"preset": "cpu"}, "accuracy", [o.accuracy for o in outcomes])]
        text = {"modulus": 5, "table": self.table(outcomes)}
        more = {"task": "text-generation", "paper": "li2024stack", "model_class": "GPT2LMHeadModel"}
        checkpoint = Checkpoint(GPT2LMHeadModel.from_pretrained(folder / "model"))
        name = "-".join(["toy", *({outcomes[0].settings.preset} - {"cpu"})])
        return Card(name=name, outcomes=outcomes, measured=measured, text=text, checkpoint=checkpoint, **more)

    def table(self, outcomes):
        return Table(["run", ">accuracy"], [[o.settings.name, f"{o.accuracy:.2f}"] for o in outcomes]).markdown()

    def results(self, cards):
        scores = [Results.load(file).results[0] for file in cards.glob("toy/results.json")]
        return {"toy": Table(["accuracy"], [[percent(score)] for score in scores]).markdown()}


EXPERIMENT = Counting()
