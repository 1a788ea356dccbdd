"""A model's mechanism as a page of the explorer: the base of all views, and texts as tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class ExplorerError(ValueError):
    """A source or a text that the explorer cannot show; the message says what to give instead."""


class Example(NamedTuple):
    """What a run of a source may read: its text, and its settings."""

    text: str = ""
    settings: str = ""


class View(ABC):
    """A model's mechanism as a page. To import one is cheap: torch and models come when a source is shown.

    Attributes:
        name: of the view's tab.
        about: a sentence on what the page shows.
        rank: of the tab; the lowest is open at the start.
        model_types: the checkpoints that it reads.
        compared: whether these are there to be shown beside the models of any other view.
        source_label, text_label, settings_label: of the three fields; no settings if the last is empty.
        settings_in_view: whether the settings stand beside the text; otherwise they are folded away.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    rank: ClassVar[int]
    model_types: ClassVar[Sequence[str]]
    compared: ClassVar[bool] = False
    source_label: ClassVar[str] = "Checkpoint"
    text_label: ClassVar[str]
    settings_label: ClassVar[str] = ""
    settings_in_view: ClassVar[bool] = False

    @property
    def sources(self) -> Sequence[str]:
        """Names of sources besides checkpoints; they come first."""
        return ()

    def ordered(self, names: Sequence[str]) -> Sequence[str]:
        """The project's checkpoints of these model types, in the order of the menu; the first is open at the start."""
        return names

    def examples(self, source: str) -> Sequence[Example]:
        """Runs of this source that show something, at most three; the first is shown at the start.

        Args:
            source: a name of `sources`, or a checkpoint, which may be loaded for it.

        Raises:
            ValueError: no such source.
        """
        return ()

    def example(self, source: str) -> Example:
        """The first of `examples`, or an empty one."""
        return next(iter(self.examples(source)), Example())

    def written(self, source: str) -> str:
        """The source's own text for an editor, such as a program; empty if it has none."""
        return ""

    def whole_text(self, text: str, settings: str) -> str:
        """What a model without settings reads, for a comparison."""
        return text

    @abstractmethod
    def page(self, source: str, text: str, *, settings: str = "", written: str | None = None) -> str:
        """The page of a run, as HTML.

        Args:
            source: one of `sources`, a checkpoint's folder, or a repository on the Hub.
            text: what the run reads.
            settings: further input, in the view's own form.
            written: replaces the source's own text.

        Raises:
            ValueError: no such source, or a text that the model cannot read; the message is for the reader.
        """


# Texts as tokens of a checkpoint, for the views of language models.


MOST_TOKENS = 40
"""More do not fit a page."""

_SYMBOLS = 4  # of an example
_LIKELIEST = 3  # tokens that are named


def load_with_tokenizer(auto_class: Any, source: str) -> tuple[Any, Any]:
    """A model in evaluation mode, and its tokenizer.

    Raises:
        ExplorerError: there is no such checkpoint, or it has no tokenizer.
    """
    from transformers import AutoTokenizer

    try:
        return auto_class.from_pretrained(source).eval(), AutoTokenizer.from_pretrained(source)
    except OSError as error:
        raise not_loaded(source, error) from error


def not_loaded(source: str, error: Exception) -> ExplorerError:
    """The error of a source that transformers cannot load, in a sentence."""
    return ExplorerError(
        f"{source!r} is no checkpoint that can be loaded here: {str(error).strip().partition(chr(10))[0]}"
    )


def token_ids(tokenizer: Any, text: str, least: int = 1, most: int = MOST_TOKENS, **options: Any) -> Tensor:
    """A text as token ids, [1, tokens].

    Args:
        tokenizer: of the checkpoint.
        text: as a person writes it.
        least: number of tokens.
        most: the largest number of tokens.
        options: of the tokenizer.

    Raises:
        ExplorerError: a text of fewer tokens, or of more, or with unknown symbols.
    """
    try:
        ids = tokenizer(text, return_tensors="pt", **options)["input_ids"]
    except Exception as error:  # tokenizers raises plain ones
        raise ExplorerError(f"the tokenizer cannot read {text.strip()!r}: {error}") from error
    if not least <= ids.shape[1] <= most:
        raise ExplorerError(f"give a text of {least} to {most} tokens, got {ids.shape[1]}")
    return ids.long()


def readable(tokenizer: Any, texts: Sequence[str]) -> list[str]:
    """Those of the texts that the tokenizer reads without an unknown symbol."""
    known = []
    for text in texts:
        try:
            ids = token_ids(tokenizer, text, most=10 * MOST_TOKENS)[0].tolist()
        except ExplorerError:
            continue
        if tokenizer.unk_token_id not in ids:
            known.append(text)
    return known


def example_text(tokenizer: Any, texts: Sequence[str] = ()) -> str:
    """A text that the tokenizer reads without an unknown symbol.

    Args:
        tokenizer: of the checkpoint.
        texts: those to try first; then an English sentence, and at last symbols of the vocabulary.
    """
    if found := readable(tokenizer, [*texts, "Once upon a time there was a little dog."]):
        return found[0]
    words = [word for word, _ in sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])]
    known = [word for word in words if word not in tokenizer.all_special_tokens]
    return " ".join(islice(cycle(known[:_SYMBOLS]), 2 * _SYMBOLS))


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Tokens as a page shows them; spaces and line breaks are visible."""
    return [token.replace("Ġ", "␣").replace("Ċ", "⏎") for token in tokenizer.convert_ids_to_tokens(ids)]


def likeliest(tokenizer: Any, probabilities: Tensor) -> str:
    """The likeliest tokens of a row of probabilities, with these, in words."""
    best = probabilities.topk(min(_LIKELIEST, len(probabilities)))
    tokens = token_texts(tokenizer, best.indices.tolist())
    return ", ".join(f"{token} ({float(share):.2f})" for token, share in zip(tokens, best.values, strict=True))
