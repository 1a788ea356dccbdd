"""Stack attention: every layer's stack growing and shrinking over a text and the model's answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hf_mech.hub.catalogue import located
from hf_mech.viz.page import Section, Tower, figures_page
from hf_mech.viz.view import (
    Example,
    ExplorerError,
    View,
    example_text,
    likeliest,
    load_with_tokenizer,
    not_loaded,
    readable,
    token_ids,
    token_texts,
)

if TYPE_CHECKING:
    from torch import Tensor

_KEPT = 4
_FOLDED = 20  # rows; a longer table is closed at first
_NEW_TOKENS = 24  # of a language model, which has no length of its own
_SHORTEST = (5, 9, 14)  # symbols of the examples of a formal language, or the next length that it has
_TEXTS = (
    ("def add(a, b):\n    return", "for name in names:\n    print(", "class Stack:\n    def __init__(self,"),
    ("Once upon a time there was a little dog.", "The old man opened the door and", "She said that the sea was"),
)
"""Beginnings for language models: of Python, and of English."""


class StackView(View):
    """See `View`. A source is a checkpoint of a StackGPT2 or StackRoberta with its tokenizer."""

    name = "Stacks"
    about = "The stack of every layer while the model reads a text and answers: what each token pushes and pops."
    rank = 3
    model_types = ("stack_gpt2", "stack_roberta")
    text_label = "Text or expression"

    def examples(self, source: str) -> Sequence[Example]:
        """Of a formal language, inputs that no training saw; else beginnings that the tokenizer reads in few tokens."""
        if not source:
            return ()
        tokenizer = _loaded(source)[1]
        if (task := _task(tokenizer)) is not None:
            return [Example(_drawn(task, length, number)) for number, length in enumerate(_SHORTEST, 1)]
        known = [texts for group in _TEXTS if (texts := readable(tokenizer, group))]
        if not known:
            return [Example(example_text(tokenizer))]
        shortest = min(known, key=lambda texts: sum(len(tokenizer(text)["input_ids"]) for text in texts) / len(texts))
        return [Example(text) for text in shortest]

    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """As in `View`.

        Raises:
            ExplorerError: no such checkpoint, or a text that does not fit or has unknown symbols.
            LanguagesError: the formal language has no text of this length.
        """
        import torch

        from hf_mech.languages.figures import LayerStack, stack_attention_figure

        model, tokenizer = _loaded(source)
        prompt, ids, answer = _answered(model, tokenizer, text)
        stacked = model.config.use_stack
        with torch.no_grad():
            output = model(ids, **({"output_stack_attentions": True} if stacked else {}))
        tokens = token_texts(tokenizer, ids[0].tolist())
        title, end = f"{source}: {text}", f"The model answers: {answer}." if answer else "The model has no answer."
        answers = [_answers(model, tokenizer, tokens, output.logits[0], prompt)] if answer else []
        if not stacked:
            return figures_page(title, f"{end} It has no stack.", answers)
        layers, towers, tables = [], [], []
        for number, (alpha, actions) in enumerate(zip(output.stack_attentions, output.stack_actions, strict=True), 1):
            operations, stacks = _read(tokens, actions[0])
            layers.append(LayerStack(alpha[0].float().numpy(), operations, ["".join(stack) for stack in stacks]))
            towers.append(_towers(number, tokens, operations, stacks, prompt))
            tables.append(_table(number, tokens, alpha[0], operations, stacks))
        said = (
            "A row is a token, a column the token on top of the stack after it (dark: 1); beside it the most probable "
            "operation and the stack that these operations build, top on the right. The first token is the empty stack."
        )
        picture = Section(
            "Attention to the stack's top, all layers (Figures 2 to 5)", said, [stack_attention_figure(tokens, layers)]
        )
        return figures_page(title, end, [*towers, picture, *answers, *tables])


@lru_cache(_KEPT)
def _loaded(source: str) -> tuple[Any, Any]:
    import transformers

    config = _config(source)
    if not hasattr(config, "use_stack"):
        raise ExplorerError(f"{source!r} is no stack model, but of type {config.model_type!r}; give one of these")
    said = next(iter(config.architectures or ()), "")
    heads = {"ForCausalLM": "AutoModelForCausalLM", "ForMaskedLM": "AutoModelForMaskedLM"}
    auto_class = next((auto for end, auto in heads.items() if said.endswith(end)), "AutoModel")
    return load_with_tokenizer(getattr(transformers, auto_class), located(source))


def _config(source: str) -> Any:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(located(source))
    except (OSError, ValueError) as error:
        raise not_loaded(source, error) from error


def _task(tokenizer: Any) -> Any:
    """The formal language that the tokenizer was made for; None for other texts."""
    from hf_mech.languages.task import LanguagesError
    from hf_mech.languages.tasks import task_named

    try:
        return task_named(tokenizer.init_kwargs.get("task", ""))
    except LanguagesError:
        return None


def _drawn(task: Any, shortest: int, number: int) -> str:
    """An input of the language, of the first length from `shortest` on, from the stream of the tests."""
    from hf_mech.languages.task import dice_for

    length = task.lengths(shortest, shortest + task.shortest + task.step)[0]
    (symbols,) = task.sample(dice_for(task.name, "test", 0, number), length, 1).inputs
    return " ".join(task.inputs[symbol] for symbol in symbols)


def _answered(model: Any, tokenizer: Any, text: str) -> tuple[int, Tensor, str]:
    """The tokens of the text, the ids of the text and the model's answer to it, and the answer in words."""
    import torch

    ids = token_ids(tokenizer, text, least=2)
    causal, masked = (type(model).__name__.endswith(head) for head in ("ForCausalLM", "ForMaskedLM"))
    if not (causal or masked):
        return ids.shape[1], ids, ""
    task = _task(tokenizer)
    width = _NEW_TOKENS if task is None else _width(task, ids.shape[1] - 1)
    if masked and task is None:
        return ids.shape[1], ids, ""  # a text with masks of its own has its answer in the text
    with torch.no_grad():
        if masked:
            prompt = ids.shape[1]
            ids = torch.cat([ids, torch.full((1, width), tokenizer.mask_token_id)], 1)
            new = model(ids).logits[0, prompt:].argmax(-1)
            return prompt, ids, tokenizer.decode(new)
        if task is not None:
            ids = torch.cat([ids, torch.tensor([[tokenizer.sep_token_id]])], 1)
        prompt = ids.shape[1]
        mask = torch.ones_like(ids)
        full = model.generate(
            ids, attention_mask=mask, max_new_tokens=width, do_sample=False, pad_token_id=tokenizer.pad_token_id
        )
    return prompt, full, tokenizer.decode(full[0, prompt:])


def _width(task: Any, length: int) -> int:
    """The symbols of an answer to an input of this length."""
    from hf_mech.languages.task import dice_for

    return int(task.sample(dice_for(task.name, "test", 0, 0), length, 1).outputs.shape[1])


def _read(tokens: Sequence[str], actions: Tensor) -> tuple[list[str], list[list[str]]]:
    """Of each token: its most probable operation in words, and the stack after it."""
    from hf_mech.models.stack import most_probable_operations, operations_as_text, stacks_of

    pops = actions.shape[-1] - 2
    operations = most_probable_operations(actions.unsqueeze(0))[0]
    said = ["", *operations_as_text(operations, list(tokens), pops).split(" · ")]
    return said, [[tokens[place] for place in (0, *stack)] for stack in stacks_of(operations, pops)]


def _answers(model: Any, tokenizer: Any, tokens: Sequence[str], logits: Tensor, prompt: int) -> Section:
    """The symbols of the answer with the likeliest ones at their places."""
    before = int(type(model).__name__.endswith("ForCausalLM"))  # says a token from the one before it
    rows = [
        [str(place), tokens[place] if before else "", likeliest(tokenizer, logits[place - before].softmax(-1))]
        for place in range(prompt, len(tokens))
    ]
    head = ["position", "token", "likeliest (probability)"]
    return Section("The answer, token by token", head=head, rows=rows, folded=len(rows) > _FOLDED)


def _towers(
    number: int, tokens: Sequence[str], operations: Sequence[str], stacks: Sequence[Sequence[str]], prompt: int
) -> Section:
    towers = [
        Tower(stack[1:], token, operation.partition(" ")[0], place >= prompt)
        for place, (token, operation, stack) in enumerate(zip(tokens, operations, stacks, strict=True))
    ]
    pushed = sum(operation.startswith("push") for operation in operations)
    popped = sum(operation.startswith("pop") for operation in operations)
    said = f"The stack after each token, the top above. {pushed} of {len(tokens) - 1} tokens push, {popped} pop."
    return Section(f"The stack of layer {number}", said, towers=towers)


def _table(
    number: int, tokens: Sequence[str], alpha: Tensor, operations: Sequence[str], stacks: Sequence[Sequence[str]]
) -> Section:
    tops = [f"{tokens[int(row.argmax())]} ({float(row.max()):.2f})" for row in alpha]
    rows = [
        [str(place), token, operations[place], tops[place], " ".join(stacks[place])]
        for place, token in enumerate(tokens)
    ]
    head = ["position", "token", "operation", "on top (weight)", "stack of these operations"]
    return Section(f"Layer {number} as a table", head=head, rows=rows, folded=True)


VIEW = StackView()
