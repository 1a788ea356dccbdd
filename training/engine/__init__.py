"""The frame of all experiments: an experiment declares its settings, its training and its cards; this does the rest."""

from .experiment import Experiment, Job, Options, Outcome, StepOptions
from .main import main
from .settings import Settings, SettingsError, axis, fixed, option

__all__ = [
    "Experiment",
    "Job",
    "Options",
    "Outcome",
    "Settings",
    "SettingsError",
    "StepOptions",
    "axis",
    "fixed",
    "main",
    "option",
]
