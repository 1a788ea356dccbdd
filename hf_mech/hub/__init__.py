"""From a run to the Hub: results, model cards, pushes. No code here depends on a particular model."""

from hf_mech.hub.card import CardText, check_folder, render_card, render_folder
from hf_mech.hub.checkpoint import save_checkpoint, verify_checksums
from hf_mech.hub.dataset_export import export_dataset, push_dataset
from hf_mech.hub.errors import (
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
from hf_mech.hub.files import OutputError
from hf_mech.hub.push import push_checkpoint
from hf_mech.hub.results import Measurement, PaperFigure, Results, measurement, validate

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
