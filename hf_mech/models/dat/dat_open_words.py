"""The words in the open places; a new word without a free place replaces the word encoded longest ago."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .dat_errors import DATVocabularyError


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
        DATVocabularyError: more words than places, or a word twice.
    """

    def __init__(self, first: int, size: int, words: Iterable[str] = ()):
        self.first, self.size = first, size
        self._words = list(words)  # by place
        self._ids = OrderedDict((word, first + place) for place, word in enumerate(self._words))  # oldest use first
        self._call: _Call | None = None
        self._lock = threading.RLock()
        if len(self._words) > size or len(self._ids) < len(self._words):
            raise DATVocabularyError(
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
