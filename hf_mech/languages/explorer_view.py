"""Stack attention: the top of every layer's stack over a text, the operations, and the stacks that they build."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from hf_mech.models.stack import most_probable_operations, operations_as_text, stacks_of
from hf_mech.viz.page import Section, figures_page
from hf_mech.viz.view import Example, ExplorerError, View, example_text, load_with_tokenizer, token_ids, token_texts

_KEPT = 4


class StackView(View):
    """See `View`. A source is a checkpoint of a StackGPT2 or StackRoberta with its tokenizer."""

    name = "Stacks"
    about = "The stack of every layer while a text is read: the token on top, the operation, and the whole stack."
    model_types = ("stack_gpt2", "stack_roberta")
    text_label = "Text"

    def example(self, source: str) -> Example:
        return Example(example_text(_loaded(source)[1]) if source else "")

    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """As in `View`.

        Raises:
            ExplorerError: no such checkpoint, one without stacks, or a text that does not fit or has unknown symbols.
        """
        from hf_mech.languages.figures import LayerStack, stack_attention_figure

        model, tokenizer = _loaded(source)
        ids = token_ids(tokenizer, text, least=2)
        with torch.no_grad():
            output = model(ids, output_stack_attentions=True)
        tokens = token_texts(tokenizer, ids[0].tolist())
        layers, sections = [], []
        for number, (alpha, actions) in enumerate(zip(output.stack_attentions, output.stack_actions, strict=True), 1):
            operations, stacks = _read(tokens, actions[0])
            layers.append(LayerStack(alpha[0].float().numpy(), operations, ["".join(stack) for stack in stacks]))
            sections.append(_layer(number, tokens, alpha[0], operations, stacks))
        said = (
            "A row is a token, a column the token on top of the stack after it (dark: 1); beside it the most probable "
            "operation and the stack that these operations build, top on the right. The first token is the empty stack."
        )
        pictures = Section("All layers (Figures 2 to 5)", said, [stack_attention_figure(tokens, layers)])
        return figures_page(f"{source}: {text}", f"{len(layers)} layers, {len(tokens)} tokens.", [pictures, *sections])


@lru_cache(_KEPT)
def _loaded(source: str) -> tuple[Any, Any]:
    from transformers import AutoModel

    model, tokenizer = load_with_tokenizer(AutoModel, source)
    if not getattr(model.config, "use_stack", False):
        raise ExplorerError(
            f"{source!r} has no stacks (use_stack is False, or it is no stack model); give one with them"
        )
    return model, tokenizer


def _read(tokens: Sequence[str], actions: Tensor) -> tuple[list[str], list[list[str]]]:
    """Of each token: its most probable operation in words, and the stack after it."""
    pops = actions.shape[-1] - 2
    operations = most_probable_operations(actions.unsqueeze(0))[0]
    said = ["", *operations_as_text(operations, list(tokens), pops).split(" · ")]
    return said, [[tokens[place] for place in (0, *stack)] for stack in stacks_of(operations, pops)]


def _layer(
    number: int, tokens: Sequence[str], alpha: Tensor, operations: Sequence[str], stacks: Sequence[Sequence[str]]
) -> Section:
    tops = [f"{tokens[int(row.argmax())]} ({float(row.max()):.2f})" for row in alpha]
    rows = [
        [str(place), token, operations[place], tops[place], " ".join(stacks[place])]
        for place, token in enumerate(tokens)
    ]
    head = ["position", "token", "operation", "on top (weight)", "stack of these operations"]
    return Section(f"Layer {number}", head=head, rows=rows)


VIEW = StackView()
