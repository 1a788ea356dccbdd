"""The command `hf-mech turing`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hf_mech.cli.programs import MachineName

if TYPE_CHECKING:
    from hf_mech.programs.psl.syntax import Program


def run_table(
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
    machine: MachineName = "dat",
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
        runner=lambda program: _machine(machine, program, cells),
    )
    for step in ended.history() if show else ():
        typer.echo(step)
    typer.echo(" ".join(ended.written))
    typer.echo(f"state {ended.state}, {ended.steps:,} steps", err=True)


def _machine(name: str, program: Program, cells: int) -> Any:
    from hf_mech.programs.psl.compile import compile_program, lower_program
    from hf_mech.programs.psl.machines import PSM, QKVM
    from hf_mech.programs.psl.network import DAT

    if name == "psm":
        return PSM(program)
    if name == "qkvm":
        return QKVM(lower_program(program))
    return DAT(*compile_program(program, max_position_embeddings=max(512, cells)))
