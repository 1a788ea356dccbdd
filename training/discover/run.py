"""One run: a model's hidden states, layer by layer, tested for PARGEN's parse of the same prompts."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from hf_mech.programs.templatic.grammar import generate
from hf_mech.programs.tensor_products import Hypothesis, discover

from ..engine import Job, Outcome
from .settings import ROLES, Run
from .states import REGIONS, parse_of, states_of


@dataclass
class LayerFit:
    """The fit to one layer; all figures are of held-out prompts.

    Attributes:
        explained, control: R^2 of the hidden vectors, by the parse and by a shuffled one.
        accuracy, control_accuracy, majority: the share of cells whose filler is read, by role.
    """

    layer: int
    explained: float
    control: float
    accuracy: dict[str, float]
    control_accuracy: dict[str, float]
    majority: dict[str, float]


@dataclass(kw_only=True)
class RunOutcome(Outcome[Run]):
    """The outcome of a run."""

    cells: int
    hidden: int  # the width of a hidden vector
    unseen: float  # the share of held-out cells with a binding that no fitted cell has
    layers: list[LayerFit]

    def __post_init__(self) -> None:
        self.layers = [LayerFit(**own) if isinstance(own, dict) else own for own in self.layers]


def test_run(run: Run, job: Job) -> RunOutcome:
    """Tests the hypothesis at every layer; nothing of the model is trained."""
    began = time.perf_counter()
    prompts = [example.prompt for example in generate(run.task, run.split, 0, 0, run.prompts)]
    parsed, production = parse_of(prompts)
    cells = [cell for prompt in parsed for cell in prompt]
    looked_at = torch.tensor([cell["region"] in REGIONS for cell in cells])
    numbers = torch.repeat_interleave(torch.arange(len(prompts)), torch.tensor([len(prompt) for prompt in parsed]))
    hypothesis = Hypothesis.of(cells, ROLES).take(looked_at)
    states = states_of(run, prompts, production)
    layers, unseen = [], 0.0
    with job.bar(len(states), unit="layers") as bar:
        for layer, hidden in states.items():
            found = discover(
                hidden[looked_at],
                hypothesis,
                prompts=numbers[looked_at],
                held_out=run.held_out,
                filler_width=run.filler_width,
                seed=run.seed,
            )
            real, control, unseen = found.hypothesis, found.control, found.unseen
            layers.append(
                LayerFit(layer, real.explained, control.explained, real.accuracy, control.accuracy, found.majority)
            )
            job.tracker.log({"explained": real.explained, **real.accuracy}, layer)
            bar.update()
    return RunOutcome(
        settings=run,
        origin=job.origin,
        seconds=time.perf_counter() - began,
        cells=len(hypothesis),
        hidden=next(iter(states.values())).shape[1],
        unseen=unseen,
        layers=layers,
    )
