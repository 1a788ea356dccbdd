"""PDDL: reader and grounder, compilation to STRIPS, writer, names, and conversion to unified-planning's problems."""

from .errors import GroundingError, MismatchedPddlError, PddlError, PddlFileError, UnsupportedPddlError
from .names import decode_name, encode_name
from .read import read_pddl
from .unified import to_unified_planning
from .write import write_pddl

__all__ = [
    "GroundingError",
    "MismatchedPddlError",
    "PddlError",
    "PddlFileError",
    "UnsupportedPddlError",
    "decode_name",
    "encode_name",
    "read_pddl",
    "to_unified_planning",
    "write_pddl",
]
