"""From a program to a model: the passes in order, (65) and then (72)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from hf_mech.models.dat.configuration_dat import DATConfig
from hf_mech.models.dat.modeling_dat import DATForCausalLM
from hf_mech.models.dat.tokenization_dat import DATTokenizer
from hf_mech.programs.psl.checkpoint_folder import replacing, restore
from hf_mech.programs.psl.heads import merge_heads
from hf_mech.programs.psl.language.check import check_program
from hf_mech.programs.psl.language.errors import ProgramError
from hf_mech.programs.psl.language.functions import DEFAULT_LIMIT
from hf_mech.programs.psl.language.parse import parse_program
from hf_mech.programs.psl.language.syntax import Program
from hf_mech.programs.psl.language.values import value_sets
from hf_mech.programs.psl.library import read_program
from hf_mech.programs.psl.lower import lower_program
from hf_mech.programs.psl.qkvl import QKVLProgram

PROGRAM_FILE = "program.psl"
"""The program's text in a checkpoint."""


def compile_program(
    program: str | Program | QKVLProgram | Mapping[str, Any], *, heads: bool = False, **config: Any
) -> tuple[DATForCausalLM, DATTokenizer]:
    r"""Compiles a program into a model and its tokenizer.

    Args:
        program: the text of a PSL program, a parsed one, or QKVL (as an object or as the JSON of App. J).
        heads: run productions that do not conflict as heads of one layer, (90a), see `heads.py`; by default every
            production is a layer.
        config: further arguments of [`DATConfig`], such as `max_position_embeddings` and `backend`.

    Raises:
        PSLError: a program that cannot be compiled exactly; the message names the place and the reason.
        DATConfigError: invalid arguments.

    Example:

    ```python
    >>> from hf_mech.programs.psl import compile_program

    >>> model, tokenizer = compile_program('''
    ... registers: {symbol: 's', position: 'p'}
    ... system: {symbol: symbol, position: position, output: symbol}
    ... where position[n] == position[N]@pos_decrement:
    ...     symbol[N] = symbol[n]
    ... ''')
    >>> prompt = tokenizer("red green blue", return_tensors="pt")
    >>> tokenizer.decode(model.generate(**prompt, max_new_tokens=1)[0, -1])
    'green'

    ```
    """
    if isinstance(program, str):
        program = check_program(parse_program(program))
    if isinstance(program, Program):
        limit = config.get("max_position_embeddings", DEFAULT_LIMIT)
        lowered = lower_program(program, limit)
        config.setdefault("value_sets", {name: str(values) for name, values in value_sets(program, limit).items()})
        program = lowered
    if heads:
        program = merge_heads(program if isinstance(program, QKVLProgram) else QKVLProgram.from_json(program))
    qkvl = program.to_json() if isinstance(program, QKVLProgram) else dict(program)
    made = DATConfig(qkvl=qkvl, **config)
    return DATForCausalLM(made).eval(), DATTokenizer.from_config(made)


def compile_file(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    heads: bool = False,
    **config: Any,
) -> DATForCausalLM:
    """Compiles a program and writes a checkpoint: weights, configuration, tokenizer, code, the program's text.

    The folder is written under another name and then renamed: it is complete or absent. A kill leaves the old or the
    new checkpoint under its name, or the old one to be restored by the next call, also of `hf-mech run`.

    Args:
        source: the program's file, or the name of one of the package's programs.
        folder: the checkpoint's folder; `AutoModelForCausalLM.from_pretrained(folder)` loads it.
        heads: as in `compile_program`.
        overwrite: whether to replace an earlier checkpoint. Files that do not belong to a checkpoint are never deleted.
        config: further arguments of [`DATConfig`].

    Raises:
        PSLError: the program cannot be read or not be compiled exactly, or the folder is not free.
        DATConfigError: invalid arguments.
        OSError: the folder cannot be written; an earlier checkpoint is still there.
    """
    program = read_program(source if isinstance(source, str) else Path(source))
    folder = Path(folder).resolve()
    restore(folder)
    _check_free(folder, overwrite)
    model, tokenizer = compile_program(program, heads=heads, **config)
    with replacing(folder) as made:
        try:
            model.save_pretrained(made)
        except SafetensorError as error:  # a full disk, by the library's own error
            raise OSError(f"{folder} cannot be written: {error}") from error
        tokenizer.save_pretrained(made)
        (made / PROGRAM_FILE).write_text(program.source, "utf-8", newline="")
    return model


def _check_free(folder: Path, overwrite: bool) -> None:
    if not folder.name:
        raise ProgramError(f"{folder} is the root of the file system; name a folder for the checkpoint")
    if folder.exists() and not folder.is_dir():
        raise ProgramError(f"{folder} is a file; name a folder for the checkpoint")
    if folder.is_dir() and not overwrite and any(folder.iterdir()):
        raise ProgramError(f"{folder} is not empty; name another folder, or replace the checkpoint there (--force)")
