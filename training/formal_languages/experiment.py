"""Transformers with and without a stack on formal languages: Tables 1 and 2 of the stack attention paper."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..engine import Experiment, Request, SettingsError, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import TRANSFORMERS, Run

_OF_STACKS = ("multi_pop", "stack_gate", "stack_actions_from", "balance", "least_push", "stack_texts")
_OF_TRANSFORMERS = (*_OF_STACKS, "num_hidden_layers")


class FormalLanguagesExperiment(Experiment[Run, RunOutcome]):
    """A run is one task, layout, model, encoding and seed."""

    name = "formal_languages"
    settings = Run
    outcome = RunOutcome
    options = StepOptions
    train = staticmethod(train_run)
    report = report

    def stages(self, request: Request[StepOptions]) -> Iterable[Sequence[Run]]:
        runs = []
        for given in request.combinations():
            without: tuple[str, ...] = ()
            if given["model"] == "vanilla":
                without = _OF_STACKS
            elif given["model"] not in TRANSFORMERS:
                if given["layout"] != "mlm" or given["encoding"] != request.axes["encoding"][0]:
                    continue  # the recurrent models have one layout and no positional encodings
                given["encoding"], without = "none", _OF_TRANSFORMERS
            overrides = {name: value for name, value in given.pop("overrides").items() if name not in without}
            runs.append(Run.of(overrides=overrides, **given))
        if not runs:
            models, layouts = (", ".join(request.axes[name]) for name in ("model", "layout"))
            raise SettingsError(f"--model {models} needs --layout mlm, the only layout that it has, got {layouts}.")
        yield runs

    def shares_card(self, settings: Run) -> Hashable:
        return settings.task, settings.preset

    def upgrade(self, record: dict[str, Any], folder: Path) -> dict[str, Any] | None:
        return record if "layout" in record and "encoding" in record else None


EXPERIMENT = FormalLanguagesExperiment()
