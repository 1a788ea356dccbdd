"""PDDL: reader and grounder, writer, names, and conversion to unified-planning's form of a problem."""

from .errors import GroundingError, PddlError, UnsupportedPddlError
from .names import decode_name, encode_name
from .read import read_pddl
from .unified import to_unified_planning
from .write import write_pddl

__all__ = [
    "GroundingError",
    "PddlError",
    "UnsupportedPddlError",
    "decode_name",
    "encode_name",
    "read_pddl",
    "to_unified_planning",
    "write_pddl",
]
