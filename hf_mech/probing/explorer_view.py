"""GPT-2, the baseline of several papers: what it says to a prompt, token by token, and where each head looks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hf_mech.hub.catalogue import located
from hf_mech.viz.page import Section, figures_page
from hf_mech.viz.view import (
    Example,
    View,
    example_text,
    likeliest,
    load_with_tokenizer,
    readable,
    token_ids,
    token_texts,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

_KEPT = 4
_NEW_TOKENS = 24
_MOST_TOKENS = 128
_CELL = 0.24  # inches
_SHOWN = 3  # examples
_TEXTS = (
    "37,19|29,18|42,29|37,41|41,35|35,38|38,10|19,42/37,10=",  # star graphs G(2,5): both arms' ends, and another
    "37,19|29,18|42,29|37,41|41,35|35,38|38,10|19,42/37,18=",
    "44,15|9,46|41,44|36,32|32,9|36,47|46,0|47,41/36,15=",
    "Q B V D E A D E V B . Q F G H V K L A",  # templates
    "Q x V y A y Was V By x . Q u V w A",
    "Once upon a time there was a little dog.",
    "The answer is",
)
"""Prompts of the tasks that baselines are trained on, then English; those that a tokenizer reads are its examples."""


class BaselineView(View):
    """See `View`. A source is a checkpoint of transformers' GPT-2 with its tokenizer."""

    name = "Baselines"
    about = (
        "A plain GPT-2 on a prompt: what it says, how sure it is, and where its heads look. To be shown beside others."
    )
    rank = 5
    model_types = ("gpt2",)
    compared = True
    text_label = "Prompt"

    def examples(self, source: str) -> Sequence[Example]:
        """The prompts that the tokenizer reads without an unknown word."""
        if not source:
            return ()
        tokenizer = _loaded(source)[1]
        found = readable(tokenizer, _TEXTS)[:_SHOWN] or [example_text(tokenizer)]
        return [Example(text) for text in found]

    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """As in `View`.

        Raises:
            ExplorerError: no such checkpoint, or a text that does not fit or has unknown symbols.
        """
        import torch

        model, tokenizer = _loaded(source)
        ids = token_ids(tokenizer, text, most=min(_MOST_TOKENS, model.config.n_positions - 1))
        prompt = ids.shape[1]
        with torch.no_grad():
            said = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=min(_NEW_TOKENS, model.config.n_positions - prompt),
                do_sample=False,
                pad_token_id=tokenizer.pad_token_id,
            )
            output = model(said, output_attentions=True)
        tokens = token_texts(tokenizer, said[0].tolist())
        likely = output.logits[0, prompt - 1 : -1].softmax(-1)
        rows = [
            [str(number), token, likeliest(tokenizer, row)]
            for number, (token, row) in enumerate(zip(tokens[prompt:], likely, strict=True), 1)
        ]
        completion = Section("The completion", head=["word", "said", "likeliest (probability)"], rows=rows)
        weights = torch.cat(output.attentions)[:, :, prompt - 1, :prompt]  # [layers, heads, prompt]
        heads = Section(
            "Where the heads look before the first word is said",
            "A row is a head, a column a token of the prompt: white is 0, dark is 1.",
            [_heads_figure(weights.flatten(0, 1), weights.shape[1], tokens[:prompt])],
        )
        words = tokenizer.decode(said[0, prompt:], skip_special_tokens=True)
        return figures_page(f"{source}: {text}", f"The model says: {words}", [completion, heads])


@lru_cache(_KEPT)
def _loaded(source: str) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM

    model, tokenizer = load_with_tokenizer(AutoModelForCausalLM, located(source))
    model.set_attn_implementation("eager")  # it alone returns its weights
    return model, tokenizer


def _heads_figure(weights: Tensor, heads: int, tokens: Sequence[str]) -> Figure:
    """The weights of one reading token, [layers x heads, tokens]."""
    from matplotlib.figure import Figure

    from hf_mech.viz.palette import CELL_EDGE

    rows, columns = weights.shape
    figure = Figure(figsize=(_CELL * columns + 1.2, _CELL * rows + 0.8), layout="constrained")
    axes = figure.subplots()
    axes.imshow(weights.float().numpy(), cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    axes.set_xticks(range(columns), tokens, size=7.5, rotation=90, parse_math=False)
    axes.set_yticks(range(rows), [f"{row // heads + 1}.{row % heads + 1}" for row in range(rows)], size=7.5)
    axes.set_ylabel("layer.head", size=8)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(CELL_EDGE)
    return figure


VIEW = BaselineView()
