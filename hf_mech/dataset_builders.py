"""The package `hf_mech.dataset_builders` of a checkout, whose modules lie in `dataset_builders/` beside `hf_mech/`.

A module with a `__path__` is a package. A wheel has the folder itself in this module's place.
"""

from pathlib import Path

__path__ = [str(Path(__file__).parents[1] / "dataset_builders")]
