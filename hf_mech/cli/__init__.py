"""The command line and its own helpers; see [`~hf_mech.cli.app`]."""

from .app import app

__all__ = ["app"]
