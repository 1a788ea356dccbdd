"""The commands `hf-mech compile`, `programs`, `run`, `trace` and `turing`."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hf_mech.cli.console import WIDTH, open_console, print_pairs
from hf_mech.programs.errors import ProgramsError
from hf_mech.programs.psl.machine import words_of

if TYPE_CHECKING:
    from hf_mech.cli.open_program import MachineName, OpenedProgram
    from hf_mech.programs.psl.machine import Run
    from hf_mech.programs.psl.qkvl import QKVLProgram
    from hf_mech.programs.psl.syntax import Program


_PACKAGED = (
    "balanced, binary_addition, count, induction, majority, nested_functions, pargen, pargen_k_shot, reverse, sort, "
    "universal"
)
"""`program_names()`, which would import the parser for every command; a test compares them."""

_MOST_WORDS = 64
"""The most words of a completion, unless --max-new-tokens says another number."""

_Source = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        show_default=False,
        help=f"A checkpoint's folder, a file of PSL, or a program of the package: {_PACKAGED}.",
    ),
]
_Positions = Annotated[
    int | None,
    typer.Option(min=1, help="T, the most words of prompt and completion together; 512.", show_default=False),
]
_OpenValues = Annotated[
    int | None,
    typer.Option(min=0, help="Places for words that the program does not name; 4096.", show_default=False),
]
_Machine = Annotated[
    Literal["dat", "psm", "qkvm"],
    typer.Option(help="The transformer, or one of the symbolic machines."),
]
_MaxNewTokens = Annotated[
    int | None, typer.Option(min=1, help="The most words of a completion; 64.", show_default=False)
]


def compile_to_folder(
    program: Annotated[
        str,
        typer.Argument(help=f"A file of PSL, or a program of the package: {_PACKAGED}.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the checkpoint.", show_default=False)],
    max_position_embeddings: _Positions = None,
    num_open_values: _OpenValues = None,
    embedding: Annotated[
        Literal["local", "semi_local", "distributed"],
        typer.Option(help="The vectors of registers and values: one-hot, or dense, equation (69)."),
    ] = "local",
    filler_dim: Annotated[
        int | None,
        typer.Option(min=4, help="The dimension of dense vectors of values; their number.", show_default=False),
    ] = None,
    heads: Annotated[
        bool,
        typer.Option("--heads", help="Run productions that do not conflict as heads of one layer, equation (90a)."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a checkpoint that is there.")] = False,
) -> None:
    """Compile a PSL program into a checkpoint that AutoModelForCausalLM loads."""
    from hf_mech.programs.psl.compile import compile_file

    config = _given(
        max_position_embeddings=max_position_embeddings, num_open_values=num_open_values, filler_dim=filler_dim
    )
    with _quiet():
        model = compile_file(program, out, overwrite=force, heads=heads, embedding=embedding, **config)
    files = [path for path in out.iterdir() if path.is_file()]
    rows = {
        "registers": f"{model.config.num_registers}, of {model.config.vocab_size:,} values each",
        "states": f"{model.config.embedding}, {model.config.hidden_size:,} dimensions",
        "layers": f"{model.config.num_hidden_layers}"
        + (f", of up to {most} heads" if (most := model.config.num_attention_heads) > 1 else ""),
        "weights": f"{model.num_parameters():,} in blocks that are not zero",
        "positions": f"{model.config.max_position_embeddings}",
        "bytes": f"{sum(path.stat().st_size for path in files):,} in {len(files)} files; "
        f"model.safetensors: {(out / 'model.safetensors').stat().st_size:,}",
    }
    print_pairs(f"{program} -> {out}", rows)
    typer.echo(
        "\nimport hf_mech\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        f"model = AutoModelForCausalLM.from_pretrained({str(out)!r})\n"
        f"tokenizer = AutoTokenizer.from_pretrained({str(out)!r})"
    )


def list_programs(
    program: Annotated[str, typer.Argument(help="Show all that is said of this one.", show_default=False)] = "",
) -> None:
    """List the programs of the package: what each does, and an example."""
    from hf_mech.programs.psl.library import program_heading, program_names, program_text

    if program:
        typer.echo(program_heading(program_text(program)))
        return
    headings = {name: program_heading(program_text(name)).splitlines() for name in program_names()}
    print_pairs(
        "Programs",
        {
            name: "\n".join([lines[0], *(line for line in lines if "->" in line)][:2])
            for name, lines in headings.items()
        },
    )
    typer.echo("\nhf-mech programs PROGRAM says how it is prompted; hf-mech run PROGRAM PROMPT runs it.")


def write_circuits(
    out: Annotated[Path, typer.Argument(help="The folder of the benchmark set.", show_default=False)],
    programs: Annotated[
        list[str] | None, typer.Argument(metavar="[PROGRAM]...", help="Some programs alone.", show_default=False)
    ] = None,
    prompts: Annotated[int, typer.Option(min=1, help="Prompts of each program.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the prompts.")] = 0,
) -> None:
    """Write programs of the package as circuits with known edges: checkpoint, data and edges, as in InterpBench."""
    machines = importlib.import_module("hf_mech.training.machines.circuits")
    with _quiet():
        for case in machines.write_set(out, programs, prompts, seed):
            typer.echo(f"{out / case['case_id']}: {case['edges']} edges, {prompts} prompts")


def run_prompts(
    program: _Source,
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT]...", help="Prompts; without one, the lines of stdin.", show_default=False),
    ] = None,
    machine: _Machine = "dat",
    max_new_tokens: _MaxNewTokens = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Lines of stdin at once, for the transformer.")] = 32,
    max_position_embeddings: _Positions = None,
    num_open_values: _OpenValues = None,
) -> None:
    """Run a program on prompts, and print the completion of each on a line."""
    from hf_mech.cli.open_program import OpenedProgram

    config = _given(max_position_embeddings=max_position_embeddings, num_open_values=num_open_values)
    with _quiet():
        opened = OpenedProgram(program, **config)
        done = 0
        for batch in _batches(prompts, batch_size):
            for prompt in batch:
                _warn_of_grammar(opened.qkvl, prompt)
            most = max_new_tokens or _MOST_WORDS
            completions = _completions(opened, [prompt for prompt in batch if prompt.strip()], machine, most)
            for prompt in batch:
                done += 1
                where = f"prompt {done}: " if done > 1 or len(batch) > 1 else ""
                with _errors_say_how_to_mend(opened, where):
                    words = next(completions) if prompt.strip() else ()
                typer.echo(" ".join(words))
                if prompt.strip() and not words:
                    _say_how_to_prompt(opened, where)
                if len(words) == most and max_new_tokens is None:
                    _warn_of_a_cut(opened.qkvl, prompt, where)


def trace_prompt(
    program: _Source,
    prompt: Annotated[str, typer.Argument(help="The prompt.", show_default=False)],
    layer: Annotated[
        list[str] | None,
        typer.Option(help="Only this layer: its number, or how its comment begins, such as P5b; may be repeated."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show layers that changed nothing, too.")] = False,
    registers: Annotated[
        str | None,
        typer.Option(help="The registers to show, with commas between; `all`. [default: those that it watches]"),
    ] = None,
    generate: Annotated[bool, typer.Option("--generate", help="Follow the generated cells, too.")] = False,
    machine: _Machine = "dat",
    max_new_tokens: _MaxNewTokens = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all states of all cells here.")
    ] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the tables here.")] = None,
    max_position_embeddings: _Positions = None,
    num_open_values: _OpenValues = None,
) -> None:
    """Show how a program parses a prompt, layer by layer.

    Changed values are highlighted; without colours, in a pipe or a file, a * stands before them. A · is a register
    without a value.
    """
    from rich.console import Console

    from hf_mech.cli.open_program import OpenedProgram, TraceTables, shown_registers, wanted_layers
    from hf_mech.hub.files import write_text_atomically

    for file in (json_file, html_file):
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            raise ProgramsError(f"{file} cannot be written: name a file in a folder that exists")
    config = _given(max_position_embeddings=max_position_embeddings, num_open_values=num_open_values)
    with _quiet():
        opened = OpenedProgram(program, **config)
        names = [name.strip() for name in (registers or "").split(",") if name.strip()]
        if names == ["all"]:
            names = list(opened.qkvl.register_map)
        names = shown_registers(opened.qkvl, names)
        layers = wanted_layers(opened.qkvl, layer or [])
        _warn_of_grammar(opened.qkvl, prompt)
        with _errors_say_how_to_mend(opened):
            run = opened.run(prompt, machine=machine, max_new_tokens=max_new_tokens or _MOST_WORDS if generate else 1)

    def show(console: Console) -> None:
        tables = TraceTables(run, opened.qkvl, names, console.width, marks=console.color_system is None)
        console.print(*tables.prompt_layers(layers, every), sep="\n")
        if generate:
            console.print(*tables.generated_layers(layers, every), sep="\n")
        console.print(*tables.parse(), sep="\n")
        said = "Completion" if generate else "First word of the completion"
        console.print(f"\n{said}: {' '.join(run.completion) or 'none'}", markup=False, highlight=False)

    show(open_console())
    if generate and max_new_tokens is None and len(run.completion) == _MOST_WORDS:
        _warn_of_a_cut(opened.qkvl, prompt)
    if json_file is not None:
        record = _record(opened, run, prompt, machine)
        typer.echo(f"Wrote {write_text_atomically(json_file, json.dumps(record, ensure_ascii=False, indent=1))}")
    if html_file is not None:
        page = Console(file=StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor")
        show(page)
        typer.echo(f"Wrote {write_text_atomically(html_file, page.export_html())}")


def run_turing_machine(
    table: Annotated[
        Path, typer.Argument(help="A file of lines `state symbol -> state symbol L`.", show_default=False)
    ],
    tape: Annotated[str, typer.Argument(help="The symbols of the tape, with spaces between them.", show_default=False)],
    head: Annotated[int, typer.Option(min=0, help="The cell of the tape where the head begins.")] = 0,
    left: Annotated[int, typer.Option(min=0, help="Blanks before the tape.")] = 16,
    right: Annotated[int, typer.Option(min=0, help="Blanks behind the tape.")] = 16,
    max_steps: Annotated[int, typer.Option(min=1, help="Most steps of the compiled program.")] = 10_000,
    universal: Annotated[
        bool, typer.Option("--universal", help="Put the table into the prompt of one program for all tables.")
    ] = False,
    machine: _Machine = "dat",
    show: Annotated[bool, typer.Option("--show", help="Print the tape after every step, too.")] = False,
    psl: Annotated[bool, typer.Option("--psl", help="Print the compiled program instead of running it.")] = False,
) -> None:
    """Run a Turing machine as a program: what it wrote, its last state, and its steps."""
    from hf_mech.programs.psl.turing import Tape, TuringMachine, run_turing

    made = TuringMachine.read(table)
    if psl:
        typer.echo(made.to_psl(max_steps), nl=False)
        return
    cells = len(tape.split()) + left + right + (len(made.table) if universal else 0)
    ended: Tape = run_turing(
        made,
        tape,
        head=head,
        left=left,
        right=right,
        max_steps=max_steps,
        universal=universal,
        runner=lambda program: _runner(machine, program, cells),
    )
    for step in ended.history() if show else ():
        typer.echo(step)
    typer.echo(" ".join(ended.written))
    typer.echo(f"state {ended.state}, {ended.steps:,} steps", err=True)


def _runner(machine: MachineName, program: Program, cells: int) -> Any:
    """The machine that runs the program, with room for so many cells."""
    from hf_mech.programs.psl.compile import compile_program, lower_program
    from hf_mech.programs.psl.machines import PSM, QKVM
    from hf_mech.programs.psl.network import DAT

    if machine == "psm":
        return PSM(program)
    if machine == "qkvm":
        return QKVM(lower_program(program))
    return DAT(*compile_program(program, max_position_embeddings=max(512, cells)))


# ----------------------------------------------------------------------------------------------------------------------
# What the commands share: options, progress bars, batches of prompts, messages and tables.


def _given(**config: int | None) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in config.items() if value is not None}


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides the progress bars and messages of transformers."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _batches(prompts: list[str] | None, size: int) -> Iterator[list[str]]:
    """The prompts all at once; or the lines of stdin in batches, one by one if typed in a terminal."""
    if prompts:
        for prompt in prompts:
            words_of(prompt)  # an empty line of stdin has an empty completion, an empty argument is a mistake
        yield prompts
        return
    lines = iter(sys.stdin)
    size = 1 if sys.stdin.isatty() else size
    try:
        while batch := [line.rstrip("\n") for line in islice(lines, size)]:
            yield batch
    except UnicodeDecodeError as error:
        raise ProgramsError(f"stdin is not {error.encoding}: {error}") from error


def _completions(opened: OpenedProgram, prompts: list[str], machine: MachineName, most: int) -> Iterator[Sequence[str]]:
    """The words of each completion."""
    if machine == "dat":
        from hf_mech.programs.psl.library import complete_batch

        model, tokenizer = opened.network
        yield from (completion.words for completion in complete_batch(model, tokenizer, prompts, most))
        return
    for prompt in prompts:
        yield opened.run(prompt, machine=machine, max_new_tokens=most).completion


def _say_how_to_prompt(opened: OpenedProgram, where: str) -> None:
    """Says on stderr that a completion is empty, and how the program is prompted; it may be right all the same."""
    heading = opened.heading
    form = f" {opened.source} says of itself:\n\n{heading}" if heading else ""
    typer.echo(f"hf-mech: warning: {where}The completion is empty.{form}", err=True)


def _warn_of_grammar(qkvl: QKVLProgram, prompt: str) -> None:
    """Warns on stderr if a prompt that begins with Q is not valid templatic generation. It is run anyway."""
    from hf_mech.programs.templatic.grammar import QUESTION

    if prompt.split()[:1] == [QUESTION]:
        for text in _faults(qkvl, prompt):
            typer.echo(f"hf-mech: warning: {text}", err=True)


def _warn_of_a_cut(qkvl: QKVLProgram, prompt: str, where: str = "") -> None:
    """Warns on stderr that the default bound ended a completion, and of faults of the prompt not reported yet."""
    from hf_mech.programs.templatic.grammar import QUESTION

    ends = " or ".join(["nil", *(repr(word) for word in qkvl.stop)])
    text = (
        f"{where}The completion was cut after {_MOST_WORDS} words: the program did not end it ({ends}). "
        "--max-new-tokens sets another bound."
    )
    faults = [] if prompt.split()[:1] == [QUESTION] else _faults(qkvl, prompt)  # else _warn_of_grammar told them
    typer.echo(f"hf-mech: warning: {' '.join([text, *faults])}", err=True)


def _faults(qkvl: QKVLProgram, prompt: str) -> list[str]:
    """Faults of a prompt by the grammar of templatic generation; none for a program that does not read it."""
    from hf_mech.programs.templatic.grammar import ANSWER, QUESTION
    from hf_mech.programs.templatic.parse import check_prompt
    from hf_mech.programs.templatic.tasks import GrammarWarning

    if not {QUESTION, ANSWER} <= set(qkvl.constants_map.values()):
        return []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        said = []
        try:
            check_prompt(prompt)
        except ProgramsError as error:
            said = [f"This is no prompt of templatic generation. {error}"]
    return [*(str(warning.message) for warning in caught), *said]


@contextmanager
def _errors_say_how_to_mend(opened: OpenedProgram, where: str = "") -> Iterator[None]:
    """Adds the prompt, and the option that helps, to an error."""
    from hf_mech.models.dat.dat_program import DATError, DATLengthError, DATVocabularyError

    try:
        yield
    except (ProgramsError, DATError) as error:
        mend = ""
        if isinstance(error, DATLengthError) or getattr(error, "limit", None) is not None:
            mend = f"--max-position-embeddings {4 * opened.limit}"
        elif isinstance(error, DATVocabularyError):
            mend = "--num-open-values N"
        if mend:
            compiled = "hf-mech compile ... " if opened.from_checkpoint else ""
            mend = f"\nOn the command line: {compiled}{mend}"
        if not (where or mend):
            raise
        raise ProgramsError(f"{where}{error}{mend}") from error


def _record(opened: OpenedProgram, run: Run, prompt: str, machine: str) -> dict[str, Any]:
    """A run as JSON: the states after each layer, for the prompt's cells, then for each generated cell."""
    comments = [layer.layer_comment for layer in opened.qkvl.layers]
    return {
        "program": opened.source,
        "machine": machine,
        "prompt": prompt.split(),
        "completion": run.completion,
        "layers": comments,
        "trace": [
            [
                {
                    "layer": step.path.production,  # from 1; 0: before the first
                    "repetitions": list(step.path.repetitions),
                    "cells": [dict(cell) for cell in step.cells],
                }
                for step in steps
            ]
            for steps in run.trace
        ],
    }
