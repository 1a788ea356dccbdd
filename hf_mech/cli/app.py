"""The command line: `hf-mech --help` lists its commands.

A wrong input ends with one message on stderr and exit code 1; a wrong command line with exit code 2.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hf_mech.cli.checkpoints import complete_source, list_checkpoints
from hf_mech.cli.explore import explore_source
from hf_mech.cli.kernel import write_stack_kernel
from hf_mech.cli.learn import learn_log
from hf_mech.cli.play import play_checkpoint
from hf_mech.cli.programs import (
    compile_to_folder,
    list_programs,
    run_prompts,
    run_turing_machine,
    trace_prompt,
    write_circuits,
)
from hf_mech.cli.push import push
from hf_mech.cli.push_dataset import push_dataset
from hf_mech.cli.test_llm import ask_llm
from hf_mech.cli.train import train

_DEMO_NEEDS = ("matplotlib", "networkx", "up_pyperplan")  # modules of the extras `viz` and `plan`


class MissingExtraError(ImportError):
    """A command needs the packages of an extra."""


class _OneMessagePerError(TyperGroup):
    """Prints an error of hf_mech as one message; any other is a bug and keeps its traceback, without secrets."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            from hf_mech.hub.environment import install_command
            from hf_mech.hub.redaction import redact, redacted_traceback

            if isinstance(error, ModuleNotFoundError) and (command := install_command(error.name or "")):
                typer.echo(f"hf-mech: {error.name} is not installed. Run: {command}", err=True)
                raise typer.Exit(1) from error
            package = type(error).__module__.partition(".")[0]
            if package == "hf_mech":
                typer.echo(f"hf-mech: {redact(str(error))}", err=True)
                raise typer.Exit(1) from error
            if package in ("typer", "click") or (shown := redacted_traceback(error)) is None:
                raise
            typer.echo(shown, err=True)
            raise typer.Exit(1) from None


app = typer.Typer(
    name="hf-mech",
    cls=_OneMessagePerError,
    help="Transformers that compute something exactly: compile, run, show, test and push them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, show_default=False, metavar="FOLDER")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from hf_mech.hub.environment import hf_mech_version

        typer.echo(f"hf_mech {hf_mech_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Transformers that compute something exactly: compile, run, show, test and push them."""


@app.command()
def env() -> None:
    """Print the versions and the machine, to be pasted into a bug report."""
    from hf_mech.hub.environment import describe_environment

    for name, value in describe_environment().items():
        typer.echo(f"- {name}: {value}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for what the demo makes.")] = Path("demo"),
) -> None:
    """Learn a hidden planning domain, save it, load it again, and prove it right."""
    missing = [module for module in _DEMO_NEEDS if find_spec(module) is None]
    if missing:
        raise MissingExtraError(f"The demo needs {', '.join(missing)}: pip install 'hf-mech[all]'")
    from hf_mech.cli.demo import run_demo

    run_demo(out)


@app.command()
def card(
    folder: _Folder,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if README.md is out of date.")] = False,
) -> None:
    """Render README.md in FOLDER from its card.yaml, results.json and pictures."""
    from hf_mech.hub.card import check_folder, render_folder

    if check:
        check_folder(folder)
        typer.echo(f"{folder} agrees with its results.")
    else:
        typer.echo(f"Wrote {render_folder(folder)}")


@app.command()
def verify(
    checkpoint: Annotated[
        str,
        typer.Argument(
            help="A folder, a repository on the Hub, user/name, or a name of `hf-mech checkpoints`.",
            show_default=False,
            autocompletion=complete_source,
        ),
    ],
    revision: Annotated[str | None, typer.Option(help="The repository's branch, tag or commit.")] = None,
) -> None:
    """Check the weights of CHECKPOINT against its SHA256SUMS."""
    from hf_mech.hub.catalogue import catalogue, source_of
    from hf_mech.hub.checkpoint import verify_checksums

    if checkpoint in {entry.name for entry in catalogue()} and not Path(checkpoint).is_dir():
        checkpoint = source_of(checkpoint)
    for name in verify_checksums(checkpoint, revision=revision):
        typer.echo(f"{name}: OK")


app.add_typer(train, name="train")
app.command("push")(push)
app.command("push-dataset")(push_dataset)
app.command("checkpoints")(list_checkpoints)
app.command("compile")(compile_to_folder)
app.command("programs")(list_programs)
app.command("circuits")(write_circuits)
app.command("run")(run_prompts)
app.command("trace")(trace_prompt)
app.command("learn")(learn_log)
app.command("kernel")(write_stack_kernel)
app.command("explore")(explore_source)
app.command("play")(play_checkpoint)
app.command("turing")(run_turing_machine)
app.command("test-llm")(ask_llm)
