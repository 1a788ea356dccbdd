"""B-RASP: a language, its interpreter, the program of a STRIPS domain, and its compilation into a transformer."""

from .compile import compile_strips_transformer, compile_theta
from .interpret import run
from .language import (
    FALSE,
    TRUE,
    Attention,
    BraspError,
    Expression,
    Initial,
    PositionWise,
    Program,
    all_of,
    any_of,
)
from .strips_program import strips_program

__all__ = [
    "FALSE",
    "TRUE",
    "Attention",
    "BraspError",
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
