"""A pipeline that completes prompts, also prompts of examples and a query; it travels with a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import Pipeline

from .dat_program import DATError, DATVocabularyError

_QUESTION, _ANSWER, _STOP = "Q", "A", "."
_MOST_WORDS = 64
_LENGTHS = ("max_new_tokens", "max_length", "generation_config")  # arguments that bound a completion


class TemplateCompletionPipeline(Pipeline):
    r"""Completes a prompt; of templatic generation also examples and a query (Sec. 3.3).

    ```python
    from transformers import pipeline

    complete = pipeline("template-completion", model="...", trust_remote_code=True)
    complete("Q B V D E A D E V B . Q F G H V K L A")  # {"completion": "K L V F G H .", "ended": True}
    complete({"examples": [["B V D E", "D E V B"]], "query": "F G H V K L"})  # the same prompt
    ```

    Takes a text, `{"prompt": text}`, or `{"examples": [[source, target], ...], "query": source}`, whose prompt is
    `Q source A target . Q query A`; or a list of these, a data set or a generator. Where the prompt sets registers of
    the program, the dictionary has `"registers"`, too, as [`DATTokenizer`] takes them. All further arguments are those
    of `generate()`; `max_new_tokens` defaults to 64.

    The model is a compiled program, or any other causal language model with its tokenizer, such as a GPT-2 that was
    trained on templatic prompts.

    Returns:
        For each input `{"completion": ..., "ended": ...}`: the new text up to its end, and whether the model ended it
        (False: the bound did). A list of them with `num_return_sequences`.

    Raises:
        DATError: an input that is no prompt, or one that the program cannot read.
        DATVocabularyError: a word that the model does not know; a compiled program knows every word, and raises it for
            more new words than it has places.
    """

    _load_tokenizer = True
    _load_processor = _load_image_processor = _load_feature_extractor = False

    def _sanitize_parameters(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        return {}, kwargs, {}  # generate() refuses what it does not know

    def preprocess(self, input_: Any, **_: Any) -> dict[str, Any]:
        """The prompt's text. Its words become tokens in `_forward`, together with those of the batch."""
        return {"prompt": prompt_of(input_), "registers": registers_of(input_)}

    def _forward(self, input_tensors: dict[str, Any], **how: Any) -> dict[str, Any]:
        given = input_tensors["prompt"]
        prompts = [given] if isinstance(given, str) else list(given)
        registers = [input_tensors["registers"]] if isinstance(given, str) else input_tensors["registers"]
        # One call for the batch, and its words read back here: a tokenizer of open words may give their ids to others.
        layout: dict[str, Any] = {"padding": len(prompts) > 1, "padding_side": "left", "return_tensors": "pt"}
        if any(registers):
            if not hasattr(self.tokenizer, "registers"):
                raise DATError(
                    f"registers belong to a compiled program, and the model is a {type(self.model).__name__}; leave "
                    "them out."
                )
            layout["registers"] = registers
        batch = self.tokenizer(prompts, **layout)
        self._check_words(prompts, batch["input_ids"])
        options: dict[str, Any] = {} if how.keys() & set(_LENGTHS) else {"max_new_tokens": _MOST_WORDS}
        if self.tokenizer.pad_token_id is not None:
            options["pad_token_id"] = self.tokenizer.pad_token_id
        said = self.model.generate(**batch.to(self.device), **{**options, **how})
        new = getattr(said, "sequences", said)[:, batch["input_ids"].shape[1] :].tolist()
        copies = len(new) // len(prompts)  # num_return_sequences
        read = [self._read(row, how) for row in new]
        rows = [read[number * copies : (number + 1) * copies] for number in range(len(prompts))]
        return {"completions": rows[0] if isinstance(given, str) else rows}

    def postprocess(self, model_outputs: dict[str, Any], **_: Any) -> Any:
        """The completion of one prompt; a list of them with `num_return_sequences`."""
        found = model_outputs["completions"]
        return found[0] if len(found) == 1 else found

    def _read(self, tokens: list[int], how: Mapping[str, Any]) -> dict[str, Any]:
        """The text of new tokens up to their end."""
        config = how.get("generation_config") or self.model.generation_config
        ends = how.get("eos_token_id", config.eos_token_id)
        ends = {ends} if isinstance(ends, int) else set(ends or ())
        end = next((place for place, token in enumerate(tokens) if token in ends), None)
        text = self.tokenizer.decode(tokens[:end], skip_special_tokens=True)
        return {"completion": text.strip(), "ended": end is not None}

    def _check_words(self, prompts: Sequence[str], ids: Any) -> None:
        """Refuses the words that a tokenizer with a closed vocabulary replaces by its mark for unknown ones."""
        unknown = self.tokenizer.unk_token_id
        if unknown is None or not bool((ids == unknown).any()):
            return
        words = dict.fromkeys(word for prompt in prompts for word in prompt.split())
        found = [word for word in words if unknown in self.tokenizer(word, add_special_tokens=False)["input_ids"]]
        raise DATVocabularyError(
            f"The model knows the {len(self.tokenizer)} words of its training texts, and none of {found[:10]}; use "
            "words of tokenizer.get_vocab(), or a compiled program, which takes every word."
        )


def prompt_of(given: Any) -> str:
    """The prompt of an input that [`TemplateCompletionPipeline`] takes.

    Raises:
        DATError: it is none.

    >>> prompt_of({"examples": [["B V D E", "D E V B"]], "query": "F G H V K L"})
    'Q B V D E A D E V B . Q F G H V K L A'
    """
    if isinstance(given, Mapping) and "prompt" in given:
        given = given["prompt"]
    if isinstance(given, str):
        if not given.split():
            raise DATError(f"A prompt has one word at least, got {given!r}.")
        return given
    if not isinstance(given, Mapping) or not {"examples", "query"} <= given.keys():
        keys = f" with the keys {sorted(map(str, given))}" if isinstance(given, Mapping) else ""
        raise DATError(
            'An input must be a text, {"prompt": text}, or {"examples": [[source, target], ...], "query": source}; got '
            f"a {type(given).__name__}{keys}."
        )
    examples = given["examples"]
    if isinstance(examples, str) or not isinstance(examples, Sequence) or not examples:
        raise DATError(f"examples must be a list of pairs [source, target], one at least, got {examples!r}.")
    words: list[str] = []
    for number, pair in enumerate(examples, 1):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise DATError(f"Example {number} must be a pair [source, target], got {pair!r}.")
        source = _words(f"the source of example {number}", pair[0])
        target = _words(f"the target of example {number}", pair[1])
        stop = [] if target[-1] == _STOP else [_STOP]
        words += [_QUESTION, *source, _ANSWER, *target, *stop]
    return " ".join([*words, _QUESTION, *_words("the query", given["query"]), _ANSWER])


def registers_of(given: Any) -> dict[str, Any] | None:
    """The registers that an input sets; None if it sets none.

    Raises:
        DATError: they are no dictionary.
    """
    registers = given.get("registers") if isinstance(given, Mapping) else None
    if registers is not None and not isinstance(registers, Mapping):
        raise DATError(f"registers must be a dictionary, name -> values of the prompt's words, got {registers!r}.")
    return dict(registers) if registers else None


def _words(part: str, text: Any) -> list[str]:
    if not isinstance(text, str) or not text.split():
        raise DATError(f"{part.capitalize()} must be a text with one word at least, got {text!r}.")
    if marks := {_QUESTION, _ANSWER} & set(text.split()):
        raise DATError(
            f"{part.capitalize()} has the word {min(marks)!r}, which marks the parts of a prompt; use another word, or "
            "give the whole prompt as a text."
        )
    return text.split()
