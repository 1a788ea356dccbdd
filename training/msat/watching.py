"""An episode of a trained model to look at: its film, and the attention of every head (Sections 5.3.1 and 7.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from hf_mech.control.figures import attention_page, film, heads_figure, key_states
from hf_mech.control.play import watch
from hf_mech.models.msat.modeling_msat import MSATDecisionTransformer

from .figures import NAMES
from .settings import Run

EPISODE = 0
"""The number of the held-out episode: the first one, whatever came of it."""
_FILM_WIDTH = 192


@dataclass(frozen=True)
class Pictures:
    """What a card shows of an episode.

    Attributes:
        figures: file name to picture and caption.
        files: file name to text.
    """

    figures: Mapping[str, tuple[Figure | bytes, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def pictures_of(run: Run, model: MSATDecisionTransformer) -> Pictures:
    """The film of an episode, the attention in it as a figure, and as a page if circuitsvis is installed.

    Args:
        run: of the model.
        model: with eager attention, in evaluation mode.
    """
    options: dict[str, Any] = run.environment_options
    if run.place.frames:
        options = options | {"render_mode": "rgb_array"}
    watched = watch(model, run.place.environment, EPISODE, target_return=run.target_return, seed=run.seed, **options)
    attentions, names, first = watched.attention(model)
    states = key_states(attentions, names)
    frames = {name: watched.pictures[int(name[1:])] for name in states} if len(watched.pictures) else {}
    end = f"{'solved' if watched.score.success else 'not solved'}, return {watched.score.total_return:.2f}"
    steps = f"steps {first} to {first + len(names) // model.config.tokens_per_step - 1}"
    figures: dict[str, tuple[Figure | bytes, str]] = {
        "attention.png": (
            heads_figure(attentions, names, states, frames),
            f"The attention of every head in {steps} of an episode, and the states that some head reads most (Figures "
            "9 to 15 of the paper): a row is a token that reads, a column a token that is read, and s is a state",
        ),
    }
    if len(watched.pictures):
        caption = f"A held-out episode, played by argmax: {end}, {watched.score.length} decisions"
        figures["episode.gif"] = film(watched.pictures, scale=max(1, _FILM_WIDTH // watched.pictures.shape[2])), caption
    title = f"Attention of {NAMES[run.model]} in {run.place.title}: {steps} of a held-out episode"
    action = "a its action" if model.config.action_tokens == 1 else "a1, a2, ... the components of its action"
    try:
        page = attention_page(
            attentions, names, title, f"In the names of tokens, r is a step's return-to-go, s its state, and {action}."
        )
    except ImportError:
        return Pictures(figures)
    return Pictures(figures, {"attention.html": page})
