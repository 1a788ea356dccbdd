"""Words as values: split by white space, an open vocabulary, the end of the prompt marked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers.tokenization_python import PreTrainedTokenizer

from .configuration_dat import DATConfig
from .dat_errors import DATVocabularyError
from .dat_values import END_OF_PROMPT, NIL, ValueSpace

NIL_TOKEN, END_TOKEN = "<nil>", "<eop>"
VOCAB_FILE = "vocab.json"


class DATTokenizer(PreTrainedTokenizer):
    r"""The tokenizer of a DAT. A new word gets the next open place; no word is unknown.

    A pair of texts is a prompt and its completion. Padding is on the left. A known word keeps its id; saving keeps the
    words.

    Args:
        vocab_file: a JSON list of the words that have open places, in their order.
        max_position_embeddings, constants, num_open_values: as in [`DATConfig`].

    Raises:
        DATVocabularyError: from any call with more new words than free open places.

    Example:

    ```python
    >>> from hf_mech.models.dat import DATTokenizer

    >>> tokenizer = DATTokenizer(max_position_embeddings=9, constants=["A", "Q"], num_open_values=100)
    >>> tokenizer("Q blicket 3 A")["input_ids"]
    [13, 14, 5, 12, 1]
    >>> tokenizer.decode([13, 14, 5, 12, 1], skip_special_tokens=True)
    'Q blicket 3 A'

    ```
    """

    vocab_files_names = {"vocab_file": VOCAB_FILE}
    model_input_names = ["input_ids", "attention_mask"]
    padding_side = "left"
    _auto_class = "AutoTokenizer"  # a saved tokenizer carries this code and loads without the package

    def __init__(
        self,
        vocab_file: str | None = None,
        max_position_embeddings: int = 512,
        constants: Sequence[str] = (),
        num_open_values: int = 4096,
        pad_token: str = NIL_TOKEN,
        eop_token: str = END_TOKEN,
        **kwargs: Any,
    ):
        self.space = ValueSpace(max_position_embeddings, constants, num_open_values)
        self._ids = {str(pad_token): NIL, str(eop_token): END_OF_PROMPT}
        self._tokens: dict[int, str] = {index: token for token, index in self._ids.items()}
        self._open: list[str] = []
        if vocab_file is not None:
            for word in json.loads(Path(vocab_file).read_text("utf-8")):
                self._convert_token_to_id(word)
        kwargs.pop("extra_special_tokens", None)
        kwargs.setdefault("clean_up_tokenization_spaces", False)
        super().__init__(
            max_position_embeddings=max_position_embeddings,
            constants=list(constants),
            num_open_values=num_open_values,
            pad_token=pad_token,
            extra_special_tokens={"eop_token": str(eop_token)},
            **kwargs,
        )

    @classmethod
    def from_config(cls, config: DATConfig, **kwargs: Any) -> DATTokenizer:
        """The tokenizer of a model with this configuration."""
        return cls(
            max_position_embeddings=config.max_position_embeddings,
            constants=list(config.constants or ()),
            num_open_values=config.num_open_values,
            **kwargs,
        )

    @property
    def vocab_size(self) -> int:
        """The number of all values, including free open places."""
        return len(self.space)

    @property
    def open_words(self) -> list[str]:
        """The words in open places, in order."""
        return list(self._open)

    def forget(self) -> None:
        """Frees the open places. Earlier ids are then invalid."""
        for word in self._open:
            del self._tokens[self._ids.pop(word)]
        self._open.clear()

    def get_vocab(self) -> dict[str, int]:
        """All numbers, constants and known words with their ids."""
        fixed = range(2, self.space.first_open)
        return {**{str(self.space.value(index)): index for index in fixed}, **self._ids, **self._added_tokens_encoder}

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        return text.split()

    def _convert_token_to_id(self, token: str) -> int:
        found = self._ids.get(token)
        if found is None:
            found = self.space.index(token)
            if found is None:
                found = self._place(token)
            self._ids[token], self._tokens[found] = found, token
        return found

    def _place(self, word: str) -> int:
        if len(self._open) >= self.space.num_open:
            raise DATVocabularyError(
                f"All {self.space.num_open} open places have words, and {word!r} is one more; call forget() if earlier "
                "ids are no longer needed, or compile the program with more num_open_values."
            )
        self._open.append(word)
        return self.space.first_open + len(self._open) - 1

    def _convert_id_to_token(self, index: int) -> str:
        return self._tokens.get(index) or self.space.value(index) or f"<{index}>"

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """The prompt, its end, and the completion if one is given."""
        return [*token_ids_0, END_OF_PROMPT, *(token_ids_1 or ())]

    def get_special_tokens_mask(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None, already_has_special_tokens: bool = False
    ) -> list[int]:
        """1 for padding and the end of the prompt."""
        if not already_has_special_tokens:
            token_ids_0 = self.build_inputs_with_special_tokens(token_ids_0, token_ids_1)
        return [int(index in (NIL, END_OF_PROMPT)) for index in token_ids_0]

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Writes the words in open places."""
        path = Path(save_directory) / (f"{filename_prefix}-{VOCAB_FILE}" if filename_prefix else VOCAB_FILE)
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_text(json.dumps(self._open, ensure_ascii=False), "utf-8")
        temporary.replace(path)
        return (str(path),)


__all__ = ["DATTokenizer"]
