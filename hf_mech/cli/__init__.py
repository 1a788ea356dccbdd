"""The command line, and what only it uses: `hf-mech env | demo | card | push | compile | run | trace | test-llm`."""

from .app import app

__all__ = ["app"]
