"""The command line and its own helpers: `hf-mech env | demo | card | push | compile | run | trace | test-llm`."""

from .app import app

__all__ = ["app"]
