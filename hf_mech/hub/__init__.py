"""From a run to the Hub: results, model cards, pushes. No code here depends on a particular model."""

from ..disk.errors import OutputError
from .card import CardText, check_folder, render_card, render_folder
from .checkpoint import save_checkpoint
from .checksums import verify_checksums
from .errors import (
    CardError,
    ChecksumDiffersError,
    ChecksumError,
    ChecksumsMissingError,
    ListedFileMissingError,
    PushError,
    PushRefusedError,
    ResultsError,
    UnbackedNumberError,
    UnlistedWeightsError,
)
from .measurements import Measurement, PaperFigure, measurement
from .push import export_dataset, push_checkpoint, push_dataset
from .results import Results, validate

__all__ = [
    "CardError",
    "CardText",
    "ChecksumDiffersError",
    "ChecksumError",
    "ChecksumsMissingError",
    "ListedFileMissingError",
    "Measurement",
    "OutputError",
    "PaperFigure",
    "PushError",
    "PushRefusedError",
    "Results",
    "ResultsError",
    "UnbackedNumberError",
    "UnlistedWeightsError",
    "check_folder",
    "export_dataset",
    "measurement",
    "push_checkpoint",
    "push_dataset",
    "render_card",
    "render_folder",
    "save_checkpoint",
    "validate",
    "verify_checksums",
]
