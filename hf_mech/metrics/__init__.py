"""The package's metrics: `evaluate` modules, one folder each, loaded from disk.

A folder's `__init__.py` exports the metric's functions over arrays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent

METRICS: tuple[str, ...] = tuple(sorted(p.parent.name for p in _HERE.glob("*/*.py") if p.stem == p.parent.name))
"""The names that `load` accepts."""


def load(name: str, **kwargs: Any) -> Any:
    """`evaluate.load` of a bundled metric, without the network; keyword arguments are passed on.

    Raises:
        ValueError: there is no such metric.
    """
    if name not in METRICS:
        raise ValueError(f"There is no metric {name!r} in hf_mech; choose one of {', '.join(METRICS)}.")
    import evaluate

    return evaluate.load(str(_HERE / name), **kwargs)
