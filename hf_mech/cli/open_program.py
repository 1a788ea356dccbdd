"""A program to run, from a PSL file, the package, or a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.compile import lower_program
from hf_mech.programs.psl.library import (
    load_program,
    program_heading,
    program_names,
    program_text,
    read_program,
    restore,
)
from hf_mech.programs.psl.machine import Run
from hf_mech.programs.psl.machines import PSM, QKVM
from hf_mech.programs.psl.qkvl import QKVLProgram
from hf_mech.programs.psl.syntax import Program
from hf_mech.programs.psl.values import DEFAULT_LIMIT

if TYPE_CHECKING:
    from hf_mech.models.dat.modeling_dat import DATForCausalLM
    from hf_mech.models.dat.tokenization_dat import DATTokenizer

MachineName = Literal["psm", "qkvm", "dat"]


class OpenedProgram:
    """A program and its three machines, each made at its first use.

    Args:
        source: a checkpoint's folder, a file of PSL, or the name of one of the package's programs.
        config: further arguments of `DATConfig` for a program; a checkpoint has its own.

    Raises:
        ProgramsError: there is no such program or checkpoint, or `config` is given for a checkpoint.
        PSLError: the program cannot be compiled exactly.

    Example:

    ```python
    >>> OpenedProgram("pargen").run("Q x y A y x Q z y A", machine="psm").completion
    ['y', 'z']

    ```
    """

    def __init__(self, source: str, **config: Any) -> None:
        self.source = source
        self._config = config
        self._program: Program | None = None
        packaged = source in program_names() and not (Path(source) / "config.json").is_file()
        self.from_checkpoint = not packaged and restore(Path(source).resolve())  # should a compilation have been killed
        if self.from_checkpoint:
            if config:
                raise ProgramsError(
                    f"{source} is a checkpoint and has its own {' and '.join(config)}; compile the program again to "
                    "change them"
                )
            model, _ = self.network
            self.qkvl = QKVLProgram.from_json(model.config.qkvl)
            self.limit: int = model.config.max_position_embeddings
        else:
            self.limit = config.get("max_position_embeddings", DEFAULT_LIMIT)
            self._program = read_program(source)
            self.qkvl = lower_program(self._program, self.limit)

    @property
    def program(self) -> Program:
        """The program as it was written.

        Raises:
            ProgramsError: a checkpoint does not have it, or its program differs from its weights.
        """
        if self._program is None:
            from hf_mech.programs.psl.compile import PROGRAM_FILE

            path = Path(self.source) / PROGRAM_FILE
            if not path.is_file():
                raise ProgramsError(f"{self.source} has no {PROGRAM_FILE}; only the machines qkvm and dat run it")
            program = load_program(path.read_text("utf-8"), str(path))
            if lower_program(program, self.limit).to_json() != self.qkvl.to_json():
                raise ProgramsError(f"{path} is not the program of the checkpoint's config.json; compile it again")
            self._program = program
        return self._program

    @property
    def heading(self) -> str:
        """What the program's text says of itself first, its form of prompts among it; empty if there is no text."""
        if self.source in program_names() and not self.from_checkpoint:
            return program_heading(program_text(self.source))
        path = Path(self.source) / "program.psl" if self.from_checkpoint else Path(self.source)
        return program_heading(path.read_text("utf-8")) if path.is_file() else ""

    @cached_property
    def network(self) -> tuple[DATForCausalLM, DATTokenizer]:
        """The model and its tokenizer.

        Raises:
            ProgramsError: the folder holds no DAT that can be loaded.
        """
        if self.from_checkpoint:
            return _load(self.source)
        from hf_mech.programs.psl.compile import compile_program

        return compile_program(self.qkvl, **self._config)

    def run(self, words: str, *, machine: MachineName = "dat", max_new_tokens: int = 64) -> Run:
        """Runs the program on one prompt; see `Machine.run`."""
        return self._machine(machine)(words, max_new_tokens)

    def _machine(self, name: MachineName) -> Callable[[str, int], Run]:
        if name == "dat":
            from hf_mech.programs.psl.network import DAT

            return DAT(*self.network).run
        symbolic = PSM(self.program) if name == "psm" else QKVM(self.qkvl)
        return lambda words, most: symbolic.run(words, max_new_tokens=most, max_position_embeddings=self.limit)


def _load(folder: str) -> tuple[DATForCausalLM, DATTokenizer]:
    from transformers import AutoConfig

    from hf_mech.models.dat.configuration_dat import DATConfig
    from hf_mech.models.dat.dat_errors import DATError
    from hf_mech.models.dat.modeling_dat import DATForCausalLM
    from hf_mech.models.dat.tokenization_dat import DATTokenizer

    if not (Path(folder) / "config.json").is_file():
        raise ProgramsError(f"{folder} is a folder without config.json; give a checkpoint, a file of PSL, or a name")
    try:
        config = AutoConfig.from_pretrained(folder)
        if not isinstance(config, DATConfig):
            raise ProgramsError(f"{folder} holds a model of type {config.model_type!r}; expected 'dat', which runs PSL")
        return DATForCausalLM.from_pretrained(folder).eval(), DATTokenizer.from_pretrained(folder)
    except (ProgramsError, DATError):
        raise
    except Exception as error:  # transformers, safetensors and json raise different errors for a damaged file
        raise ProgramsError(f"{folder} holds no checkpoint that can be loaded: {error}") from error
