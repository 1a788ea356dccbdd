"""The command `hf-mech play`."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hf_mech.hub.files import HubError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hf_mech.control.play import Score

_FILM_WIDTH = 384
"""The least width of a film in pixels: small pictures are enlarged."""


def play_checkpoint(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            show_default=False,
            help="A decision transformer: a folder, a repository on the Hub, or the name of one of our checkpoints.",
        ),
    ],
    episodes: Annotated[int, typer.Option(min=1, help="Held-out episodes to play; the first is filmed.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes; another seed gives others.")] = 0,
    target_return: Annotated[
        float | None,
        typer.Option(help="The return to ask for; by default the checkpoint's own.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.gif", help="The film; CHECKPOINT.gif here.", show_default=False),
    ] = None,
    film: Annotated[bool, typer.Option("--film/--no-film", help="Whether to film the first episode.")] = True,
    environment: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Where to play; by default where the checkpoint was trained.", show_default=False
        ),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw actions instead of taking the likeliest.")] = False,
) -> None:
    """Let a decision transformer play: film an episode, and print the scores of several."""
    from hf_mech.control.environments import NAMESPACE
    from hf_mech.control.errors import ControlError
    from hf_mech.control.play import play, rendering_of, resolve_play, watch

    file = out or Path(f"{Path(checkpoint).name}.gif")
    if film:
        _check_file(file)
    model = _load(checkpoint)
    name, target_return, options = resolve_play(model, environment, target_return, {})
    if model.config.reads_frames and name.startswith(f"{NAMESPACE}/"):  # ours make frames of any size
        options = {"frame_size": tuple(model.config.state_shape[1:])} | options
    pictures, rate = rendering_of(name, options) if film else ({}, 0.0)
    if film and not pictures:
        raise ControlError(f"{name} renders no pictures, so it cannot be filmed; --no-film prints the scores alone.")
    how: dict[str, Any] = {"target_return": target_return, "seed": seed, "do_sample": sample}
    scores: list[Score] = []
    if film:
        typer.echo("Filming episode 0 ...", err=True)
        watched = watch(model, name, 0, **how, **options | pictures)
        scores.append(watched.score)
        typer.echo(f"Wrote {_write(file, watched.pictures, rate)}")
    if len(scores) < episodes:
        scores += play(model, name, range(len(scores), episodes), **how, **options)
    _print_scores(name, target_return, scores)


def _check_file(file: Path) -> None:
    from hf_mech.control.errors import ControlError, MissingExtraError

    if file.suffix.lower() != ".gif":
        raise ControlError(f"A film is a GIF: give --out a name that ends with .gif, got {str(file)!r}.")
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise ControlError(f"{file} cannot be written: name a file in a folder that exists.")
    try:
        import hf_mech.control.figures  # noqa: F401  (only whether its packages are there)
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "viz") from error


def _load(checkpoint: str) -> Any:
    """The model, in evaluation mode, on the accelerator if there is one."""
    import torch
    from transformers import AutoModel

    from hf_mech.hub.catalogue import catalogue, source_of

    ours = [entry.name for entry in catalogue()]
    source = source_of(checkpoint) if checkpoint in ours and not Path(checkpoint).is_dir() else checkpoint
    try:
        model = AutoModel.from_pretrained(source)
    except OSError as error:
        players = [entry.name for entry in catalogue() if entry.model_type == "msat_decision_transformer"]
        known = f", and none of {', '.join(players)}" if players else ""
        raise HubError(
            f"{checkpoint!r} is no folder of a checkpoint, no repository on the Hub{known}: {error}"
        ) from error
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def _write(file: Path, pictures: Any, rate: float) -> Path:
    from hf_mech.control.figures import film
    from hf_mech.hub.files import replacing

    content = film(pictures, rate, scale=max(1, _FILM_WIDTH // pictures.shape[2]))
    with replacing(file) as new:
        new.write_bytes(content)
    return file


def _print_scores(name: str, target_return: float, scores: Sequence[Score]) -> None:
    from rich.console import Console
    from rich.table import Table

    typer.echo(f"{name}, asked for a return of {target_return:.4g}:")
    table = Table(*("episode", "solved", "return", "decisions"), box=None)
    for number, score in enumerate(scores):
        table.add_row(str(number), "yes" if score.success else "no", f"{score.total_return:.3f}", str(score.length))
    for column in table.columns:
        column.justify = "right"
    Console().print(table)
    solved = sum(score.success for score in scores)
    typer.echo(
        f"{solved} of {len(scores)} solved; on average a return of {fmean(one.total_return for one in scores):.3f} in "
        f"{fmean(one.length for one in scores):.1f} decisions"
    )
