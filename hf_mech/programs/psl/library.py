"""The package's programs, and reading a program from a file or by its name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from hf_mech.programs.psl.language.check import check_program
from hf_mech.programs.psl.language.errors import ProgramError
from hf_mech.programs.psl.language.parse import parse_program
from hf_mech.programs.psl.language.suggestions import did_you_mean
from hf_mech.programs.psl.language.syntax import Program

_PROGRAMS = "programs"


def program_names() -> tuple[str, ...]:
    """The names of the programs of the package, sorted.

    >>> program_names()[:4]
    ('balanced', 'binary_addition', 'count', 'induction')
    """
    entries = resources.files(__package__).joinpath(_PROGRAMS).iterdir()
    return tuple(sorted(entry.name.removesuffix(".psl") for entry in entries if entry.name.endswith(".psl")))


def program_text(name: str) -> str:
    """The text of a program of the package.

    Raises:
        ProgramError: there is no program of that name.
    """
    if name not in program_names():
        raise ProgramError(
            f"there is no program {name!r} in the package. {did_you_mean(name, program_names())}".strip()
        )
    return resources.files(__package__).joinpath(_PROGRAMS, f"{name}.psl").read_text(encoding="utf-8")


def load_program(text: str, name: str = "<string>") -> Program:
    """Parses and checks a program's text.

    Raises:
        PSLSyntaxError: it is not PSL.
        PSLCheckError: it cannot be compiled exactly.
    """
    return check_program(parse_program(text, name), name)


def read_program(source: str | Path) -> Program:
    """Parses and checks the program of a file, or of the package by its name.

    Raises:
        ProgramError: `source` is neither a readable file nor a program's name.
        PSLSyntaxError, PSLCheckError: as in `load_program`.
    """
    if isinstance(source, str) and source in program_names():
        return load_program(program_text(source), source)
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
        raise ProgramError(
            f"cannot read the program {str(source)!r} ({error}). Give a file of PSL in UTF-8, or one of the package's "
            f"programs: {', '.join(program_names())}"
        ) from error
    return load_program(text, str(source))
