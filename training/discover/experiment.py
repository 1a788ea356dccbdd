"""DISCOVER on templatic generation: Sec. 9.2.1 of the symbol processing paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import signature

from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig

from ..engine import Experiment, Request, SettingsError
from . import report
from .run import RunOutcome, test_run
from .settings import Run


class DiscoverExperiment(Experiment[Run, RunOutcome]):
    """A run is one model's hidden states with one seed of the fit."""

    name = "discover"
    paper = "smolensky2024mechanisms"
    settings = Run
    outcome = RunOutcome
    train = staticmethod(test_run)
    report = report

    def stages(self, request: Request) -> Iterable[Sequence[Run]]:
        """All subjects; the learned ones need a checkpoint of a model that reads positions."""
        for runs in super().stages(request):
            if lacking := [run.subject for run in runs if run.subject != "pargen" and run.checkpoint is None]:
                raise SettingsError(
                    f"The subject {lacking[0]} needs --checkpoint, the folder `model` of a run of train_templatic; "
                    "without one, --subject pargen."
                )
            for checkpoint in {run.checkpoint for run in runs if run.checkpoint and run.subject != "pargen"}:
                _check(checkpoint)
            yield runs


def _check(checkpoint: str) -> None:
    try:
        config = AutoConfig.from_pretrained(checkpoint)
    except (OSError, ValueError) as error:
        raise SettingsError(f"--checkpoint {checkpoint} is no folder of a checkpoint: {error}") from error
    model = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if model is None or "position_ids" not in signature(model.forward).parameters:
        raise SettingsError(
            f"--checkpoint {checkpoint} must be a decoder with position_ids, as train_templatic trains, got a model of "
            f"type {config.model_type}; PARGEN itself is --subject pargen."
        )


EXPERIMENT = DiscoverExperiment()
