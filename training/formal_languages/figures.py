"""The pictures of a task's card: accuracy by length, and the stack attention of an example (App. D, Figures 2 to 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import torch
from matplotlib.figure import Figure
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from hf_mech.languages import TASKS, formal_language_tokenizer, test_batch
from hf_mech.languages.figures import LengthCurve, layer_stack, length_curves_figure, stack_attention_figure

from .run import RunOutcome
from .settings import TEST_LENGTHS, TRANSFORMERS
from .tables import Group, accuracy_by_length, paper_figure_beside


def figures_of(
    task: str, groups: Mapping[Group, list[RunOutcome]], model: PreTrainedModel | None
) -> dict[str, tuple[Figure, str]]:
    """Pictures with their captions, by file name."""
    trained = max(outcome.settings.max_train_length for members in groups.values() for outcome in members)
    # The figures' shade is one for all; accuracy_by_length.json has the others.
    groups = {group: own for group, own in groups.items() if own[0].settings.max_train_length == trained}
    figures = {}
    for name, caption, panels in (
        ("accuracy_by_length.png", "Accuracy at every length, by layout", _by_layout(task, groups)),
        ("encodings_by_length.png", "The same with positional encodings (Table 2)", _by_model(task, groups)),
    ):
        if panels:
            drawn = length_curves_figure(panels, trained=trained, test=TEST_LENGTHS)
            figures[name] = (drawn, f"{caption}: the seeds' mean, and a band from the worst to the best")
    if model is not None and (picture := stack_picture(task, model)) is not None:
        figures["stack_attention.png"] = picture
    return figures


def curve_of(outcome: RunOutcome) -> tuple[Figure, str]:
    """The accuracy of one model at every length, and its caption."""
    run = outcome.settings
    curve = LengthCurve({int(length): (value,) for length, value in outcome.accuracy_by_length.items()}, None)
    drawn = length_curves_figure({run.task: {run.model: curve}}, trained=run.max_train_length, test=TEST_LENGTHS)
    return drawn, "Accuracy at every length; the shaded ones were trained"


def _by_layout(task: str, groups: Mapping[Group, list[RunOutcome]]) -> dict[str, dict[str, LengthCurve]]:
    """Layout to model to curve, without encodings."""
    panels: dict[str, dict[str, LengthCurve]] = {}
    for group, members in groups.items():
        layout, model, encoding, departures = group
        if encoding == "none":
            panels.setdefault(layout, {})[_named(model, departures, groups)] = _curve(task, group, members)
    return panels


def _by_model(task: str, groups: Mapping[Group, list[RunOutcome]]) -> dict[str, dict[str, LengthCurve]]:
    """Layout and model to encoding to curve, where there are several encodings."""
    panels: dict[str, dict[str, LengthCurve]] = {}
    for group, members in groups.items():
        layout, model, encoding, departures = group
        if model in TRANSFORMERS:
            title = f"{layout}, {_named(model, departures, groups)}"
            panels.setdefault(title, {})[encoding] = _curve(task, group, members)
    return {title: lines for title, lines in panels.items() if len(lines) > 1}


def _named(model: str, departures: str, groups: Iterable[Group]) -> str:
    """The model with its departures from the preset, but for those that all groups share."""
    shared = set.intersection(*(set(json.loads(other).items()) for *_, other in groups))
    return " ".join([model, *(f"{k}={v}" for k, v in json.loads(departures).items() if (k, v) not in shared)])


def _curve(task: str, group: Group, members: list[RunOutcome]) -> LengthCurve:
    accuracy = {int(length): tuple(values) for length, values in accuracy_by_length(members).items()}
    paper = paper_figure_beside(task, group, members)
    return LengthCurve(accuracy, paper.mean if paper else None)


# ------------------------------------------------------------------------------------------------------ stack attention


_EXAMPLES = {
    "reverse_string": ("Figure 2", "a b b a a"),
    "stack_manipulation": ("Figure 3", "a b POP PUSHb PUSHb"),
    "modular_arithmetic": ("Figure 4", "( ( 4 ) * ( - 0 ) )"),
    "solve_equation": ("Figure 5", "( - 2 + ( x ) ) = 3"),
}
"""The paper's figure, and its input as its axes have it; the captions of Figures 3 and 5 name others."""

_READINGS = {
    "reverse_string": "in layers 1 and 2 the symbols are pushed and the masks do nothing, so that the last symbol lies "
    "on top at every mask; in layer 3 each mask pops one more; in layers 4 and 5 everything pushes itself",
    "stack_manipulation": "in layer 1 a and b are pushed, POP goes back to a, b is pushed twice, and the masks pop the "
    "answer off",
    "modular_arithmetic": "hard to read, as the task is hardly learned; in layer 1 the last two closing brackets find "
    "their opening ones",
    "solve_equation": "hard to read; the brackets count for less, since they do not change the order of sums",
}
"""What the paper sees in its figure (App. D), in our words."""

_SHORT = {"[BOS]": "⊥", "[MASK]": "M", "[SEP]": "|", "PUSHa": "+a", "PUSHb": "+b", "POP": "P", "[END]": "."}


def example_of(task: str) -> tuple[list[str], int]:
    """The symbols of the task's example, and how many its answer has; of a task not in the paper, a drawn example."""
    if task in _EXAMPLES:
        symbols = _EXAMPLES[task][1].split()
    else:
        length = TASKS[task].lengths(6, 12)[0]
        ids = test_batch(task, "mlm", seed=0, length=length, count=1)["input_ids"][0, 1 : 1 + length]
        symbols = formal_language_tokenizer(task).convert_ids_to_tokens(ids.tolist())
    width = test_batch(task, "mlm", seed=0, length=len(symbols), count=1)["input_ids"].shape[1]
    return symbols, width - 1 - len(symbols)


def stack_picture(task: str, model: PreTrainedModel) -> tuple[Figure, str] | None:
    """The picture of the task's example in every layer, and its caption; None if the model has no stack.

    Args:
        task: of the model.
        model: a StackRoberta. A causal one reads its own answer after [SEP], as it says it.
    """
    if not model.config.use_stack:
        return None
    symbols, answers = example_of(task)
    tokenizer = formal_language_tokenizer(task)
    text = ["[BOS]", *symbols]
    if model.config.is_decoder:
        text.append("[SEP]")
        for _ in range(answers):
            text.append(_said(model, text, tokenizer)[-1])
        answer = text[-answers:]
    else:
        text += ["[MASK]"] * answers
        answer = _said(model, text, tokenizer)[-answers:]
    with torch.no_grad():
        output = model(_ids(text, tokenizer), output_stack_attentions=True)
    shown = [_SHORT.get(token, token) for token in text]
    layers = [
        layer_stack(shown, alpha[0], actions[0])
        for alpha, actions in zip(output.stack_attentions, output.stack_actions, strict=True)
    ]
    published = f"{_EXAMPLES[task][0]} of the paper" if task in _EXAMPLES else "The stack attention"
    reading = f"The paper's reading of its own model: {_READINGS[task]}. " if task in _READINGS else ""
    caption = (
        f"{published} for this checkpoint, x = {' '.join(symbols)}: the stack attention of each token (dark: 1), its "
        "most probable operation, and the stack that these operations build, top on the right (⊥: [BOS], M: [MASK]). "
        f"{reading}The model answers: {' '.join(answer)}"
    )
    return stack_attention_figure(shown, layers), caption


def _ids(text: list[str], tokenizer: PreTrainedTokenizerFast) -> torch.Tensor:
    return torch.tensor([tokenizer.convert_tokens_to_ids(text)])


@torch.no_grad()
def _said(model: PreTrainedModel, text: list[str], tokenizer: PreTrainedTokenizerFast) -> list[str]:
    """The most probable token at every position."""
    return tokenizer.convert_ids_to_tokens(model(_ids(text, tokenizer)).logits[0].argmax(-1).tolist())
