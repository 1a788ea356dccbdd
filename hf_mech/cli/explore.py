"""The command `hf-mech explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_USUAL = "pargen"


def explore_source(
    source: Annotated[
        str,
        typer.Argument(
            metavar="[SOURCE]",
            help="A program of the package, a file of PSL, a checkpoint's folder, or a repository on the Hub.",
        ),
    ] = _USUAL,
    text: Annotated[
        str, typer.Argument(help="What it reads, such as a prompt; by default an example.", show_default=False)
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="'NAME: VALUE ...'",
            help="First values of a program's register, or a line of the page's settings; may be repeated.",
        ),
    ] = None,
    html_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the run as one page, and start no app."),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the app as a Space for the Hub into this new folder, and stop."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(help="Its port; the first free one from 7860.", show_default=False)
    ] = None,
    share: Annotated[bool, typer.Option("--share", help="Let Gradio make a public address.")] = False,
) -> None:
    """Show a model's mechanism in the browser: the states of all cells, layer by layer."""
    if space is not None:
        from hf_mech.cli.explorer.space import write_space

        for path in write_space(space):
            typer.echo(f"Wrote {path}")
        return
    from hf_mech.cli.explorer.views import all_views, view_for

    if html_file is not None:
        view = view_for(source)
        from hf_mech.hub.files import write_text_atomically

        example = None if text else view.example(source)
        given = "\n".join(settings or ()) or (example.settings if example else "")
        page = view.page(source, example.text if example else text, settings=given)
        typer.echo(f"Wrote {write_text_atomically(html_file, page)}")
        return
    from hf_mech.cli.explorer.app import launch, make_app

    # The first view's own first source is known without a look at the others: the page comes at once.
    view = all_views()[0] if source == _USUAL else view_for(source)
    launch(make_app(source, text, view), host, port, share)
