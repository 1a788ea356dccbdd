"""`python -m hf_mech.cli`, the same as `hf-mech`."""

from .app import app

app()
