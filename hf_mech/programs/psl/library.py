"""Programs by name, as files and as compiled checkpoints, and what they complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

import torch

from hf_mech.hub import files
from hf_mech.hub.files import held
from hf_mech.models.dat.dat_program import NIL, DATError
from hf_mech.models.dat.modeling_dat import DATForCausalLM
from hf_mech.models.dat.tokenization_dat import DATTokenizer
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.check import check_program, did_you_mean
from hf_mech.programs.psl.machine import words_of
from hf_mech.programs.psl.parse import parse_program
from hf_mech.programs.psl.syntax import Program

# ----------------------------------------------------------------------------------------------------------------------
# Replacing a checkpoint's folder, so that a kill at any moment leaves a whole one to be found or restored.
#
# The new folder is written aside. The old one is renamed to `.name.old`, and then the new one to `name`. Between the
# two renames there is no `name`: the next call restores `.name.old`.


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Gives an empty folder; at the end of the block it takes the place of `folder`, old or absent.

    If the block raises, `folder` stays as it is. Other processes that replace it wait.

    Raises:
        ProgramsError: the old folder has files that the new one lacks. Nothing is deleted.
        OSError: a folder cannot be written or renamed.
    """
    with held(folder, wait=True):
        _restore(folder)
        try:
            with files.replacing(folder) as new:
                new.mkdir()
                yield new
                if folder.is_dir():
                    _refuse_foreign_files(folder, new)
                    folder.replace(_old(folder))
        finally:
            _restore(folder)


def restore(folder: Path) -> bool:
    """Restores a folder whose replacement was killed; returns whether the folder exists."""
    if folder.name and _old(folder).exists():
        with held(folder, wait=True):
            _restore(folder)
    return folder.is_dir()


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _restore(folder: Path) -> None:
    if _old(folder).is_dir() and not folder.is_dir():
        _old(folder).replace(folder)
    files.remove(_old(folder))


def _refuse_foreign_files(folder: Path, new: Path) -> None:
    foreign = {path.name for path in folder.iterdir()} - {path.name for path in new.iterdir()} - {"__pycache__"}
    if foreign:
        raise ProgramsError(
            f"{folder} also has {', '.join(sorted(foreign)[:5])}, which a compiled program has not; nothing there "
            "was changed. Name another folder, or move these files first"
        )


# ----------------------------------------------------------------------------------------------------------------------
# Completions of many prompts by the compiled network, in batches.


@dataclass(frozen=True)
class Completion:
    """The network's completion of a prompt.

    Args:
        words: the words before the one that ended the generation.
        ended: whether nil or a stop word ended it; False if `max_new_tokens` cut it off.
    """

    words: tuple[str, ...]
    ended: bool

    @property
    def text(self) -> str:
        """The words with spaces between them."""
        return " ".join(self.words)


def complete_batch(
    model: DATForCausalLM, tokenizer: DATTokenizer, prompts: Sequence[str], max_new_tokens: int
) -> Iterator[Completion]:
    """The completion of each prompt, by `generate()`.

    If a prompt of a batch cannot be completed, the prompts before it still are.

    Raises:
        ProgramsError: a prompt has no word.
        DATError: a prompt is too long, has too many new words, or a repeat block does not end.
    """
    for prompt in prompts:
        words_of(prompt)
    try:
        found = _generate(model, tokenizer, prompts, max_new_tokens)
    except DATError:
        if len(prompts) == 1:
            raise
        for prompt in prompts:
            yield from complete_batch(model, tokenizer, [prompt], max_new_tokens)
        return
    yield from found


def _generate(
    model: DATForCausalLM, tokenizer: DATTokenizer, prompts: Sequence[str], max_new_tokens: int
) -> list[Completion]:
    batch = tokenizer(list(prompts), padding=True, return_tensors="pt").to(model.device)
    with torch.no_grad():
        rows = model.generate(**batch, max_new_tokens=max_new_tokens)[:, batch["input_ids"].shape[1] :].tolist()
    completions = []
    for row in rows:
        end = next((place for place, token in enumerate(row) if token == NIL), None)
        completions.append(Completion(tuple(tokenizer.convert_ids_to_tokens(row[:end])), ended=end is not None))
    return completions


# ----------------------------------------------------------------------------------------------------------------------
# The package's programs, and reading a program from a file or by its name.


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
        ProgramsError: there is no program of that name.
    """
    if name not in program_names():
        raise ProgramsError(
            f"there is no program {name!r} in the package. {did_you_mean(name, program_names())}".strip()
        )
    return resources.files(__package__).joinpath(_PROGRAMS, f"{name}.psl").read_text(encoding="utf-8")


def program_heading(text: str) -> str:
    """What a program's first comment says: what it does, an example, and how it is prompted. Empty without one.

    >>> print(program_heading("# Says nothing.\\n#\\n#   a b   ->\\nregisters: {}"))
    Says nothing.
    <BLANKLINE>
      a b   ->
    """
    comments = takewhile(lambda line: line.startswith(("#", "//")), text.splitlines())
    return dedent("\n".join(line.removeprefix("#").removeprefix("//") for line in comments)).strip("\n")


def load_program(text: str, name: str = "<string>") -> Program:
    """Parses and checks a program's text.

    Raises:
        PSLError: it is not PSL; it cannot be compiled exactly.
    """
    return check_program(parse_program(text, name), name)


def read_program(source: str | Path) -> Program:
    """Parses and checks the program of a file, or of the package by its name.

    Raises:
        ProgramsError: `source` is neither a readable file nor a program's name.
        PSLError: as in `load_program`.
    """
    if isinstance(source, str) and source in program_names():
        return load_program(program_text(source), source)
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
        raise ProgramsError(
            f"cannot read the program {str(source)!r} ({error}). Give a file of PSL in UTF-8, or one of the package's "
            f"programs: {', '.join(program_names())}"
        ) from error
    return load_program(text, str(source))
