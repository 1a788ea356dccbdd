"""Activation checkpointing asked for by the configuration, for models that replace a stock model's layers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def checkpointing_waits(config: Any) -> Iterator[None]:
    """Hides `config.gradient_checkpointing` while a stock model is built whose layers will be replaced.

    `post_init` applies the key to the layers of that moment and deletes it; the layers with stacks would get nothing.
    """
    wanted = vars(config).pop("gradient_checkpointing", False)
    try:
        yield
    finally:
        if wanted:
            config.gradient_checkpointing = wanted
