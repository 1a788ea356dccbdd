"""The command line and its own helpers; see [`~hf_mech.cli.app`]."""

from hf_mech.cli.app import app

__all__ = ["app"]
