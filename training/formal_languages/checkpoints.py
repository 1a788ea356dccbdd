"""The shipped stack transformers of formal languages."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

from torch import Tensor

from hf_mech.languages import TASKS, test_batch

from ..engine.recipe import Checkpoints, Measured, Recipe, Shown
from .experiment import EXPERIMENT
from .figures import curve_of, example_of, stack_picture
from .models import without_empty_mask
from .report import DATASET
from .run import RunOutcome, rightness
from .settings import TEST_LENGTHS, Run

ACCURACY = "token_accuracy"


def _taught(task: str, layout: str = "alm") -> Recipe:
    said = task.replace("_", "-")
    return Recipe(
        name=f"stack-{said}" if layout == "alm" else f"stack-roberta-{said}",
        options=f"--preset taught --task {task} --model recurrent_stack --layout {layout} --seeds 0",
        task=f"{task}, {'says the answer behind [SEP]' if layout == 'alm' else 'fills the answer into [MASK]'}",
        metric=ACCURACY,
        bar=0.98,
        headline="{value} % of symbols right on lengths 41 to 100, trained on 1 to 40",
        count=1_920,
        dtype="float16",
    )


class FormalLanguagesCheckpoints(Checkpoints[Run, RunOutcome]):
    """See `Checkpoints`."""

    experiment = EXPERIMENT
    script = "train_formal_languages"
    recipes = (
        _taught("reverse_string"),
        _taught("stack_manipulation"),
        _taught("modular_arithmetic"),
        _taught("solve_equation"),
        _taught("reverse_string", "mlm"),
        Recipe(
            name="no-stack-reverse-string",
            options="--preset taught --task reverse_string --model vanilla --layout alm --seeds 0",
            task="a contrast: the transformer of stack-reverse-string without its stack",
            metric=ACCURACY,
            bar=0.5,
            headline="{value} % of symbols right on lengths 41 to 100, where a guess gets 50",
            count=1_920,
            dtype="float16",
        ),
    )

    def evaluate(self, run: Run, model: Any, processor: Any, *, seed: int, count: int) -> dict[str, Measured]:
        """The mean accuracy at the lengths 41 to 100, of few examples at some of them."""
        lengths = TASKS[run.task].lengths(*TEST_LENGTHS)
        each = max(count // len(lengths), 10)
        lengths = lengths[:: max(1, len(lengths) * each // count)]
        measured = replace(run, test_seed=seed, test_samples=each)
        shares, scored = [], 0
        for length in lengths:
            right, asked, _ = rightness(model, measured, length)
            shares.append(int(right.sum()) / int(asked.sum()))
            scored += int(asked.sum())
        return {ACCURACY: Measured(fmean(shares), scored)}

    def batch(self, run: Run, model: Any, processor: Any) -> dict[str, Tensor]:
        length = TASKS[run.task].lengths(10, 14)[0]
        return without_empty_mask(test_batch(run.task, run.layout, seed=0, length=length, count=4))

    def show(self, recipe: Recipe, run: Run, outcome: RunOutcome, model: Any, processor: Any) -> Shown:
        symbols, answers = example_of(run.task)
        causal = run.layout == "alm"
        picture = stack_picture(run.task, model)
        figures = {"stack_attention.png": picture} if picture else {"accuracy_by_length.png": curve_of(outcome)}
        return Shown(
            text={
                "causal": causal,
                "with_stack": picture is not None,
                "example": f"{' '.join(symbols)} {'[SEP]' if causal else ' '.join(['[MASK]'] * answers)}",
                "answers": answers,
                "steps": outcome.steps,
            },
            dataset=DATASET,
            config=run.task,
            paper="li2024stack",
            pipeline="text-generation" if causal else "fill-mask",
            tags=[*(["stack-attention"] if picture else []), "formal-languages", "length-generalization"],
            figures=figures,
        )


CHECKPOINTS = FormalLanguagesCheckpoints()
