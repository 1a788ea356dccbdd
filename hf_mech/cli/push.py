"""The command `hf-mech push`: one checkpoint, or every folder of `model_cards/`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hf_mech.cli.console import open_console

if TYPE_CHECKING:
    from hf_mech.hub.publishing import Publication

_ALL = "All checkpoints"
_ONE = "One checkpoint"


def push(
    folder: Annotated[
        Path | None, typer.Argument(exists=True, file_okay=False, show_default=False, metavar="FOLDER")
    ] = None,
    repo_id: Annotated[
        str | None, typer.Argument(metavar="REPO_ID", help="The repository on the Hub, user/name.", show_default=False)
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Every folder of model_cards/; without --yes only a table.", rich_help_panel=_ALL),
    ] = False,
    organization: Annotated[
        str | None, typer.Option(help="The organization or user that gets them.", rich_help_panel=_ALL)
    ] = None,
    folders: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            exists=True,
            file_okay=False,
            help="The folder of the checkpoints' folders; the clone's model_cards.",
            rich_help_panel=_ALL,
        ),
    ] = None,
    yes: Annotated[
        bool | None,
        typer.Option("--yes/--dry-run", help="Send; or only show what would be sent.", rich_help_panel=_ALL),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the text of a collection's page.", rich_help_panel=_ALL),
    ] = None,
    card_folder: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="The folder of the model's card.", rich_help_panel=_ONE),
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True, dir_okay=False, help="A further file to upload; may be repeated.", rich_help_panel=_ONE
        ),
    ] = None,
    message: Annotated[
        str | None, typer.Option(help="The commit's title; 'Upload model'.", rich_help_panel=_ONE)
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make new repositories private.")] = False,
) -> None:
    """Upload the checkpoint in FOLDER with its code and card, in one commit; or --all of them."""
    ours = {"--organization": organization, "--folder": folders, "--yes/--dry-run": yes, "--page": page}
    others = {"FOLDER": folder, "REPO_ID": repo_id, "--card-folder": card_folder, "--file": file, "--message": message}
    for option, value in (others if everything else ours).items():
        if value is not None and value != []:
            raise typer.BadParameter("does not go with --all." if everything else "goes with --all.", param_hint=option)
    if everything:
        if organization is None:
            raise typer.BadParameter("--all needs it: --organization NAME.", param_hint="--organization")
        _push_all(folders, organization, yes or False, page, private or None)
        return
    if folder is None or repo_id is None:
        raise typer.BadParameter("needs FOLDER and REPO_ID, or --all.", param_hint="push")
    typer.echo(_push_one(folder, repo_id, card_folder, file or [], message or "Upload model", private or None))


def _push_one(
    folder: Path, repo_id: str, card_folder: Path | None, files: list[Path], message: str, private: bool | None
) -> str:
    from hf_mech.hub.catalogue import CHECKPOINT_FILE
    from hf_mech.hub.checkpoint import load_checkpoint, load_processing_class
    from hf_mech.hub.files import HubError
    from hf_mech.hub.publishing import publish_folder
    from hf_mech.hub.push import push_checkpoint

    extra_files = {path.name: path for path in files}
    if (folder / CHECKPOINT_FILE).is_file():
        if card_folder is not None:
            raise typer.BadParameter(f"{folder} has its card inside.", param_hint="--card-folder")
        done = publish_folder(folder, repo_id, extra_files=extra_files, private=private, commit_message=message)
        return done.commit_url or f"{repo_id} has these files already; nothing was sent."
    try:
        model, processing_class = load_checkpoint(folder), load_processing_class(folder)
    except HubError:
        raise
    except (OSError, ValueError) as error:
        raise HubError(f"{folder} holds no checkpoint that can be loaded: {error}") from error
    return push_checkpoint(
        model,
        repo_id,
        processing_class=processing_class,
        card_folder=card_folder,
        extra_files=extra_files,
        private=private,
        commit_message=message,
    ).commit_url


def _push_all(folder: Path | None, organization: str, send: bool, page: Path | None, private: bool | None) -> None:
    from transformers.utils import logging

    from hf_mech.hub.catalogue import MODEL_CARDS
    from hf_mech.hub.collection import collection_page, publish_collection
    from hf_mech.hub.files import PushError, write_text_atomically
    from hf_mech.hub.publishing import check_account, checkpoint_folders, publish_all, read_entry
    from hf_mech.hub.push import hub_client

    folders = checkpoint_folders(folder or MODEL_CARDS)
    client = hub_client(f"{organization}/{folders[0].name}", None, None)
    check_account(client, send=send)
    logging.disable_progress_bar()
    done: list[Publication] = []
    with open_console().status("") as status:
        publications = publish_all(folders, organization, send=send, api=client, private=private)
        for path in folders:
            status.update(f"{path.name} ({len(done) + 1} of {len(folders)})")
            done.append(next(publications))
            if done[-1].error is not None:
                typer.echo(f"hf-mech: {done[-1].repo_id}: {done[-1].error}", err=True)
    _print_table(done, send)
    failed = sum(publication.error is not None for publication in done)
    entries = [read_entry(path) for path, publication in zip(folders, done, strict=True) if publication.error is None]
    if page is not None and entries:
        typer.echo(f"Wrote {write_text_atomically(page, collection_page(entries, organization))}")
    if send and entries:
        try:
            typer.echo(f"Collection: {publish_collection(entries, organization, client).url}")
        except PushError as error:
            typer.echo(f"hf-mech: {error}", err=True)
            failed += 1
    elif not send:
        typer.echo("Nothing was sent. --yes sends what is new or changed, and makes a collection of all.")
    if failed:
        raise typer.Exit(1)


def _print_table(done: list[Publication], send: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from hf_mech.hub.collection import size_in_words

    table = Table(title="Sent" if send else "To send", title_justify="left", title_style="bold", box=None)
    table.add_column("repository", style="cyan")
    table.add_column("files", justify="right")
    table.add_column("bytes", justify="right")
    table.add_column("state")
    table.add_column("files that differ")
    for one in done:
        failed = one.error is not None
        state = "failed" if failed else f"{one.state}, sent" if one.commit_url else one.state
        differing = ", ".join(one.differing) if one.state == "changed" else "all" if one.state == "new" else ""
        numbers = ("", "") if failed else (str(one.files), size_in_words(one.bytes))
        table.add_row(Text(one.repo_id), *numbers, Text(state, "red" if failed else ""), Text(differing))
    open_console().print(table)
    count = Counter("failed" if one.error is not None else one.state for one in done)
    states = ", ".join(f"{count[state]} {state}" for state in ("new", "changed", "unchanged", "failed"))
    typer.echo(f"{len(done)} repositories, {size_in_words(sum(one.bytes for one in done))}: {states}")
