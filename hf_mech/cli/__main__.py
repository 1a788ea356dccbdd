"""`python -m hf_mech.cli`, the same as `hf-mech`."""

from hf_mech.cli.app import app

app()
