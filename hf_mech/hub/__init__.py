"""From a run to the Hub: results, model cards, pushes. No code here depends on a particular model."""

from .card import CardText, check_folder, render_card, render_folder
from .errors import CardError, PushError, PushRefusedError, ResultsError, UnbackedNumberError
from .measurements import Measurement, PaperFigure, measurement
from .push import export_dataset, push_checkpoint, push_dataset
from .results import Results, validate

__all__ = [
    "CardError",
    "CardText",
    "Measurement",
    "PaperFigure",
    "PushError",
    "PushRefusedError",
    "Results",
    "ResultsError",
    "UnbackedNumberError",
    "check_folder",
    "export_dataset",
    "measurement",
    "push_checkpoint",
    "push_dataset",
    "render_card",
    "render_folder",
    "validate",
]
