"""Belief States: the path or the text towards an end, next and previous tokens for all pairs, and what probes read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mech.hub.catalogue import located
from hf_mech.viz.page import Section, figures_page
from hf_mech.viz.view import (
    MOST_TOKENS,
    Example,
    ExplorerError,
    View,
    example_text,
    likeliest,
    load_with_tokenizer,
    readable,
    token_ids,
    token_texts,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from hf_mech.lookahead.star_graphs.asked import Question
    from hf_mech.probing.state_probes import StateProbes

_KEPT = 4
_NEW_TOKENS = 60
_FOLDED = 20  # rows; a longer table is closed at first
_MOST_OF_STORIES = 160  # tokens of a text that is written on
_BEGINNING, _END = 2, 2  # sentences of the examples from stories


class BeliefStateView(View):
    """See `View`. A source is a checkpoint of a BeliefStateForCausalLM with its tokenizer, and its probes if it has."""

    name = "Belief states"
    about = "The path or the text that leads to the end that you type, and what the state of every prefix predicts."
    rank = 2
    model_types = ("belief_state",)
    text_label = "Text, or a graph and its start"
    settings_label = "End: a goal, or how the text shall end"
    settings_in_view = True

    def examples(self, source: str) -> Sequence[Example]:
        """Graphs of the tests with their goals, or the beginnings and ends of stories of the tests."""
        if not source:
            return ()
        model, tokenizer, _ = _loaded(source)
        from hf_mech.lookahead.star_graphs.asked import example_questions, graph_of, names_of

        graph = graph_of(model.config.n_positions, names_of(tokenizer))
        if graph is not None:
            return [Example(*question) for question in example_questions(graph)]
        stories = _stories()
        known = readable(tokenizer, [story.text for story in stories])
        found = [story for story in stories if story.text in known]
        if not model.config.use_backward:
            found = [Example(story.text) for story in found]
        return found or [Example(example_text(tokenizer))]

    def whole_text(self, text: str, settings: str) -> str:
        """Of a graph the prompt, with its goal; of a text the text."""
        from hf_mech.lookahead.star_graphs.asked import with_goal

        return with_goal(text, settings)

    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """As in `View`; `settings` is the end.

        Raises:
            ExplorerError: no such checkpoint, a text that does not fit or has unknown symbols, or a goal for a model
                that reads none.
            LookaheadError: for a model of star graphs a text of another form, or a goal at no end.
        """
        import torch

        from hf_mech.lookahead.star_graphs.asked import ask, names_of

        model, tokenizer, probes = _loaded(source)
        with torch.no_grad():
            if names := names_of(tokenizer):
                question = ask(text, settings, names)
                title, said, sections = _path_sections(model, tokenizer, question)
                ids = token_ids(tokenizer, question.prompt, most=_positions(model))
            else:
                title, said, sections, ids = _text_sections(source, model, tokenizer, text, settings.strip())
            if probes is not None:
                sections.append(_readings(probes, model, tokenizer, ids))
        return figures_page(f"{source}: {title}", said, sections)


@lru_cache(_KEPT)
def _loaded(source: str) -> tuple[Any, Any, StateProbes | None]:
    from transformers import AutoModelForCausalLM
    from transformers.utils import cached_file

    from hf_mech.probing.state_probes import PROBES_FILE, StateProbes

    model, tokenizer = load_with_tokenizer(AutoModelForCausalLM, located(source))
    path = cached_file(located(source), PROBES_FILE, _raise_exceptions_for_missing_entries=False)
    return model, tokenizer, None if path is None else StateProbes.load(Path(path))


def _positions(model: Any) -> int:
    """The most tokens that the model reads."""
    return int(model.config.n_positions)


def _stories() -> list[Example]:
    """The beginnings of short stories of the tests, and their ends."""
    from hf_mech.lookahead.stories.grammar import stories

    return [
        Example(" ".join(story.sentences[:_BEGINNING]), " ".join(story.sentences[-_END:]))
        for story in stories(0, 0, 3, "test", "short")
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Star graphs: the path to the goal.


def _path_sections(model: Any, tokenizer: Any, question: Question) -> tuple[str, str, list[Section]]:
    import torch

    from hf_mech.lookahead.figures import star_figure
    from hf_mech.lookahead.star_graphs.layouts import read_paths

    graph = question.graph
    ids = token_ids(tokenizer, question.prompt, most=_positions(model) - graph.length)
    mask = torch.ones_like(ids)
    said = model.generate(
        ids, attention_mask=mask, max_new_tokens=graph.length, min_new_tokens=graph.length, do_sample=False
    )
    path = [int(node) for node in read_paths(graph, "plain", said)[0].tolist()]
    right = tuple(path) == question.path
    words = " → ".join(token_texts(tokenizer, path))
    verdict = "the right path" if right else f"wrong: the path is {' → '.join(map(str, question.path))}"
    figure = star_figure(question.arms, question.goal, path)
    shown = Section(
        f"The path to {question.goal}",
        "The goal has a ring. Blue is the path that the model says, one node after the other; a step that is no edge "
        "is dashed. Type the last node of another arm as the end.",
        [figure],
    )
    sections = [shown, _steps(model, tokenizer, said, ids.shape[1])]
    if model.config.use_backward:
        sections.append(_pairs(model, tokenizer, said, ids.shape[1] - 1))
    return f"from {question.path[0]} to {question.goal}", f"The model goes {words}: {verdict}.", sections


def _steps(model: Any, tokenizer: Any, said: Tensor, prompt: int) -> Section:
    """Each node of the path with the likeliest tokens where it was said."""
    likely = model(said).logits[0, prompt - 1 : -1].softmax(-1)
    tokens = token_texts(tokenizer, said[0, prompt:].tolist())
    rows = [
        [str(step), token, likeliest(tokenizer, row)]
        for step, (token, row) in enumerate(zip(tokens, likely, strict=True), 1)
    ]
    text = (
        "The hard step is the second: every arm begins with an edge from the start, so the model must have seen the "
        "whole arm ahead."
    )
    return Section("Step by step", text, head=["step", "node", "likeliest (probability)"], rows=rows)


# ----------------------------------------------------------------------------------------------------------------------
# Texts: written on towards an end.


def _text_sections(
    source: str, model: Any, tokenizer: Any, text: str, goal: str
) -> tuple[str, str, list[Section], Tensor]:
    most = min(_MOST_OF_STORIES, _positions(model))
    ids = token_ids(tokenizer, text, most=most)
    if goal and not model.config.use_backward:
        raise ExplorerError(f"{source!r} has no backward encoder (use_backward=False): leave the end empty")
    # A goal is tokenized as it stands in the text, with the space before it.
    suffix = token_ids(tokenizer, f" {goal}", most=most, add_special_tokens=False) if goal else None
    sections = [_written(model, tokenizer, ids, goal, suffix), _next_tokens(model, tokenizer, ids, goal, suffix)]
    if model.config.use_backward and ids.shape[1] <= MOST_TOKENS:
        sections.append(_pairs(model, tokenizer, ids))
    return f"{text} … {goal}" if goal else text, f"{ids.shape[1]} tokens.", sections, ids


def _written(model: Any, tokenizer: Any, ids: Tensor, goal: str, suffix: Tensor | None) -> Section:
    """The text as the model writes it on, with any end and with the goal."""
    import torch

    room = _positions(model) - ids.shape[1] - 1
    if room < 1:
        raise ExplorerError(f"give a text of fewer than {_positions(model) - 1} tokens, got {ids.shape[1]}")
    ends = {"any": None, **({goal: suffix} if goal else {})}
    rows = []
    for end, own in ends.items():
        options = {} if own is None else {"suffix_ids": own}
        said = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=min(_NEW_TOKENS, room),
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
            **options,
        )
        middle = tokenizer.decode(said[0, ids.shape[1] :], skip_special_tokens=True).strip()
        rows.append([end, middle or "(nothing)"])
    text = "What the model writes behind the text, each time the likeliest token, until it says the end token."
    return Section("The text towards its end", text, head=["the end", "written between"], rows=rows)


def _next_tokens(model: Any, tokenizer: Any, ids: Tensor, goal: str, suffix: Tensor | None) -> Section:
    """After every prefix the likeliest next tokens, with any end and with the goal."""
    ends = {"any end": model(ids).logits[0]}
    if suffix is not None:
        ends[f"end: {goal}"] = model(ids, suffix_ids=suffix).logits[0]
    likely = [[likeliest(tokenizer, row) for row in logits.softmax(-1)] for logits in ends.values()]
    tokens = token_texts(tokenizer, ids[0].tolist())
    rows = [[str(place), token, *parts] for place, (token, *parts) in enumerate(zip(tokens, *likely, strict=True))]
    said = "The likeliest tokens after each prefix, with their probabilities: T_n of its state and the suffix's."
    head = ["position", "the prefix ends with", *ends]
    return Section("The next token", said, head=head, rows=rows, folded=len(rows) > _FOLDED)


# ----------------------------------------------------------------------------------------------------------------------
# All pairs, and probes.


def _pairs(model: Any, tokenizer: Any, ids: Tensor, first: int = 0) -> Section:
    """The pairs of prefixes and suffixes that begin at the token `first` or later."""
    from hf_mech.lookahead.figures import pairs_figure

    panels = {title: values[first:, first:] for title, values in pair_probabilities(model, ids).items()}
    prefixes = token_texts(tokenizer, ids[0, first:].tolist())
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
    import torch

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
    rows = [[target, likeliest(tokenizer, row)] for target, row in zip(probes.targets, probabilities, strict=True)]
    said = (
        "Small networks that were trained apart from the model to read tokens from the state behind a whole prompt; "
        "here from the text's last state."
    )
    return Section("What probes read from the state (Section 5.4)", said, head=["of", "token (probability)"], rows=rows)


VIEW = BeliefStateView()
