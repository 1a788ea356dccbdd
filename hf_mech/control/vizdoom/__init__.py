"""My Way Home and Deadly Corridor: two scenarios of ViZDoom as gymnasium environments, with scripted experts."""

from hf_mech.control.errors import MissingExtraError

try:
    import vizdoom as _vizdoom  # noqa: F401  (only whether it is there)
except ModuleNotFoundError as _error:
    raise MissingExtraError("vizdoom", "vizdoom") from _error
