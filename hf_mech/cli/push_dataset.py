"""The command `hf-mech push-dataset`: one of our data sets as Parquet files and a card, on the Hub or in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from datasets import DatasetBuilder


def _complete(incomplete: str) -> list[str]:
    return [name for name in _names() if name.startswith(incomplete)]


def _names() -> list[str]:
    from hf_mech.data.local_datasets import local_dataset_names

    return [name.rpartition("/")[2] for name in local_dataset_names()]


def push_dataset(
    name: Annotated[
        str, typer.Argument(help="The data set, such as strips_traces.", show_default=False, autocompletion=_complete)
    ],
    config: Annotated[str, typer.Argument(help="Its configuration, such as ferry-1c.", show_default=False)],
    repo_id: Annotated[str | None, typer.Argument(help="The repository, user/name.", show_default=False)] = None,
    folder: Annotated[
        Path | None, typer.Option(file_okay=False, help="Write there, instead of to a repository.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An argument of load_dataset; may be repeated."),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    num_proc: Annotated[int | None, typer.Option(help="Processes that make the data.", min=1)] = None,
) -> None:
    """Write a data set as Parquet with a card, which `load_dataset` reads without hf_mech, and push it."""
    if (repo_id is None) == (folder is None):
        raise typer.BadParameter("needs a REPO_ID, or --folder; not both.", param_hint="push-dataset")
    from hf_mech.hub.push import export_dataset
    from hf_mech.hub.push import push_dataset as push

    builder = _builder(name, config, settings or [])
    if folder is not None:
        typer.echo(f"Wrote {export_dataset(builder, folder, num_proc=num_proc)}")
    elif repo_id is not None:
        typer.echo(push(builder, repo_id, private=private or None, num_proc=num_proc).commit_url)


def _builder(name: str, config: str, settings: list[str]) -> DatasetBuilder:
    import yaml
    from datasets import get_dataset_config_names, load_dataset_builder

    import hf_mech  # noqa: F401  load_dataset learns our names

    if name not in _names():
        raise typer.BadParameter(f"must be of {', '.join(_names())}, got {name}.", param_hint="NAME")
    configs = get_dataset_config_names(f"hf_mech/{name}")
    given: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise typer.BadParameter(f"must be NAME=VALUE, such as num_train=500, got {setting}.", param_hint="--set")
        given[key] = yaml.safe_load(value)
    try:
        return load_dataset_builder(f"hf_mech/{name}", config, **given)
    except ValueError as error:
        if config not in configs:
            raise typer.BadParameter(f"must be of {', '.join(configs)}, got {config}.", param_hint="CONFIG") from error
        raise typer.BadParameter(str(error), param_hint="--set") from error
