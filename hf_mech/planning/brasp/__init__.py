"""B-RASP: a language, its interpreter, the program of a STRIPS domain, and its compilation into a transformer."""

from hf_mech.planning.brasp.compile import compile_strips_transformer, compile_theta, run, strips_program
from hf_mech.planning.brasp.language import (
    FALSE,
    TRUE,
    Attention,
    Expression,
    Initial,
    PositionWise,
    Program,
    all_of,
    any_of,
)

__all__ = [
    "FALSE",
    "TRUE",
    "Attention",
    "Expression",
    "Initial",
    "PositionWise",
    "Program",
    "all_of",
    "any_of",
    "compile_strips_transformer",
    "compile_theta",
    "run",
    "strips_program",
]
