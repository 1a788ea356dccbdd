"""PDDL: reader and grounder, compilation to STRIPS, writer, names, and conversion to unified-planning's problems."""

from hf_mech.planning.pddl.errors import (
    GroundingError,
    MismatchedPddlError,
    PddlError,
    PddlFileError,
    UnsupportedPddlError,
)
from hf_mech.planning.pddl.names import decode_name, encode_name
from hf_mech.planning.pddl.read import read_pddl, to_unified_planning, write_pddl

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
