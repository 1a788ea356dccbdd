"""PDDL: read, compiled to STRIPS and grounded; written; and the bundled problems."""

from hf_mech.planning.pddl.read import BUNDLED, load_bundled, read_pddl
from hf_mech.planning.pddl.write import decode_name, encode_name, to_unified_planning, write_pddl

__all__ = ["BUNDLED", "decode_name", "encode_name", "load_bundled", "read_pddl", "to_unified_planning", "write_pddl"]
