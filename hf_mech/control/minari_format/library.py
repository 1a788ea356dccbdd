"""The package Minari, and what its data sets and ours have in common."""

from __future__ import annotations

from typing import Any

from hf_mech.control.errors import MissingExtraError

SUCCESS = ("is_success", "success")
"""Names of the info that tells success: gymnasium-robotics' and another; the first one is written."""
UNKNOWN_SEED = -1


def import_minari() -> Any:
    """The package. Raises MissingExtraError without it, or without its format HDF5."""
    try:
        import h5py  # noqa: F401
        import minari
    except ModuleNotFoundError as error:
        raise MissingExtraError("minari[hdf5]", "minari") from error
    return minari
