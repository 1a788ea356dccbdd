"""PSL, the Production System Language: parser, checker, symbolic machines, and the compiler to QKVL and DAT weights."""

from typing import TYPE_CHECKING

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "check": ["check_program"],
        "compile": ["compile_file", "compile_program"],
        "errors": [
            "ProgramError",
            "PromptError",
            "PromptTooLongError",
            "PSLCheckError",
            "PSLError",
            "PSLSyntaxError",
            "QKVLError",
            "RepeatBoundError",
        ],
        "functions": ["function_names", "register_function", "unregister_function"],
        "library": ["load_program", "program_names", "program_text", "read_program"],
        "lower": ["lower_program"],
        "machine": ["Path", "Run", "Step"],
        "parse": ["parse_program"],
        "psm": ["PSM"],
        "qkvl": ["QKVLProduction", "QKVLProgram", "QKVLRepeat"],
        "qkvm": ["QKVM"],
        "syntax": ["Program"],
        "values": ["ValueSet", "value_sets"],
    },
)

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from .check import check_program as check_program
    from .compile import compile_file as compile_file
    from .compile import compile_program as compile_program
    from .errors import ProgramError as ProgramError
    from .errors import PromptError as PromptError
    from .errors import PromptTooLongError as PromptTooLongError
    from .errors import PSLCheckError as PSLCheckError
    from .errors import PSLError as PSLError
    from .errors import PSLSyntaxError as PSLSyntaxError
    from .errors import QKVLError as QKVLError
    from .errors import RepeatBoundError as RepeatBoundError
    from .functions import function_names as function_names
    from .functions import register_function as register_function
    from .functions import unregister_function as unregister_function
    from .library import load_program as load_program
    from .library import program_names as program_names
    from .library import program_text as program_text
    from .library import read_program as read_program
    from .lower import lower_program as lower_program
    from .machine import Path as Path
    from .machine import Run as Run
    from .machine import Step as Step
    from .parse import parse_program as parse_program
    from .psm import PSM as PSM
    from .qkvl import QKVLProduction as QKVLProduction
    from .qkvl import QKVLProgram as QKVLProgram
    from .qkvl import QKVLRepeat as QKVLRepeat
    from .qkvm import QKVM as QKVM
    from .syntax import Program as Program
    from .values import ValueSet as ValueSet
    from .values import value_sets as value_sets
