"""Transformers with and without a stack on formal languages: Tables 1 and 2 of the stack attention paper."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ..engine import Experiment, Request, SettingsError, StepOptions
from . import report
from .run import RunOutcome, train_run
from .settings import TRANSFORMERS, Run, without_effect


class FormalLanguagesExperiment(Experiment[Run, RunOutcome]):
    """A run is one task, layout, model, encoding and seed."""

    name = "formal_languages"
    paper = "li2024stack"
    settings = Run
    outcome = RunOutcome
    options = StepOptions
    train = staticmethod(train_run)
    report = report

    def stages(self, request: Request[StepOptions]) -> Iterable[Sequence[Run]]:
        runs = []
        models = ", ".join(request.axes["model"])
        for given in request.combinations():
            if given["model"] not in TRANSFORMERS:
                if given["layout"] != "mlm" or given["encoding"] != request.axes["encoding"][0]:
                    continue  # the recurrent networks have one layout and no positional encodings
                given["encoding"] = "none"
            without = without_effect(given["model"])
            overrides = {name: value for name, value in given.pop("overrides").items() if name not in without}
            runs.append(Run.of(overrides=overrides, **given))
        if not runs:
            layouts = ", ".join(request.axes["layout"])
            raise SettingsError(f"--model {models} needs --layout mlm, the only layout that it has, got {layouts}.")
        for name, value in request.overrides.items():
            unread = all(name in without_effect(model) for model in request.axes["model"])
            if unread and value != getattr(runs[0], name):  # run.yaml has all options
                raise SettingsError(f"--{name} has no effect on --model {models}: leave it out.")
        if not any(model in TRANSFORMERS for model in request.axes["model"]) and request.axes["encoding"] != ["none"]:
            raise SettingsError(f"--encoding has no effect on --model {models}, which has no positions: leave it out.")
        yield runs

    def shares_card(self, settings: Run) -> Hashable:
        return settings.task, settings.preset


EXPERIMENT = FormalLanguagesExperiment()
