"""From a program to a model: the passes one after the other, (65) and then (72)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..models.dat.configuration_dat import DATConfig
from ..models.dat.modeling_dat import DATForCausalLM
from ..models.dat.tokenization_dat import DATTokenizer
from .check import check_program
from .functions import DEFAULT_LIMIT
from .lower import lower_program
from .parse import parse_program
from .qkvl import QKVLProgram
from .syntax import Program


def compile_program(
    program: str | Program | QKVLProgram | Mapping[str, Any], **config: Any
) -> tuple[DATForCausalLM, DATTokenizer]:
    r"""Compiles a program into a model and its tokenizer.

    Args:
        program: the text of a PSL program, a parsed one, or QKVL (as an object or as the JSON of App. J).
        config: further arguments of [`DATConfig`], such as `max_position_embeddings` and `backend`.

    Raises:
        PSLError: a program that cannot be compiled exactly; the message says where and why.
        DATConfigError: arguments that make no model.

    Example:

    ```python
    >>> from hf_mech.psl import compile_program

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
        program = lower_program(program, config.get("max_position_embeddings", DEFAULT_LIMIT))
    qkvl = program.to_json() if isinstance(program, QKVLProgram) else dict(program)
    made = DATConfig(qkvl=qkvl, **config)
    return DATForCausalLM(made).eval(), DATTokenizer.from_config(made)


def compile_file(path: str | os.PathLike[str], folder: str | os.PathLike[str], **config: Any) -> DATForCausalLM:
    """Compiles the program in a file and writes a checkpoint: weights, configuration, tokenizer, code, the program.

    Args:
        path: the program.
        folder: where the checkpoint goes; `AutoModelForCausalLM.from_pretrained(folder)` loads it.
        config: further arguments of [`DATConfig`].

    Raises:
        PSLError: a program that cannot be compiled exactly.
        OSError: the file cannot be read, or the folder not be written.
    """
    text = Path(path).read_text("utf-8")
    model, tokenizer = compile_program(text, **config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (Path(folder) / "program.psl").write_text(text, "utf-8")
    return model
