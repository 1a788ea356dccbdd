"""Environments, the policies that act in them, and the data that they leave.

Importing this package registers the environments of hf_mech with gymnasium. None of it knows a game engine, except
`hf_mech.control.vizdoom`.
"""

from hf_mech.control.errors import ControlError, MissingExtraError

try:
    import gymnasium as _gymnasium  # noqa: F401  (only whether it is there)
except ModuleNotFoundError as _error:
    raise MissingExtraError("gymnasium", "control") from _error

from hf_mech.control.environments import make_environment, register_environments
from hf_mech.control.episodes import episode_seed
from hf_mech.control.policies import ExpertPolicy, NoisyPolicy, Policy, RandomPolicy, make_policy

register_environments()

__all__ = [
    "ControlError",
    "ExpertPolicy",
    "MissingExtraError",
    "NoisyPolicy",
    "Policy",
    "RandomPolicy",
    "episode_seed",
    "make_environment",
    "make_policy",
]
