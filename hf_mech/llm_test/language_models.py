"""What a language model has to be able to do to be tested: answer questions, in order (Sec. 4.2.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Question:
    """What a model is asked.

    Attributes:
        prompt: the prompt of the task: shots and cue, symbols separated by one space.
        system: the system prompt, or None for the bare prompt.
    """

    prompt: str
    system: str | None = None


@dataclass(frozen=True)
class Reply:
    """What a model says.

    Attributes:
        text: as it came, but without what the model's kind never counts as its answer (see `settings`).
        finish_reason: why it stopped, in the words of the chat-completions protocol: "stop", or "length" where the
            limit of tokens cut it off; None where that is not known.
    """

    text: str
    finish_reason: str | None = None


@runtime_checkable
class LanguageModel(Protocol):
    """Anything that answers questions.

    Attributes:
        name: for tables and results.
        group: how many questions are answered together, so that a reply may depend, by rounding, on the others of its
            group. A run that goes on after an interruption begins with a whole group; 1 where replies are independent.
    """

    name: str
    group: int

    def settings(self) -> dict[str, Any]:
        """What decides the replies, as JSON values; no secrets. A run goes on only under equal settings."""
        ...

    def replies(self, questions: Sequence[Question]) -> Iterator[Reply]:
        """One reply a question, in order, each as soon as it is there.

        Raises:
            LanguageModelError: on the first question that cannot be answered; the replies before it have been given.
        """
        ...
