"""M-SAT Decision Transformers: an episode as a film, the attention of every head with frames, and the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import yaml

from hf_mech.hub.catalogue import located
from hf_mech.viz.page import Section, figures_page
from hf_mech.viz.view import Example, ExplorerError, View, not_loaded

if TYPE_CHECKING:
    from hf_mech.control.play import Watched

_KEPT = 2
_EPISODES = 3  # examples
_OURS = "hf_mech/"  # environments of the package
_FILM_WIDTH = 384  # pixels
_RETURN, _EPISODE, _SEED = "target_return", "episode", "seed"
_USUAL_RETURN = 1.0  # of a checkpoint that names none


class MSATView(View):
    """See `View`. A source is a checkpoint; its text is the environment to play an episode in."""

    name = "Decision transformers"
    about = (
        "An episode that the model plays: the film, the attention of every head to states and actions, and decisions."
    )
    rank = 4
    model_types = ("msat_decision_transformer",)
    text_label = "Environment, such as hf_mech/Doorway-v0"
    settings_label = (
        f"{_RETURN}: the return to reach (default: the checkpoint's, or 1). {_EPISODE}, {_SEED}: which episode "
        "(default 0). Further lines are options of the environment."
    )

    def ordered(self, names: Sequence[str]) -> Sequence[str]:
        """Those whose environment needs no game engine come first."""
        return sorted(names, key=lambda name: not _environment_of(name).startswith(_OURS))

    def examples(self, source: str) -> Sequence[Example]:
        """Three episodes of the environment that the checkpoint was made for, else of one of ours like it."""
        if not source:
            return ()
        config = _model(source).config
        ours = f"{_OURS}{'Rooms' if config.reads_frames else 'Doorway'}-v0"
        environment = (getattr(config, "environment", None) or {}).get("id", ours)
        return [Example(environment, f"{_EPISODE}: {number}") for number in range(_EPISODES)]

    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """As in `View`; `settings` are in YAML.

        Raises:
            ExplorerError: no such checkpoint, an extra is missing, or settings in another form.
            ControlError: no such environment, or one that does not fit the model.
        """
        given = read_settings(settings)
        model = _model(source)
        environment = text.strip() or (model.config.environment or {}).get("id", "")
        watched = _watched(model, environment, given)
        end = "solved" if watched.score.success else "not solved"
        said = f"{end}, return {watched.score.total_return:.4g}, {watched.score.length} decisions."
        sections = [_film(watched), _heads(model, watched), _decisions(watched)]
        return figures_page(f"{source} in {environment}", said, [part for part in sections if part is not None])


def read_settings(settings: str) -> dict[str, Any]:
    """Lines `name: value`, with defaults for the episode and its seed.

    Raises:
        ExplorerError: the text has another form.

    >>> read_settings("target_return: 0.5")
    {'episode': 0, 'seed': 0, 'target_return': 0.5}
    """
    try:
        given = yaml.safe_load(settings) or {}
    except yaml.YAMLError as error:
        raise ExplorerError(f"settings are lines `name: value`, got {settings!r}: {error}") from error
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise ExplorerError(f"settings are lines `name: value`, got {settings!r}")
    found = {_EPISODE: 0, _SEED: 0} | given
    for name, kind, said in ((_RETURN, (int, float), "a number"), (_EPISODE, int, "whole"), (_SEED, int, "whole")):
        if name in found and (not isinstance(found[name], kind) or isinstance(found[name], bool)):
            raise ExplorerError(f"{name} must be {said}, got {found[name]!r}")
    return found


def _environment_of(source: str) -> str:
    """The environment that a checkpoint was made for; empty for one that is not here."""
    from pathlib import Path

    from transformers import AutoConfig

    if not Path(place := located(source)).is_dir():
        return ""
    return (AutoConfig.from_pretrained(place).environment or {}).get("id", "")


@lru_cache(_KEPT)
def _model(source: str) -> Any:
    from transformers import AutoModel

    try:
        return AutoModel.from_pretrained(located(source), attn_implementation="eager").eval()
    except OSError as error:
        raise not_loaded(source, error) from error


def _watched(model: Any, environment: str, given: dict[str, Any]) -> Watched:
    """The episode; frames come in the model's size unless the settings say otherwise."""
    try:
        from hf_mech.control.environments import NAMESPACE
        from hf_mech.control.play import rendering_of, watch
    except ImportError as error:
        raise ExplorerError(f"this page needs environments: pip install 'hf-mech[control]' ({error})") from error
    options = {name: value for name, value in given.items() if name not in (_RETURN, _EPISODE, _SEED)}
    if model.config.reads_frames and environment.startswith(f"{NAMESPACE}/"):
        options = {"frame_size": tuple(model.config.state_shape[1:])} | options
    options = rendering_of(environment, options)[0] | options
    usual = _USUAL_RETURN if model.config.target_return is None else None  # None: the config's
    wanted = given.get(_RETURN, usual)
    return watch(model, environment, given[_EPISODE], target_return=wanted, seed=given[_SEED], **options)


def _film(watched: Watched) -> Section | None:
    if not len(watched.pictures):
        return None
    from hf_mech.control.figures import film

    scale = max(1, _FILM_WIDTH // watched.pictures.shape[2])
    return Section("The episode", figures=[film(watched.pictures, scale=scale)])


def _heads(model: Any, watched: Watched) -> Section:
    from hf_mech.control.figures import heads_figure, key_states

    attentions, names, first = watched.attention(model)
    states = key_states(attentions, names)
    frames = {name: watched.pictures[int(name[1:])] for name in states} if len(watched.pictures) else {}
    last = len(watched.episode) - 1
    actions = "a the action" if model.config.action_tokens == 1 else "a1, a2, ... the components of the action"
    said = (
        f"Steps {first} to {last}: a row is a token that reads, a column one that is read (dark: 1). Marked are the "
        f"states s that some head reads most; r is the return-to-go, {actions}."
    )
    return Section(
        "The attention of every head (Figures 9 to 15)", said, [heads_figure(attentions, names, states, frames)]
    )


def _decisions(watched: Watched) -> Section:
    episode = watched.episode
    rows = [
        [str(step), f"{wanted:.4g}", " ".join(map(str, action.tolist())), f"{reward:.4g}"]
        for step, (wanted, action, reward) in enumerate(
            zip(watched.returns_to_go, episode.actions, episode.rewards, strict=True)
        )
    ]
    head = ["step", "return still wanted", "action, a value for each component", "reward"]
    return Section("The decisions", head=head, rows=rows)


VIEW = MSATView()
