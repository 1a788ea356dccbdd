"""Language models that answer questions (Sec. 4.2.2): the interface, and the models of transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hf_mech.probing import ProbingError

if TYPE_CHECKING:
    from transformers import Pipeline


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
            ProbingError: at the first question without an answer; the replies before it have been given.
        """
        ...


# ----------------------------------------------------------------------------------------------------------------------
# Language models of transformers, run by its text-generation pipeline.


LAST_SYMBOL = "."
"""The last symbol of every answer (Sec. 4.2.1)."""


class TextPipeline:
    """A causal language model of transformers, greedy.

    With a chat template in its tokenizer, a model gets a system and a user message, and its whole text is the reply.
    Any other model continues a text: system prompt, blank line, prompt. Such a model has no signal to stop, so its
    reply ends with the first symbol ".".

    Args:
        generator: a `transformers.pipeline("text-generation", ...)`. If its tokenizer has no padding token, the
            end-of-sequence token takes its place.
        batch_size: prompts a batch.
        max_new_tokens: the most tokens of a reply.
    """

    def __init__(self, generator: Pipeline, *, batch_size: int = 8, max_new_tokens: int = 256) -> None:
        if batch_size < 1 or max_new_tokens < 1:
            raise ProbingError(
                f"batch_size and max_new_tokens must be 1 or more, got {batch_size} and {max_new_tokens}."
            )
        self._generator = generator
        self._tokenizer = generator.tokenizer
        self.name = generator.model.name_or_path or type(generator.model).__name__
        self.group = batch_size
        self.max_new_tokens = max_new_tokens
        self.chat = bool(getattr(self._tokenizer, "chat_template", None))
        if self._tokenizer.pad_token_id is None:
            if self._tokenizer.eos_token_id is None:
                raise ProbingError(
                    f"The tokenizer of {self.name} has neither a padding nor an end-of-sequence token; set "
                    "tokenizer.pad_token."
                )
            self._tokenizer.pad_token = self._tokenizer.eos_token

    @classmethod
    def from_pretrained(
        cls,
        model: str,
        *,
        device: str | None = None,
        dtype: str = "auto",
        trust_remote_code: bool = False,
        batch_size: int = 8,
        max_new_tokens: int = 256,
    ) -> TextPipeline:
        """Load the model from the Hub or a folder.

        Args:
            model: a name on the Hub, or a folder.
            device: such as "cuda:0"; by default a GPU if there is one.
            dtype: such as "bfloat16"; by default the checkpoint's.
            trust_remote_code: run code that the checkpoint brings.
            batch_size: prompts a batch.
            max_new_tokens: the most tokens of a reply.

        Raises:
            ProbingError: if transformers cannot make a text-generation pipeline from it.
        """
        from transformers import pipeline

        try:
            generator = pipeline(
                "text-generation", model=model, device=device, dtype=dtype, trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
            raise ProbingError(
                f"{model} cannot be loaded as a causal language model with a tokenizer: {error}"
            ) from error
        return cls(generator, batch_size=batch_size, max_new_tokens=max_new_tokens)

    def settings(self) -> dict[str, Any]:
        """Model, form of the prompt, batch and limit."""
        model = self._generator.model
        return {
            "kind": "transformers pipeline",
            "model": self.name,
            "revision": getattr(model.config, "_commit_hash", None),
            "dtype": str(model.dtype).removeprefix("torch."),
            "device": model.device.type,
            "chat_template": self.chat,
            "batch_size": self.group,
            "max_new_tokens": self.max_new_tokens,
        }

    def replies(self, questions: Sequence[Question]) -> Iterator[Reply]:
        """One reply a question, batch after batch.

        Raises:
            ProbingError: before any generation, if one of the prompts is too long for the model.
        """
        inputs = [self._input(question) for question in questions]
        for text in inputs:
            self._check_length(text)
        for start in range(0, len(inputs), self.group):
            batch = inputs[start : start + self.group]
            outputs = self._generator(
                batch,
                batch_size=len(batch),
                return_full_text=False,
                clean_up_tokenization_spaces=False,  # "x ." is two symbols, "x." would be one
                do_sample=False,
                num_beams=1,
                max_new_tokens=self.max_new_tokens,
            )
            for (output,) in outputs:
                text = output["generated_text"]
                yield Reply(text if self.chat else until_last_symbol(text))

    def _input(self, question: Question) -> Any:
        """The messages of a chat, or the text to be continued."""
        if not self.chat:
            return question.prompt if question.system is None else f"{question.system}\n\n{question.prompt}"
        messages = [{"role": "user", "content": question.prompt}]
        if question.system is not None:
            messages.insert(0, {"role": "system", "content": question.system})
        return messages

    def _check_length(self, text: Any) -> None:
        limit = getattr(self._generator.model.config.get_text_config(), "max_position_embeddings", None)
        if not isinstance(limit, int):
            return
        if self.chat:
            ids = self._tokenizer.apply_chat_template(text, add_generation_prompt=True, return_dict=True)["input_ids"]
        else:
            ids = self._tokenizer(text)["input_ids"]
        if len(ids) + self.max_new_tokens > limit:
            raise ProbingError(
                f"A prompt of {len(ids)} tokens and {self.max_new_tokens} for its answer are more than the {limit} "
                f"positions of {self.name}. Lower --max-tokens, or choose a task with fewer shots or another model."
            )


def until_last_symbol(text: str) -> str:
    """`text` up to and including its first symbol ".", or all of it if there is none.

    >>> until_last_symbol(" ab ~ cd . Q ef gh A")
    'ab ~ cd .'
    """
    symbols = text.split()
    return " ".join(symbols[: symbols.index(LAST_SYMBOL) + 1]) if LAST_SYMBOL in symbols else text
