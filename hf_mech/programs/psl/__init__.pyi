from .compile import compile_file as compile_file
from .compile import compile_program as compile_program
from .compile import lower_program as lower_program
from .language.check import check_program as check_program
from .language.errors import (
    ProgramError as ProgramError,
)
from .language.errors import (
    PromptError as PromptError,
)
from .language.errors import (
    PromptTooLongError as PromptTooLongError,
)
from .language.errors import (
    PSLCheckError as PSLCheckError,
)
from .language.errors import (
    PSLError as PSLError,
)
from .language.errors import (
    PSLSyntaxError as PSLSyntaxError,
)
from .language.errors import (
    QKVLError as QKVLError,
)
from .language.errors import (
    RepeatBoundError as RepeatBoundError,
)
from .language.parse import parse_program as parse_program
from .language.syntax import Program as Program
from .language.values import ValueSet as ValueSet
from .language.values import (
    function_names as function_names,
)
from .language.values import (
    register_function as register_function,
)
from .language.values import (
    unregister_function as unregister_function,
)
from .language.values import value_sets as value_sets
from .library import (
    load_program as load_program,
)
from .library import (
    program_names as program_names,
)
from .library import (
    program_text as program_text,
)
from .library import (
    read_program as read_program,
)
from .machines.machine import Path as Path
from .machines.machine import Run as Run
from .machines.machine import Step as Step
from .machines.psm import PSM as PSM
from .machines.qkvm import QKVM as QKVM
from .qkvl import QKVLProduction as QKVLProduction
from .qkvl import QKVLProgram as QKVLProgram
from .qkvl import QKVLRepeat as QKVLRepeat
