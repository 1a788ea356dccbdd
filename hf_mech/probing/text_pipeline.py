"""Language models of transformers, run by its text-generation pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transformers import Pipeline, pipeline

from hf_mech.probing.language_model_errors import ModelNotLoadedError, PromptTooLongError
from hf_mech.probing.language_models import Question, Reply

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
            raise ModelNotLoadedError(
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
                raise ModelNotLoadedError(
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
            ModelNotLoadedError: if transformers cannot make a text-generation pipeline from it.
        """
        try:
            generator = pipeline(
                "text-generation", model=model, device=device, dtype=dtype, trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
            raise ModelNotLoadedError(
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
            PromptTooLongError: before any generation, if one of the prompts is too long for the model.
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
            raise PromptTooLongError(
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
