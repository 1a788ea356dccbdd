"""The interface of a tested language model: it answers questions, in order (Sec. 4.2.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Question:
    """A prompt, with or without a system prompt.

    Attributes:
        prompt: the prompt of the task: shots and cue, with one space between symbols.
        system: the system prompt, or None for the bare prompt.
    """

    prompt: str
    system: str | None = None


@dataclass(frozen=True)
class Reply:
    """The answer of a model.

    Attributes:
        text: the generated text. A model without a chat template continues the prompt; its text ends with the first
            symbol ".".
        finish_reason: the reason of its end, in the words of the chat-completions protocol: "stop", or "length" at the
            limit of tokens; None if unknown.
    """

    text: str
    finish_reason: str | None = None


@runtime_checkable
class LanguageModel(Protocol):
    """Anything that answers questions.

    Attributes:
        name: for tables and results.
        group: number of questions answered together. Because of rounding, a reply may depend on the others of its
            group, so an interrupted run continues with a whole group. 1 if replies are independent.
    """

    name: str
    group: int

    def settings(self) -> dict[str, Any]:
        """All settings that affect the replies, as JSON values without secrets.

        A run continues only with equal settings.
        """
        ...

    def replies(self, questions: Sequence[Question]) -> Iterator[Reply]:
        """One reply a question, in order, each as soon as it arrives.

        Raises:
            LanguageModelError: at the first question without an answer; the replies before it have been given.
        """
        ...
