"""The frame of all experiments: an experiment declares its settings, its training and its cards; this does the rest."""

from .arguments import Options, Request, StepOptions
from .experiment import Experiment
from .main import main
from .run import Job, Outcome
from .settings import Settings, SettingsError, axis, fixed, option

__all__ = [
    "Experiment",
    "Job",
    "Options",
    "Outcome",
    "Request",
    "Settings",
    "SettingsError",
    "StepOptions",
    "axis",
    "fixed",
    "main",
    "option",
]
