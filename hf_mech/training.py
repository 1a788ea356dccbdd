"""The package `hf_mech.training` of a checkout, whose modules lie in `training/` beside `hf_mech/`.

As `dataset_builders.py`: a wheel has the folder itself in this module's place.
"""

from pathlib import Path

__path__ = [str(Path(__file__).parents[1] / "training")]
