"""Belief State Transformers: the next and the previous token for every prefix and suffix, and what probes read."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hf_mech.probing.state_probes import PROBES_FILE, StateProbes
from hf_mech.viz.page import Section, figures_page
from hf_mech.viz.view import Example, ExplorerError, View, example_text, load_with_tokenizer, token_ids, token_texts

_LIKELIEST = 3
_KEPT = 4
_STAR_GRAPH = "0,1|2,3|0,2|1,4/0,4="  # G(2,3): the path from 0 to 4


class BeliefStateView(View):
    """See `View`. A source is a checkpoint of a BeliefStateForCausalLM with its tokenizer, and its probes if it has."""

    name = "Belief states"
    about = "What the state of every prefix predicts with every suffix, and what probes read from it."
    model_types = ("belief_state",)
    text_label = "Text"
    settings_label = "Goal: how the text shall end; without one, any end."

    def example(self, source: str) -> Example:
        return Example(example_text(_loaded(source)[1], [_STAR_GRAPH]) if source else "")

    @torch.no_grad()
    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """As in `View`; `settings` is the goal.

        Raises:
            ExplorerError: no such checkpoint, a text that does not fit or has unknown symbols, or a goal for a model
                that reads none.
        """
        model, tokenizer, probes = _loaded(source)
        ids = token_ids(tokenizer, text)
        goal = settings.strip()
        if goal and not model.config.use_backward:
            raise ExplorerError(f"{source!r} has no backward encoder (use_backward=False): leave the goal empty")
        sections = [_next_tokens(model, tokenizer, ids, goal)]
        if model.config.use_backward:
            sections.append(_pairs(model, tokenizer, ids))
        if probes is not None:
            sections.append(_readings(probes, model, tokenizer, ids))
        towards = f" … {goal}" if goal else ""
        return figures_page(f"{source}: {text}{towards}", f"{ids.shape[1]} tokens.", sections)


@lru_cache(_KEPT)
def _loaded(source: str) -> tuple[Any, Any, StateProbes | None]:
    from transformers import AutoModelForCausalLM
    from transformers.utils import cached_file

    model, tokenizer = load_with_tokenizer(AutoModelForCausalLM, source)
    path = cached_file(source, PROBES_FILE, _raise_exceptions_for_missing_entries=False)
    return model, tokenizer, None if path is None else StateProbes.load(Path(path))


def _next_tokens(model: Any, tokenizer: Any, ids: Tensor, goal: str) -> Section:
    """After every prefix the likeliest next tokens, with any end and with the goal."""
    ends = {"any end": model(ids).logits[0]}
    if goal:
        suffix = token_ids(tokenizer, goal, add_special_tokens=False)
        ends[f"end: {goal}"] = model(ids, suffix_ids=suffix).logits[0]
    likely = [[_likeliest(row, tokenizer) for row in logits.softmax(-1)] for logits in ends.values()]
    tokens = token_texts(tokenizer, ids[0].tolist())
    rows = [[str(place), token, *parts] for place, (token, *parts) in enumerate(zip(tokens, *likely, strict=True))]
    said = "The likeliest tokens after each prefix, with their probabilities: T_n of its state and the suffix's."
    return Section("The next token", said, head=["position", "the prefix ends with", *ends], rows=rows)


def _pairs(model: Any, tokenizer: Any, ids: Tensor) -> Section:
    from hf_mech.lookahead.figures import pairs_figure

    panels = pair_probabilities(model, ids)
    prefixes = token_texts(tokenizer, ids[0].tolist())
    begins = [*prefixes, "(end)"][: next(iter(panels.values())).shape[1]]
    said = (
        "The probability of the text's own token, for every prefix and every suffix with a token between them: white "
        "is 0, dark is 1."
    )
    return Section("All pairs of a prefix and a suffix (Eq. 1)", said, [pairs_figure(prefixes, begins, panels)])


def pair_probabilities(model: Any, ids: Tensor) -> dict[str, NDArray[np.floating]]:
    """What the model gives the text's own tokens: the one after the prefix, and the one before the suffix.

    Args:
        model: a Belief State Transformer with a backward encoder.
        ids: the text, [1, tokens].

    Returns:
        By the kind of token, [prefixes, suffixes]; NaN where no token is between them. The last suffix is the end.
    """
    states = model.model(ids, suffix_ids=ids)
    suffixes = states.suffix_hidden_state[0]
    after, before = model.text_head(states.last_hidden_state[0][:, None], suffixes[None])
    apart = torch.ones(after.shape[:2]).triu(2).bool()

    def probabilities(logits: Tensor, tokens: Tensor) -> NDArray[np.floating]:
        own = logits.double().softmax(-1).gather(-1, tokens.expand(logits.shape[:2])[..., None])[..., 0]
        return own.masked_fill(~apart, torch.nan).numpy()

    found = {"the next token": probabilities(after, ids[0].roll(-1)[:, None])}
    if before is not None:
        moved = torch.cat([ids[:, -1:], ids], 1)  # the first one is in no pair
        found["the token before the suffix"] = probabilities(before, moved[:, : len(suffixes)])
    return found


def _readings(probes: StateProbes, model: Any, tokenizer: Any, ids: Tensor) -> Section:
    """The likeliest token of each target in the text's last state."""
    probabilities = probes(model.encode(ids).float())[:, 0].softmax(-1)
    rows = [[target, _likeliest(row, tokenizer)] for target, row in zip(probes.targets, probabilities, strict=True)]
    said = (
        "Small networks that were trained apart from the model to read tokens from the state behind a whole prompt; "
        "here from the text's last state."
    )
    return Section("What probes read from the state (Section 5.4)", said, head=["of", "token (probability)"], rows=rows)


def _likeliest(probabilities: Tensor, tokenizer: Any) -> str:
    best = probabilities.topk(min(_LIKELIEST, len(probabilities)))
    tokens = token_texts(tokenizer, best.indices.tolist())
    return ", ".join(f"{token} ({float(share):.2f})" for token, share in zip(tokens, best.values, strict=True))


VIEW = BeliefStateView()
