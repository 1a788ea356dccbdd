"""Words as values: split by white space, an open vocabulary, the end of the prompt marked."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers.tokenization_python import PreTrainedTokenizer
from transformers.tokenization_utils_base import AddedToken, BatchEncoding

from .checkpoints import CarriesCode
from .configuration_dat import DATConfig
from .dat_program import END_OF_PROMPT, NIL, UNSET, DATError, DATVocabularyError, ValueSpace

# The no-break spaces (U+00A0) are white space, so no word is equal to a mark and no text is encoded as one.
NIL_TOKEN, END_TOKEN = "<\u00a0nil\u00a0>", "<\u00a0eop\u00a0>"
MARKS = {NIL_TOKEN: NIL, END_TOKEN: END_OF_PROMPT}
VOCAB_FILE = "vocab.json"
Registers = Mapping[str, Sequence[str | None]]


# ----------------------------------------------------------------------------------------------------------- open words


@dataclass
class _Call:
    """One encoding call: its open words, and the new words with those that they replaced."""

    words: set[str] = field(default_factory=set)
    placed: list[tuple[str, str | None]] = field(default_factory=list)


class OpenWords:
    """A bounded two-way map of words and ids, safe for threads.

    A word keeps its id until `size` other words have been encoded since its last encoding; then a new word may take
    the place. Decoding counts for nothing: a decoded output is done, and the words of others still wait for theirs.
    Words of one call never replace each other. A call that fails leaves all words in their places.

    Args:
        first: the id of the first place.
        size: the number of places.
        words: the words in the first places, in order.

    Raises:
        DATError: more words than places, or a word twice.
    """

    def __init__(self, first: int, size: int, words: Iterable[str] = ()):
        self.first, self.size = first, size
        self._words = list(words)  # by place
        self._ids = OrderedDict((word, first + place) for place, word in enumerate(self._words))  # oldest use first
        self._call: _Call | None = None
        self._lock = threading.RLock()
        if len(self._words) > size or len(self._ids) < len(self._words):
            raise DATError(
                f"The vocabulary must have at most {size} different words, num_open_values, got {len(self._words)}, "
                f"{len(self._ids)} of them different; save the tokenizer again."
            )

    @property
    def words(self) -> list[str]:
        """The words in the order of their places."""
        with self._lock:
            return list(self._words)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Makes all lookups inside one call; other threads wait. An inner call belongs to the outer one."""
        with self._lock:
            if self._call is not None:
                yield
                return
            self._call = _Call()
            try:
                yield
            except BaseException:
                self._undo(self._call)
                raise
            finally:
                self._call = None

    def index(self, word: str) -> int:
        """The id of a word; a new word gets a place.

        Raises:
            DATVocabularyError: the call has more different words than there are places.
        """
        with self.call():
            assert self._call is not None
            if word not in self._ids:
                self._place(word, self._call)
            self._ids.move_to_end(word)
            self._call.words.add(word)
            return self._ids[word]

    def word(self, index: int) -> str | None:
        """The word with this id; None if the place is free, or the id is that of no place."""
        with self._lock:
            place = index - self.first
            return self._words[place] if 0 <= place < len(self._words) else None

    def clear(self) -> None:
        """Frees all places."""
        with self._lock:
            self._words.clear()
            self._ids.clear()

    def _place(self, word: str, call: _Call) -> None:
        if len(call.words) >= self.size:
            raise DATVocabularyError(
                f"One call may have {self.size} different words that the program does not name, its open places; "
                f"{word!r} is one more. Encode fewer texts at once, or compile the program with more num_open_values."
            )
        if len(self._words) < self.size:
            call.placed.append((word, None))
            self._ids[word] = self.first + len(self._words)
            self._words.append(word)
            return
        oldest, index = self._ids.popitem(last=False)  # no word of this call: those are newer, and fewer than places
        call.placed.append((word, oldest))
        self._ids[word] = index
        self._words[index - self.first] = word

    def _undo(self, call: _Call) -> None:
        for word, replaced in reversed(call.placed):
            index = self._ids.pop(word)
            if replaced is None:
                self._words.pop()
            else:
                self._words[index - self.first] = replaced
                self._ids[replaced] = index
                self._ids.move_to_end(replaced, last=False)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock: a copy has its own."""
        with self._lock:
            return {"first": self.first, "size": self.size, "words": list(self._words), "ids": self._ids.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["first"], state["size"], state["words"])  # type: ignore[misc]
        self._ids = state["ids"]


# ------------------------------------------------------------------------------------------------------------ tokenizer


class DATTokenizer(CarriesCode, PreTrainedTokenizer):
    r"""The tokenizer of a DAT. A new word gets an open place; no word is unknown.

    A pair of texts is a prompt and its completion. Padding is on the left. All text is data: the two marks, nil (it
    pads and ends a completion) and the end of the prompt, are ids without a text that encodes as them, so `<nil>` and
    `<eop>` are ordinary words. `decode` shows the marks as `<nil>` and `<eop>` with no-break spaces inside the
    brackets, or skips them.

    One call (a text or a batch) may have `num_open_values` different new words. Over its lifetime the tokenizer may
    meet any number: if all places have words, a new word takes the place of the word whose last encoding is the oldest.
    An id therefore stands for its word until `num_open_values` other words that the program does not name have been
    encoded since. Decode an output before that, or compile the program with more `num_open_values`. Threads may share
    a tokenizer. Processes have copies, with ids of their own. Saving keeps the words.

    Args:
        vocab_file: a JSON list of the words that have open places, in their order.
        max_position_embeddings, constants, num_open_values: as in [`DATConfig`].
        registers: the names of the program's registers, in the model's order; for prompts that set some.

    Raises:
        DATVocabularyError: from any call with more different new words than open places.
        DATError: from `add_tokens`.

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
        registers: Sequence[str] = (),
        **kwargs: Any,
    ):
        self.registers = tuple(registers)
        self.space = ValueSpace(max_position_embeddings, constants, num_open_values)
        words = () if vocab_file is None else _read_words(Path(vocab_file))
        self._open = OpenWords(self.space.first_open, num_open_values, words)
        _take_marks(kwargs)
        kwargs.setdefault("clean_up_tokenization_spaces", False)
        super().__init__(
            max_position_embeddings=max_position_embeddings,
            constants=list(constants),
            num_open_values=num_open_values,
            registers=list(registers),
            pad_token=NIL_TOKEN,
            eos_token=NIL_TOKEN,
            extra_special_tokens={"eop_token": END_TOKEN},
            **kwargs,
        )

    @classmethod
    def from_config(cls, config: DATConfig, **kwargs: Any) -> DATTokenizer:
        """The tokenizer of a model with this configuration."""
        return cls(
            max_position_embeddings=config.max_position_embeddings,
            constants=list(config.constants or ()),
            num_open_values=config.num_open_values,
            registers=list((config.qkvl or {})["register_map"]),
            **kwargs,
        )

    def __call__(
        self, *args: Any, registers: Registers | Sequence[Registers | None] | None = None, **kwargs: Any
    ) -> BatchEncoding:
        """As in transformers; with `registers`, also `register_values`, [batch, length, number of registers].

        Args:
            registers: of a text, or of each text of a batch: register -> its first values, one for every word of the
                prompt, None where the program decides.

        Raises:
            DATError: an unknown register, or another number of values than of words.
        """
        if registers is None:
            return super().__call__(*args, **kwargs)
        kind = kwargs.pop("return_tensors", None)
        with self._open.call():
            encoded = super().__call__(*args, **kwargs)
            alone = not isinstance(encoded["input_ids"][0], list)
            rows = [encoded["input_ids"]] if alone else encoded["input_ids"]
            given = [registers] if isinstance(registers, Mapping) else list(registers)
            if len(given) != len(rows):
                raise DATError(f"registers must be those of {len(rows)} texts, got {len(given)}.")
            values = [self._register_values(row, own or {}) for row, own in zip(rows, given, strict=True)]
        made = {**encoded, "register_values": values[0] if alone else values}
        return BatchEncoding(made, tensor_type=kind, prepend_batch_axis=alone and kind is not None)

    def _register_values(self, ids: Sequence[int], registers: Registers) -> list[list[int]]:
        """Of one text, [length][registers]."""
        end = ids.index(END_OF_PROMPT) if END_OF_PROMPT in ids else len(ids)
        places = [place for place in range(end) if ids[place] != NIL]
        values = [[UNSET] * len(self.registers) for _ in ids]
        for name, own in registers.items():
            if name not in self.registers:
                raise DATError(f"The program's registers are {', '.join(self.registers)}, got {name!r}.")
            if isinstance(own, str) or len(own) != len(places):
                raise DATError(
                    f"{name!r} needs a list with a value or None for each of {len(places)} words, got {own!r}."
                )
            for place, value in zip(places, own, strict=True):
                if value is not None:
                    values[place][self.registers.index(name)] = self._convert_token_to_id(value)
        return values

    @property
    def vocab_size(self) -> int:
        """The number of all values, including free open places."""
        return len(self.space)

    def __len__(self) -> int:
        return self.vocab_size

    @property
    def open_words(self) -> list[str]:
        """The words in open places, in order."""
        return self._open.words

    def forget(self) -> None:
        """Frees the open places. Earlier ids are then invalid."""
        self._open.clear()

    def get_vocab(self) -> dict[str, int]:
        """All marks, numbers, constants and known words with their ids."""
        fixed = {str(self.space.value(index)): index for index in range(2, self.space.first_open)}
        words = {word: self.space.first_open + place for place, word in enumerate(self._open.words)}
        return {**MARKS, **fixed, **words}

    def tokenize(self, text: str, **kwargs: Any) -> list[str]:
        """The words of a text. It is never searched for special tokens."""
        return text.split()

    _tokenize = tokenize

    def convert_tokens_to_ids(self, tokens: str | list[str]) -> Any:
        """The ids of words, and of the marks by their own texts, see [`DATTokenizer`]."""
        with self._open.call():
            return super().convert_tokens_to_ids(tokens)

    def _encode_plus(self, *args: Any, **kwargs: Any) -> Any:
        with self._open.call():  # a whole batch: its words keep their places until all of it is encoded
            return super()._encode_plus(*args, **kwargs)

    def _convert_token_to_id(self, token: str) -> int:
        found = self.space.index(token)
        return self._open.index(token) if found is None else found

    def _convert_id_to_token(self, index: int) -> str:
        return self._open.word(index) or self.space.value(index) or f"<\u00a0{index}\u00a0>"

    def _add_tokens(self, new_tokens: Sequence[str | AddedToken], special_tokens: bool = False) -> int:
        """Registers the marks.

        Raises:
            DATError: any other token: a word needs none, and the model has no value for one.
        """
        for token in new_tokens:
            if str(token) not in MARKS:
                raise DATError(
                    f"No token can be added, got {str(token)!r}: every word is a token already, and the ids are the "
                    "values of the program. Declare a constant in the program instead."
                )
            mark = AddedToken(str(token), normalized=False, special=True)
            self._added_tokens_decoder[MARKS[mark.content]] = mark
            self._added_tokens_encoder[mark.content] = MARKS[mark.content]
        return 0

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
        temporary.write_text(json.dumps(self._open.words, ensure_ascii=False), "utf-8")
        temporary.replace(path)
        return (str(path),)


def _read_words(path: Path) -> list[str]:
    """The words that `save_vocabulary` wrote.

    Raises:
        DATError: the file is not a JSON list of strings.
    """
    try:
        words = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise DATError(f"{path} must be a JSON list of words, got {error}; save the tokenizer again.") from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DATError(f"{path} must be a JSON list of words, got {str(words)[:80]}; save the tokenizer again.")
    return words


def _take_marks(options: dict[str, Any]) -> None:
    """Removes the marks from the options: a checkpoint has them, and they are always the same.

    Raises:
        DATError: another text for a mark, or further special tokens.
    """
    given = [options.pop(name, None) for name in ("pad_token", "eos_token", "eop_token")]
    for name in ("extra_special_tokens", "additional_special_tokens", "model_specific_special_tokens"):
        more = options.pop(name, None) or ()
        given += more.values() if isinstance(more, dict) else more
    given += options.pop("added_tokens_decoder", {}).values()
    texts = {str(token) for token in given if token is not None}
    if wrong := sorted(texts - MARKS.keys()):
        raise DATError(
            f"A DAT has two special tokens, {NIL_TOKEN} (padding and end) and {END_TOKEN}, got {wrong}; leave them out."
        )
