"""Episodes in Minari's format, which people share for offline reinforcement learning: written and read without loss.

Minari keeps one observation more than there are steps. Rows do not have it: a data set of rows is written with its last
observation twice, and an `Episode` with its own `final_observation`.
"""

from hf_mech.control.minari_format.reading import minari_episodes, read_minari
from hf_mech.control.minari_format.writing import write_minari

__all__ = ["minari_episodes", "read_minari", "write_minari"]
