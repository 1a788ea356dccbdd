"""Every experiment in the smallest form that still trains, stops, resumes and ends with a card."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
from accelerate.state import AcceleratorState, PartialState
from safetensors.torch import load_file

from tests.training.toy.experiment import EXPERIMENT as TOY
from training.belief_state.experiment import EXPERIMENT as BELIEF_STATE
from training.discover.experiment import EXPERIMENT as DISCOVER
from training.engine import Experiment, Job
from training.engine.arguments import parser_of, read
from training.engine.settings import Settings
from training.formal_languages.experiment import EXPERIMENT as FORMAL_LANGUAGES
from training.language_models.experiment import EXPERIMENT as LANGUAGE_MODELS
from training.lifted.experiment import EXPERIMENT as LIFTED
from training.machines.experiment import EXPERIMENT as MACHINES
from training.msat.experiment import EXPERIMENT as MSAT
from training.nested_functions.experiment import EXPERIMENT as NESTED_FUNCTIONS
from training.pargen.experiment import EXPERIMENT as PARGEN
from training.semi_formal.experiment import EXPERIMENT as SEMI_FORMAL
from training.stories.experiment import EXPERIMENT as STORIES
from training.strips.experiment import EXPERIMENT as STRIPS
from training.templatic.experiment import EXPERIMENT as TEMPLATIC

ROOT = Path(__file__).parents[2]
ORIGIN = {"command": "python", "commit": "0" * 40, "machine": {}, "versions": {}}
LICENSE = [part for name in ("train", "validation", "test") for part in (f"--{name}_file", str(ROOT / "LICENSE"))]
"""A text that is the same everywhere: the standard library differs from one Python to the next."""
UNTIMED = {"seconds": 0, "seconds_of_test": 0, "seconds_of_data": 0, "cpu_seconds": 0}
UNTIMED |= {"cpu_seconds_per_prompt": {}, "origin": ORIGIN}


@dataclass(frozen=True)
class Case:
    """An experiment, its command line, and where a run of it is interrupted.

    Attributes:
        arguments: of the command; the first run that they ask for is tried.
        checkpoint_steps, stop_at: a state is saved before the run stops; in epochs for the language models.
    """

    experiment: Experiment[Any, Any]
    arguments: tuple[str, ...]
    checkpoint_steps: int
    stop_at: int

    def settings(self, output_dir: Path) -> Settings:
        """The settings of the first run; whatever it needs is prepared under the folder."""
        request = self.request(output_dir)
        return next(run for stage in self.experiment.stages(request) for run in stage)

    def request(self, output_dir: Path, *more: str) -> Any:
        arguments = [*self.arguments, "--output_dir", str(output_dir), "--jobs", "1", *more]
        return read(self.experiment, parser_of(self.experiment, None), arguments)

    def job(self, settings: Settings, output_dir: Path, *, stop_at: int | None = None) -> Job:
        options = self.request(output_dir).options
        if hasattr(options, "checkpoint_steps"):
            options.checkpoint_steps = self.checkpoint_steps
        return Job(folder=output_dir / settings.name, options=options, origin=ORIGIN, stop_at=stop_at)


CASES = {
    "toy": Case(TOY, (), 10, 25),
    "strips": Case(
        STRIPS,
        (
            *("--domain", "simple", "--sizes", "50", "--num_seeds", "4", "--num_test", "50", "--max_steps", "450"),
            *("--eval_steps", "50", "--redraw_after", "100"),
        ),
        100,
        250,
    ),
    "stories": Case(
        STORIES,
        (
            *("--model", "bst", "--seeds", "3", "--steps", "9", "--batch_size", "1", "--layers", "1", "--hidden", "16"),
            *("--heads", "2", "--inner", "16", "--head_width", "4", "--warmup_steps", "2", "--dropout", "0.2"),
            *("--num_train", "500", "--num_test", "3", "--eval_stories", "2"),
        ),
        4,
        6,
    ),
    "formal_languages": Case(
        FORMAL_LANGUAGES,
        (
            *("--task", "stack_manipulation", "--layout", "alm", "--seeds", "3", "--steps", "120", "--batch_size", "2"),
            *("--restart_after", "50", "--warmup_steps", "30", "--dropout", "0.2", "--num_hidden_layers", "1"),
            *("--max_train_length", "8", "--test_samples", "1"),
        ),
        16,
        70,
    ),
    "language_models": Case(
        LANGUAGE_MODELS,
        (
            *(*LICENSE, "--objective", "mlm", "--use_stack", "true", "--num_seeds", "1", "--layers", "1"),
            *("--hidden", "16", "--heads", "2", "--vocabulary", "300", "--epochs", "2", "--batch_size", "8"),
            *("--max_train_characters", "8000", "--max_evaluation_blocks", "4"),
        ),
        1,
        1,
    ),
    "templatic": Case(
        TEMPLATIC,
        (
            *("--model", "lstm_attn", "--steps", "12", "--batch_size", "4", "--layers", "1", "--hidden", "16"),
            *("--filter", "16", "--warmup_steps", "2", "--dropout", "0.2", "--eval_prompts", "2"),
            *("--num_train", "100", "--num_eval", "4"),
        ),
        5,
        8,
    ),
    "belief_state": Case(
        BELIEF_STATE,
        (
            *(
                "--model",
                "bst",
                "--seeds",
                "3",
                "--steps",
                "12",
                "--batch_size",
                "4",
                "--layers",
                "1",
                "--hidden",
                "64",
            ),
            *(
                "--backward_layers",
                "1",
                "--heads",
                "2",
                "--head_width",
                "16",
                "--warmup_steps",
                "2",
                "--eval_steps",
                "4",
            ),
            *("--eval_graphs", "20", "--curve_graphs", "10", "--generated", "3"),
        ),
        5,
        8,
    ),
    "msat": Case(
        MSAT,
        (
            *("--scenario", "doorway", "--seeds", "3", "--steps", "12", "--episodes", "6", "--batch_size", "4"),
            *("--layers", "1", "--hidden", "16", "--heads", "2", "--context", "4", "--warmup_steps", "2"),
            *("--eval_steps", "4", "--eval_episodes", "3", "--curve_episodes", "2"),
        ),
        5,
        8,
    ),
    "nested_functions": Case(
        NESTED_FUNCTIONS,
        (
            *("--model", "gpt2", "--steps", "12", "--batch_size", "2", "--layers", "1", "--hidden", "16"),
            *("--heads", "2", "--warmup_steps", "2", "--eval_prompts", "1", "--num_train", "50"),
        ),
        5,
        8,
    ),
    "semi_formal": Case(
        SEMI_FORMAL,
        (
            *("--model", "semi_formal", "--seeds", "3", "--steps", "12", "--batch_size", "2", "--hidden", "8"),
            *("--heads", "2", "--filter", "8", "--warmup_steps", "2", "--num_train", "100", "--num_eval", "4"),
        ),
        5,
        8,
    ),
    "pargen": Case(PARGEN, ("--split", "test", "--num_prompts", "20"), 0, 0),
    "lifted": Case(LIFTED, ("--domain", "ferry", "--actions", "200", "--walks", "6"), 0, 0),
    "machines": Case(MACHINES, ("--task", "reverse", "--num_prompts", "3"), 0, 0),
    "discover": Case(DISCOVER, ("--subject", "pargen", "--prompts", "8"), 0, 0),
}


def few_rows(name: str, patch: pytest.MonkeyPatch) -> None:
    """Makes one row of each test split of nested functions: no option leaves them out, and a run measures one."""
    if name == "nested_functions":
        patch.setattr(datasets, "load_dataset", partial(datasets.load_dataset, num_eval=1))


TRAINED = [name for name in CASES if name not in ("pargen", "lifted", "machines", "discover")]
"""The experiments whose runs can be interrupted; others have no steps."""


def outcome_of(outcome: Any) -> dict[str, Any]:
    """An outcome without its times and its origin."""
    content = {**vars(outcome), "settings": outcome.settings.to_dict()}
    return content | {name: value for name, value in UNTIMED.items() if name in content}


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """The weights that a run has saved."""
    return load_file(folder / "model" / "model.safetensors")


def reset_process() -> None:
    """Sets back what training sets for the whole process."""
    torch.set_flush_denormal(False)
    AcceleratorState._reset_state()
    PartialState._reset_state()
