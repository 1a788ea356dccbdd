"""From a run to the Hub: results, model cards, pushes. No code here depends on a particular model."""

from hf_mech.hub.card import CardText, check_folder, render_card, render_folder
from hf_mech.hub.catalogue import source_of
from hf_mech.hub.checkpoint import save_checkpoint, verify_checksums
from hf_mech.hub.files import HubError, OutputError, PushError
from hf_mech.hub.push import export_dataset, push_checkpoint, push_dataset
from hf_mech.hub.results import Measurement, PaperFigure, Results, measurement, validate

__all__ = [
    "CardText",
    "HubError",
    "Measurement",
    "OutputError",
    "PaperFigure",
    "PushError",
    "Results",
    "check_folder",
    "export_dataset",
    "measurement",
    "push_checkpoint",
    "push_dataset",
    "render_card",
    "render_folder",
    "save_checkpoint",
    "source_of",
    "validate",
    "verify_checksums",
]
